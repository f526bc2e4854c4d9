"""``trace`` and ``replay``: one cell flown again from the ledger, without network, ask by ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

CellAt = Annotated[str, typer.Argument(metavar="CELL", help="the cell's key, or the start of it")]
RunAt = Annotated[Path, typer.Option("--run", help="run folder; `runs` means its latest run")]
LedgerAt = Annotated[Path, typer.Option("--ledger", help="the project's ledger")]
ConfigAt = Annotated[Path | None, typer.Option("--config", "-c", help="configuration (default: the run's own)")]


@dataclass
class Flown:
    """One flight over: its result or error, the hash of its asks, and how many answers the ledger lacked."""

    result: Any
    error: BaseException | None
    trace: str
    missing: int


@app.command("trace")
def trace(
    cell: CellAt,
    run: RunAt = Path("runs"),
    ledger: LedgerAt = Path(".robustjudge/ledger.sqlite"),
    config: ConfigAt = None,
    width: Annotated[int, typer.Option(min=20, help="characters of each text that are shown")] = 600,
) -> None:
    """Print the dialogue of asks and answers of one cell; the key of a cell stands in exports and reports."""
    key, _, found = located(run, cell, config)
    typer.echo(
        visible(f"cell {key}: {found.case.id} / {found.attack_name} / {found.judge_name} / {found.protocol.kind}")
    )
    flown = fly(key, found, run, ledger, config, lambda lines: typer.echo(visible("\n".join(lines))), width)
    if flown.error is not None:
        typer.echo(visible(f"ended in {type(flown.error).__name__}: {flown.error}"))
    else:
        typer.echo(f"attack {flown.result.attack_status}; {len(flown.result.attacked)} final verdicts")
        if flown.result.error:
            typer.echo(visible(flown.result.error))
    _lacking(flown)


@app.command("replay")
def replay(
    cell: CellAt,
    run: RunAt = Path("runs"),
    ledger: LedgerAt = Path(".robustjudge/ledger.sqlite"),
    config: ConfigAt = None,
    pdb: Annotated[bool, typer.Option("--pdb", help="open the debugger where the trial raises")] = False,
) -> None:
    """Run one cell again from the ledger and compare it with the stored row; nothing is sent.

    Exit 0 when every ask is the same, 2 when the replay asked something else (a divergence), 4 when the ledger lacks
    a reply.  ``breakpoint()`` in a plugin works here, since asks are answered one by one in this thread.
    """
    from dataclasses import replace

    key, row, found = located(run, cell, config)
    flown = fly(key, replace(found, attack=Watched(found.attack)) if pdb else found, run, ledger, config)
    if flown.error is not None:
        typer.echo(visible(f"the trial raised {type(flown.error).__name__}: {flown.error}"))
        if pdb:
            post_mortem(flown.error)
    elif flown.result.error:
        typer.echo(visible(flown.result.error))
    _lacking(flown)
    if flown.trace != row["trace"]:
        typer.echo(
            f"diverged: the replay asked {flown.trace}, the run had asked {row['trace']}; something on our side is"
        )
        typer.echo("not reproducible (unseeded randomness, set order, changed code or data)")
        raise typer.Exit(2)
    typer.echo(f"the same asks as in the run ({flown.trace})")
    if flown.error is None:
        typer.echo(_verdicts(flown.result, row))


class Watched:
    """An attack that opens the debugger where it raises; a trial books what an attack raises and goes on."""

    def __init__(self, attack: Any) -> None:
        self._attack = attack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attack, name)

    async def __call__(self, case: Any) -> Any:
        from robustjudge.attacks.base import Exhausted, NoCandidate

        try:
            return await self._attack(case)
        except (Exhausted, NoCandidate):
            raise
        except Exception as fault:
            post_mortem(fault)
            raise


def post_mortem(fault: BaseException) -> None:
    """Open the debugger at the line that raised."""
    import pdb

    pdb.post_mortem(fault.__traceback__)


def _lacking(flown: Flown) -> None:
    if flown.missing:
        typer.echo(f"the ledger lacks {flown.missing} replies of this cell (pruned, or another --ledger)", err=True)
        raise typer.Exit(4)


def _verdicts(trial: Any, row: Any) -> str:
    from robustjudge.scales import READER_VERSION
    from robustjudge.table import NAMES, row_of

    again = dict(zip(NAMES, row_of(trial, row["cell"], row["trace"], READER_VERSION).values, strict=True))
    watched = (
        "clean_status",
        "clean_score",
        "clean_outcomes",
        "attacked_status",
        "attacked_score",
        "attacked_outcomes",
    )
    odd = [f"{n}: was {row[n]}, is {again[n]}" for n in watched if row[n] != again[n]]
    return "verdicts differ (another reader?): " + "; ".join(odd) if odd else "the same verdicts as in the run"


def located(run: Path, prefix: str, config: Path | None) -> tuple[str, Any, Any]:
    """The key, the stored row and the cell that a key's beginning names."""
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import DataError
    from robustjudge.table import cell_key, open_run

    folder = Folder.open(run)
    db = open_run(folder.table)
    try:
        db.row_factory = sqlite3.Row
        rows = db.execute(
            "SELECT * FROM trials WHERE substr(cell, 1, ?) = ? LIMIT 3", (len(prefix), prefix.lower())
        ).fetchall()
    finally:
        db.close()
    if len(rows) != 1 or not prefix:
        what = "no cell" if not rows else "more than one cell"
        raise DataError(f"{what} of {folder.path.name} has a key that begins with {prefix!r}; `export` lists the keys")
    plan, _, _ = planned(folder, config)
    key = str(rows[0]["cell"])
    for cell in plan.cells():
        if cell_key(cell) == key:
            return key, rows[0], cell
    raise DataError(
        f"the run's configuration no longer makes the cell {key}: cases, prompts or attacks changed since; run again"
    )


def planned(folder: Any, config: Path | None) -> tuple[Any, Any, Path]:
    """The plan of a run with its fitted attacks, its configuration and the folder that paths are relative to."""
    import json
    from dataclasses import replace

    from robustjudge.cli.execute import stored
    from robustjudge.config.build import plan_of
    from robustjudge.config.files import read_config
    from robustjudge.plan import artefact_name
    from robustjudge.spec import load

    settings, base = (read_config(config), config.parent) if config else stored(folder.path)
    plan = plan_of(settings, base)
    fitted = []
    for key, _ in plan.fits():
        file = folder.path / "artefacts" / artefact_name(key)
        if file.is_file():
            fitted.append((key, load(json.loads(file.read_text("utf-8"))["attack"])))
    return replace(plan, fitted=tuple(fitted)), settings, base


def fly(
    key: str,
    cell: Any,
    run: Path,
    ledger: Path,
    config: Path | None,
    tell: Callable[[list[str]], None] | None = None,
    width: int = 600,
) -> Flown:
    """Fly one trial with the sync driver; every answer comes from the ledger, none is paid for."""
    from robustjudge.engine.driver import Job, Landed
    from robustjudge.engine.sync import run_sync
    from robustjudge.execution import in_loop
    from robustjudge.trial import trial

    landed: list[Landed] = []
    missing = 0
    with offline(run, ledger, config) as backend:

        def answer(pending: Any, _: str) -> Any:
            nonlocal missing
            reply = backend.stored(pending)
            if reply is None:
                reply = in_loop(lambda: backend.answer(pending, key))
            lacks = sum(getattr(r, "reason", "") == "not_recorded" for r in reply if r is not None)
            missing += lacks
            if tell is not None:
                tell(list(told(pending, reply, width)))
            return reply

        run_sync([Job(key, lambda: trial(cell))], answer, landed.append)
    (one,) = landed
    return Flown(one.result, one.error, one.trace, missing)


@contextmanager
def offline(run: Path, path: Path, config: Path | None) -> Iterator[Any]:
    """A backend that answers from the ledger alone."""
    from robustjudge.config.build import services_of, settings_of
    from robustjudge.engine.backend import Backend
    from robustjudge.engine.folder import Folder
    from robustjudge.engine.ledger import Ledger
    from robustjudge.engine.writer import Writer
    from robustjudge.errors import DataError
    from robustjudge.execution import in_loop, rater
    from robustjudge.models.base import Settings
    from robustjudge.models.registry import open_model

    if not path.is_file():
        raise DataError(f"{path}: no ledger here, so there is nothing to replay from; name it with --ledger")
    _, settings, base = planned(Folder.open(run), config)
    given = settings_of(settings)
    writer = Writer()
    ledger = Ledger(writer, path, "replay-only")
    backend = Backend(
        lambda name: open_model(name, given.get(name, Settings())),
        ledger,
        services=services_of(settings, base),
        rate=rater(),
    )
    try:
        yield backend
    finally:
        in_loop(backend.close)
        ledger.close()
        writer.close()


def told(pending: Any, reply: Any, width: int) -> Iterator[str]:
    """One ask and its answer as lines."""
    from robustjudge.asks import Complete, Invoke, Measure, Weigh

    ask = pending.ask
    head = f"--- ask {pending.path}: {type(ask).__name__}"
    match ask:
        case Complete(calls):
            for i, (call, done) in enumerate(zip(calls, reply, strict=True)):
                yield f"{head}{f' {i}' if len(calls) > 1 else ''} to {call.model} as {call.role}, {call.replica}"
                for m in call.messages:
                    yield f"[{m.role}] {_cut(m.text, width)}"
                why = f" ({done.reason})" if done.reason else ""
                yield f"<<< {done.status}{why}: {_cut(done.text, width)}"
        case Weigh(calls):
            yield f"{head} of {len(calls)} calls"
            for asked, weights in zip(calls, reply, strict=True):
                pairs = zip(asked.labels, weights.logprobs, strict=False)
                yield f"<<< {weights.status}: " + ", ".join(f"{label} {lp:.2f}" for label, lp in pairs)
        case Invoke():
            yield f"{head} service {ask.service}, {ask.slate.replica}"
            yield f"<<< {_cut(str(getattr(reply, 'text', reply)), width)}"
        case Measure():
            yield f"{head} by {ask.evaluator}"
            yield "<<< " + ", ".join("unknown" if q is None else f"{q:.4f}" for q in reply)
        case _:
            yield head
            yield f"<<< {_cut(repr(reply), width)}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]} ... ({len(text)} characters)"
