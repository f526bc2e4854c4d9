"""``review`` and ``view``: local pages behind a secret link, on loopback only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="port on 127.0.0.1; 0 takes a free one")]
OnceOption = Annotated[float | None, typer.Option("--once", min=0.0, help="stop after this many seconds", hidden=True)]

STORE = ".robustjudge/review.sqlite"


@app.command("review")
def review(
    run: Annotated[
        Path | None, typer.Argument(help="run folder, or `runs` for the latest (default, where it is)")
    ] = None,
    reviews: Annotated[str, typer.Option("--store", help="file or postgresql:// address")] = STORE,
    inputs: Annotated[
        list[Path] | None, typer.Option(help="review file of generated inputs; repeat for several")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="policy file (YAML); decides what needs a person")] = None,
    least: Annotated[str, typer.Option("--severity", help="failures this grave or graver are queued")] = "critical",
    reviewer: Annotated[list[str] | None, typer.Option(help="name in the trail; repeat for one link each")] = None,
    port: PortOption = 0,
    export: Annotated[Path | None, typer.Option(help="write queue and trail as JSON lines and stop")] = None,
    once: OnceOption = None,
) -> None:
    """Decide on critical failures and generated inputs in the browser; decisions survive re-runs."""
    import json

    from robustjudge.errors import ConfigError
    from robustjudge.gate.policy import read_policy
    from robustjudge.review.app import app_of
    from robustjudge.review.queue import Queue, findings, generated
    from robustjudge.review.store import open_store

    files = [*(inputs or ()), *(sorted(Path("review").glob("*.jsonl")) if not inputs else ())]
    if run is None and Path("runs").is_dir():
        run = Path("runs")
    if run is None and not files:
        raise ConfigError(
            "nothing to review: there is no runs folder and no review/*.jsonl here; name a run or --inputs"
        )
    items = [*(findings(run, read_policy(policy), least) if run is not None else ()), *generated(files)]
    kept = open_store(reviews)
    try:
        queue = Queue(items, kept)
        if export is not None:
            text = "".join(json.dumps(x, ensure_ascii=False, sort_keys=True) + "\n" for x in queue.export())
            export.write_text(text, "utf-8")
            typer.echo(f"{len(queue)} items: {export}")
            return
        typer.echo(f"{queue.page().waiting} of {len(queue)} items wait for a decision; decisions go to {kept.where}")
        _serve(app_of(queue), reviewer or [_user()], port, once)
    finally:
        kept.close()


@app.command("view")
def view(
    runs: Annotated[Path, typer.Argument(help="folder of runs, or one run")] = Path("runs"),
    port: PortOption = 0,
    once: OnceOption = None,
) -> None:
    """Browse runs in the browser: filter, drill to one trial, compare, turn thresholds; no call is made."""
    from robustjudge.errors import DataError
    from robustjudge.view.app import app_of
    from robustjudge.view.runs import Runs

    held = Runs(runs).paths()
    if not held:
        raise DataError(f"{runs}: no run here; `robustjudge run` makes one")
    typer.echo(f"{len(held)} runs")
    _serve(app_of(runs), [_user()], port, once)


def _serve(page: Any, names: list[str], port: int, once: float | None) -> None:
    """Print a link for each visitor and serve until Ctrl-C."""
    import time

    from robustjudge.errors import ConfigError
    from robustjudge.web import Server, new_token, serve

    if len(set(names)) < len(names) or not all(n.strip() for n in names):
        raise ConfigError("every reviewer needs a name of their own: it is what the trail says")
    tokens: Mapping[str, str] = {new_token(): name for name in names}

    def ready(server: Server) -> None:
        for name in names:
            typer.echo(f"{visible(name, 60)}: {server.link(name)}")
        typer.echo("keep the link to yourself; Ctrl-C ends")

    if once is None:
        with suppress(KeyboardInterrupt):  # the usual way to end a page
            serve(page, tokens, port, ready)
        return
    server = Server(page, tokens, port)
    ready(server)
    with server:
        time.sleep(once)


def _user() -> str:
    """The name of the account, for the trail."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "reviewer"
