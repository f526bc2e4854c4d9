"""``robustjudge shrink``: successful attacks of a run, reduced to the shortest text that still succeeds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)


@app.command("shrink")
def shrink(
    run: Annotated[Path, typer.Argument(help="run folder; `runs` means its latest run")] = Path("runs"),
    out: Annotated[Path, typer.Option("--output", "-o", help="regression file; rows are added")] = Path(
        "regression.jsonl"
    ),
    cell: Annotated[list[str] | None, typer.Option(help="only cells whose key begins so; repeat for several")] = None,
    limit: Annotated[int, typer.Option(min=1, help="at most so many texts")] = 20,
    queries: Annotated[int, typer.Option(min=2, help="victim queries per text")] = 200,
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
    config: Annotated[Path | None, typer.Option("--config", "-c")] = None,
) -> None:
    """Reduce what succeeded and keep it: run it again later with `--cases FILE --attack replay:FILE`.

    Exit 3 when the run holds no success to reduce.
    """
    from robustjudge.cli.debug import planned
    from robustjudge.config.build import services_of, settings_of
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import Inconclusive
    from robustjudge.execution import Options, fly
    from robustjudge.regression import goal_of, merged, record, reduced
    from robustjudge.table import Table, cell_key, content, open_run

    folder = Folder.open(run)
    plan, settings, base = planned(folder, config)
    wanted: dict[str, tuple[float, str]] = {}
    for row in Table.load(folder.table).rows():
        goal = goal_of(row, settings.tau)
        if goal is not None and (not cell or any(str(row["cell"]).startswith(c) for c in cell)):
            wanted[row["cell"]] = (goal, row["text_hash"])
    db = open_run(folder.table)
    picked: dict[str, tuple[Any, float, str]] = {}
    try:
        for found in plan.cells():
            key = cell_key(found)
            if key in wanted and len(picked) < limit:
                text = content(db, wanted[key][1])
                if text is not None:
                    picked[key] = (found, wanted[key][0], text)
    finally:
        db.close()
    if not picked:
        raise Inconclusive(
            f"{folder.path.name}: no successful attack with a stored text, so there is nothing to reduce"
        )
    results = fly(
        {k: partial(reduced, c, t, g, queries) for k, (c, g, t) in picked.items()},
        Options(ledger=ledger, models=settings_of(settings), services=services_of(settings, base)),
    )
    fresh = []
    for key, (found, _, text) in picked.items():
        shrunk = results[key]
        if not shrunk.flips:
            typer.echo(f"{key[:8]} {found.attack_name}: did not succeed again, so it is left out")
            continue
        fresh.append(record(found, shrunk))
        short = visible(shrunk.text[-120:], 120)
        typer.echo(f"{key[:8]} {found.attack_name}: {len(text)} -> {len(shrunk.text)} characters, ends: {short}")
    out.write_text(merged(out, fresh), "utf-8")
    held = sum(bool(line.strip()) for line in out.read_text("utf-8").splitlines())
    typer.echo(f"{len(fresh)} texts reduced; {held} regression cases in {out}")
