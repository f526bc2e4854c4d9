"""``report``, ``export`` and ``compare``: everything that reads finished runs and never calls a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

RunAt = Annotated[Path, typer.Argument(help="a run folder; `runs` means its latest run")]


@app.command("report")
def report(
    run: RunAt = Path("runs"),
    form: Annotated[list[str] | None, typer.Option("--format", help="html, md, json; repeat for several")] = None,
    redact: Annotated[bool, typer.Option("--redact-payloads", help="hashes instead of attack texts")] = False,
) -> None:
    """Rebuild the reports of a run from its table; no call is made."""
    from robustjudge.cli.execute import show_suite
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import UnknownName
    from robustjudge.reports import summary, write

    formats = tuple(form or ("html", "md", "json"))
    for name in formats:
        if name not in ("html", "md", "json"):
            raise UnknownName("report format", name, ("html", "md", "json"))
    path = Folder.open(run).path
    written = write(path, formats, redact=redact)
    typer.echo(visible(summary(path)))
    for name, file in written.items():
        typer.echo(f"{name}: {file}")
    show_suite(path)


@app.command("export")
def export(
    run: RunAt = Path("runs"),
    form: Annotated[str, typer.Option("--format", help="csv (for people), jsonl (with all texts) or parquet")] = "csv",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file (default: exports/ in the run)")] = None,
) -> None:
    """Write the trial table of a run."""
    from robustjudge.exports import export as write

    typer.echo(str(write(run, form, output)))


@app.command("compare")
def compare(
    before: Annotated[Path, typer.Argument(metavar="RUN_A", help="the run to compare with")],
    after: Annotated[Path, typer.Argument(metavar="RUN_B", help="the run in question")],
    judge: Annotated[str, typer.Option(help="judge name, or A=B when the runs call it differently")] = "",
    tau: Annotated[float, typer.Option(min=0.0, help="scale points that count as success")] = 1.0,
    limit: Annotated[int, typer.Option(min=0, help="flips shown in full")] = 20,
) -> None:
    """Which trials changed sides between two runs, with both replies."""
    from robustjudge.exports import compare as pair
    from robustjudge.exports.pairing import Side

    left, _, right = judge.partition("=")
    result = pair(before, after, (left, right or left) if judge else None, tau)

    def side(name: str, s: Side) -> str:
        scores = f", {_score(s.clean)} -> {_score(s.attacked)}" if s.attacked is not None else ""
        return f"  {name}: {s.outcome}{scores}\n    {visible(s.reply or '(no reply stored)', 300)}"

    for flip in result.flips[:limit]:
        typer.echo(visible(f"{flip.case} / {flip.attack} / {flip.protocol}"))
        typer.echo(side("before", flip.before))
        typer.echo(side("after", flip.after))
    if len(result.flips) > limit:
        typer.echo(f"... and {len(result.flips) - limit} more")
    if result.changed:
        typer.echo(f"changed between the runs: {', '.join(result.changed)}")
    lone = f", {result.only_before} only in A, {result.only_after} only in B"
    typer.echo(
        f"{len(result.flips)} of {result.trials} trials flipped: {result.worse} now succeed,"
        f" {result.better} no longer do{lone if result.only_before or result.only_after else ''}"
    )


def _score(x: float | None) -> str:
    return "none" if x is None else f"{x:g}"
