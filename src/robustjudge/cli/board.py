"""``leaderboard``: several runs of one suite on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)


@app.command("leaderboard")
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="run folders of one suite")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the page to write")] = Path("leaderboard.html"),
) -> None:
    """Compare judges over runs of one suite; runs of different suites, versions or settings are refused."""
    from robustjudge.leaderboard import entries, ordered, page, placed, ranks
    from robustjudge.shapes.base import cell

    suite, found = entries(runs)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(suite, found), "utf-8")
    for protocol in dict.fromkeys(e.protocol for e in found):
        here = ordered([e for e in found if e.protocol == protocol])
        place = ranks(here)
        for e in here:
            where = f"{'rank ' if e.judge in place else ''}{placed(e, place)}"
            typer.echo(visible(f"{protocol}: {e.judge}: {cell(e.attacked)}; {where}"))
    typer.echo(f"html: {output}")
