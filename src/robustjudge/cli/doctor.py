"""``robustjudge doctor``: is everything in place?  Configuration, data, endpoints, keys, versions, disk and ledger."""

from __future__ import annotations

import platform
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

LOW_DISK = 500_000_000


@dataclass(frozen=True)
class Line:
    """One finding: ``ok``, ``warn`` (nothing breaks) or ``fault``; ``code`` is the exit code a fault asks for."""

    level: Literal["ok", "warn", "fault"]
    about: str
    text: str
    code: int = 2

    def __str__(self) -> str:
        return visible(f"{self.level:<5} {self.about}: {self.text}")


@app.command("doctor")
def doctor(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="robustjudge.yaml")] = None,
    live: Annotated[bool, typer.Option("--live", help="send one short call to every model of the file")] = False,
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
) -> None:
    """Check configuration, data, endpoint settings, keys (only whether they are set), versions, disk and ledger.

    Nothing is sent without --live.  Exit 0 when nothing is wrong, 2 for a wrong setting, 4 for a failed live call.
    """
    lines = [*versions(), *disk(ledger), *ledger_health(ledger), *configured(config)]
    if live:
        lines += list(live_calls(config))
    for line in lines:
        typer.echo(str(line))
    faults = [x for x in lines if x.level == "fault"]
    typer.echo(f"{len(faults)} faults, {sum(x.level == 'warn' for x in lines)} warnings")
    if faults:
        raise typer.Exit(min(x.code for x in faults))


def versions() -> Iterator[Line]:
    """Python, this package, and which extras can be imported."""
    from importlib.metadata import version
    from importlib.util import find_spec

    yield Line(
        "ok", "robustjudge", f"{version('robustjudge')}, Python {platform.python_version()}, {platform.system()}"
    )
    if platform.system() not in ("Linux", "Darwin"):
        yield Line("warn", "platform", "only Linux and macOS are tested")
    for extra, module, use in (
        ("local", "xllamacpp", "embedded model"),
        ("whitebox", "torch", "gradients, MiniLM"),
        ("text", "codebleu", "CodeBLEU"),
        ("export", "pyarrow", "Parquet"),
    ):
        there = find_spec(module) is not None
        how = "installed" if there else f"not installed (pip install 'robustjudge[{extra}]')"
        yield Line("ok", f"extra {extra}", f"{how}: {use}")
    from robustjudge.models.pull import MODELS, is_pulled

    for name in MODELS:
        state = "in the cache" if is_pulled(name) else f"not in the cache (robustjudge models pull {name})"
        yield Line("ok", f"model {name}", state)


def disk(ledger: Path) -> Iterator[Line]:
    """Free space where the ledger and the runs are written."""
    here = next(p for p in (ledger.absolute().parent, *ledger.absolute().parents) if p.exists())
    free = shutil.disk_usage(here).free
    level: Literal["ok", "warn"] = "ok" if free >= LOW_DISK else "warn"
    yield Line(level, "disk", f"{free / 1e9:.1f} GB free")


def ledger_health(ledger: Path) -> Iterator[Line]:
    """Can the ledger be read, is it intact, and how much does it hold?"""
    from robustjudge.engine.writer import connect

    if not ledger.exists():
        yield Line("ok", "ledger", f"{ledger}: none yet")
        return
    try:
        db = connect(ledger, readonly=True)
        try:
            (state,) = db.execute("PRAGMA quick_check").fetchone()
            (count,) = db.execute("SELECT count(*) FROM replies").fetchone()
        finally:
            db.close()
    except sqlite3.DatabaseError as fault:
        yield Line("fault", "ledger", f"{ledger}: {fault}; restore it, or delete it (finished runs do not need it)", 4)
        return
    if state != "ok":
        yield Line("fault", "ledger", f"{ledger}: damaged ({state}); delete it (finished runs do not need it)", 4)
        return
    yield Line("ok", "ledger", f"{ledger}: {count} replies, {ledger.stat().st_size / 1e6:.1f} MB")


def configured(config: Path | None) -> Iterator[Line]:
    """The configuration, its plan, its cases and its models, without a call."""
    from robustjudge.config.build import plan_of, settings_of
    from robustjudge.config.files import found, read_config
    from robustjudge.errors import RobustJudgeError
    from robustjudge.execution import models_of_plan

    path = found(config)
    if path is None:
        yield Line("warn", "configuration", "no robustjudge.yaml here; `robustjudge init` writes one")
        return
    try:
        settings = read_config(path)
        plan: Any = plan_of(settings, path.parent)
        plan.cases.read_through()
        cells = sum(1 for _ in plan.cells())
    except RobustJudgeError as fault:
        yield Line("fault", "configuration", str(fault))
        return
    if not settings.judges:
        yield Line("warn", "configuration", f"{path} names no judge")
    yield Line(
        "ok", "configuration", f"{path}: {len(settings.judges)} judges, {len(plan.attacks)} attacks, {cells} cells"
    )
    bad = plan.cases.bad_rows
    yield Line("warn" if bad else "ok", "cases", f"{plan.cases.count} usable, {bad} rows set aside")
    for row in plan.cases.bad[:5]:
        yield Line("warn", "row", str(row))
    given = settings_of(settings)
    for name in models_of_plan(plan):
        yield from endpoint(name, given.get(name))
    yield from services(settings, path.parent)


def services(settings: Any, base: Path) -> Iterator[Line]:
    """The judges that somebody else owns: can they be opened, and are their keys set?"""
    from robustjudge.config.build import services_of
    from robustjudge.errors import RobustJudgeError

    try:
        found = services_of(settings, base)
    except RobustJudgeError as fault:
        yield Line("fault", "services", str(fault))
        return
    for name, service in found.items():
        try:
            getattr(service, "check", lambda: None)()
        except RobustJudgeError as fault:
            yield Line("fault", f"service {name}", str(fault))
        else:
            yield Line("ok", f"service {name}", "can be opened; nothing was sent")


def endpoint(name: str, settings: Any) -> Iterator[Line]:
    """One model: does its name open, is its key set (never shown), is it pinned, is its family known?"""
    import os

    from robustjudge.errors import RobustJudgeError
    from robustjudge.models.base import Settings
    from robustjudge.models.families import family_of
    from robustjudge.models.registry import is_alias, open_model, parse_name

    settings = settings or Settings()
    try:
        model = open_model(name, settings)
    except RobustJudgeError as fault:
        yield Line("fault", f"model {name}", str(fault))
        return
    family = family_of(name, settings.family)
    yield Line("ok", f"model {name}", f"{getattr(model, 'endpoint', 'this machine')}, family {family}")
    usual = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}.get(parse_name(name).provider, "")
    variable = settings.key_env or usual
    if variable and not os.environ.get(variable):
        yield Line("fault", f"model {name}", f"the variable {variable} is not set, so there is no key")
    elif variable:
        yield Line("ok", f"model {name}", f"the variable {variable} is set")
    if is_alias(name):
        yield Line("warn", f"model {name}", "an alias: the provider may change the model behind it; name a dated one")


def live_calls(config: Path | None) -> Iterator[Line]:
    """One short call to every model."""
    from robustjudge.config.build import plan_of, settings_of
    from robustjudge.config.files import found, read_config
    from robustjudge.execution import in_loop, models_of_plan
    from robustjudge.models.doctor import live

    path = found(config)
    if path is None:
        return
    settings = read_config(path)
    given = settings_of(settings)
    for name in models_of_plan(plan_of(settings, path.parent)):
        check = in_loop(lambda name=name: live(name, given.get(name)))  # type: ignore[misc]
        for text in check.lines:
            yield Line("ok" if check.ok else "fault", "live", text, 4)
