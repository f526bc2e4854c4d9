"""``robustjudge run``: a configuration (or flags) to a run folder with its reports."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

_RAISED = re.compile(r"[A-Za-z_][\w.]*: ")
"""The line of a traceback that says what was raised."""


@app.command("run")
def run(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="robustjudge.yaml")] = None,
    suite: Annotated[str, typer.Option(help="a frozen, versioned plan (see `robustjudge list suites`)")] = "",
    judge: Annotated[str, typer.Option(help="model of the judge, provider/model")] = "",
    template: Annotated[
        str, typer.Option(help="shipped judge prompt for --judge (see `robustjudge list templates`)")
    ] = "",
    constrained: Annotated[
        bool, typer.Option(help="hold replies to the verdict line: the likeliest label (local models)")
    ] = False,
    expect: Annotated[bool, typer.Option(help="ask label probabilities too, for an expected score")] = False,
    cases: Annotated[str, typer.Option(help="builtin, paper (T1..T8), one of T1..T8, or a file")] = "",
    root: Annotated[Path | None, typer.Option(help="folder of the published data files, for T1..T8")] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="attack, suite or category, or artefact:FILE, replay:FILE, payload:FILE, variants:FILE; repeat for several"
        ),
    ] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="pointwise, pairwise, best_of:K")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="cases per task (per file for your own)")] = None,
    control: Annotated[
        list[str] | None, typer.Option(help="controls; default identity, neutral/H6, shuffled_payload/H6")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="first seed")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="number of seeds")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="final evaluations per attacked text")] = None,
    concurrency: Annotated[int, typer.Option("--max-concurrency", "-j", min=0, help="live trials (0: automatic)")] = 0,
    max_calls: Annotated[int | None, typer.Option(min=1)] = None,
    max_cost: Annotated[float | None, typer.Option(help="USD for the whole run, a hard cap")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="where run folders are made")] = Path("runs"),
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
    mode: Annotated[str, typer.Option(help="live, replay-only, record or off")] = "live",
    resume: Annotated[Path | None, typer.Option(help="go on with a run folder (or `runs` for the latest)")] = None,
    retry_errors: Annotated[bool, typer.Option(help="with --resume: run cells again whose row is an error")] = False,
    store: Annotated[str, typer.Option(help="full or hashes (no text is kept)")] = "full",
    redact: Annotated[bool, typer.Option("--redact-payloads", help="reports show hashes instead of texts")] = False,
    batch: Annotated[Path | None, typer.Option(help="write unsent calls here for a provider's batch service")] = None,
    dry_run: Annotated[bool, typer.Option(help="tell calls, tokens, cost, time and precision; send nothing")] = False,
    pilot: Annotated[Path | None, typer.Option(help="with --dry-run: a run whose searches tell what to expect")] = None,
    fail_fast: Annotated[bool, typer.Option(help="stop at the first error of our side")] = False,
    quick: Annotated[bool, typer.Option(help="attack settings for a small local model")] = False,
    fleet: Annotated[Path | None, typer.Option(help="fleet file: run, decide and watch all its judges")] = None,
    changed_only: Annotated[
        bool,
        typer.Option("--changed-only", help="leave out judges whose prompt, model, data and attack did not change"),
    ] = False,
) -> None:
    """Plan and execute; the reports lie in the run folder at the end."""
    from robustjudge.config.build import plan_of, services_of, settings_of, with_limit
    from robustjudge.config.files import found, read_config
    from robustjudge.errors import ConfigError
    from robustjudge.execution import Options, checked, execute

    if fleet is not None:
        if config or suite or judge or cases or attack or resume or dry_run or batch:
            raise ConfigError("--fleet takes what is run from its file; leave the options that say it again out")
        from robustjudge.cli.fleet import run_fleet

        lasting = None if mode == "off" else ledger
        options = Options(root=output, ledger=lasting, mode=mode, window=concurrency, store=store)  # type: ignore[arg-type]
        raise typer.Exit(run_fleet(fleet, options, changed_only))
    if changed_only and resume:
        raise ConfigError("--resume goes on with a run as it was planned; --changed-only plans a new one")
    if not resume and not (suite and judge):
        config = found(config)
    if resume is not None and config is None:
        settings, base = stored(resume)
    else:
        overrides: dict[str, Any] = {
            "attacks": attack,
            "protocols": protocol,
            "controls": control,
            "seed": seed,
            "seeds": seeds,
            "repeats": repeats,
            "max_calls": max_calls,
            "max_cost": max_cost,
            "quick": quick or None,
        }
        if judge:
            own = {"model": judge, "template": template, "constrained": constrained, "expect": expect}
            if template == "brief":
                own["fence"] = "plain"  # short prompts that share their beginning are what makes a local model bearable
            overrides["judges"] = {judge: own}
        if cases:
            overrides["cases"] = [{"source": cases, "root": str(root.absolute()) if root else ""}]
        if suite:
            from robustjudge.suite import compared, config_of, quoted

            given = {**written(config), **({"judges": overrides.pop("judges")} if judge else {})}
            frozen = config_of(suite, given, str(root.absolute()) if root and not cases else "")
            overrides = {**frozen, **{k: v for k, v in overrides.items() if v is not None}}
        settings, base = read_config(config, overrides), (config.parent if config else Path())
        settings = with_limit(settings, limit)
        if suite:
            plain = read_config(config, frozen).model_dump(mode="json")
            changed = compared(plain, settings.model_dump(mode="json"))
            settings = settings.model_copy(update={"suite": quoted(settings.suite, changed)})
    if not settings.judges:
        raise ConfigError("no judge: give --judge provider/model, or a configuration with judges (`robustjudge init`)")
    if mode not in ("live", "replay-only", "record", "off") or store not in ("full", "hashes"):
        raise ConfigError("--mode is live, replay-only, record or off; --store is full or hashes")
    plan = plan_of(settings, base)
    inputs = taken_in(plan)
    whole = {**settings.model_dump(mode="json"), "base": str(base.absolute())}
    if changed_only:
        from robustjudge.config.changes import changes

        told = changes(plan, whole, inputs, output)
        for name, change in told.items():
            typer.echo(visible(f"{name}: {change.words}", 300), err=True)
        plan = replace(plan, judges=tuple(j for j in plan.judges if told[j[0]].run is None or told[j[0]].parts))
        if not plan.judges:
            return
    from robustjudge.defenses.threshold import within

    for warning in dict.fromkeys(w for _, d in plan.defenses for t in within(d) for w in t.warnings()):
        sys.stderr.write(f"warning: {visible(warning, 600)}\n")
    if dry_run:
        from robustjudge.forecast import expected, forecast
        from robustjudge.forecast_text import pilot_words, words

        checked(plan, Options(models=settings_of(settings)))
        ahead = forecast(plan, settings_of(settings))
        typer.echo(words(ahead))
        if pilot is not None:
            from robustjudge.engine.folder import Folder
            from robustjudge.table import Table

            typer.echo(pilot_words(expected(plan, Table.load(Folder.open(pilot).table))))
        elif ahead.adaptive:
            typer.echo("what searches may be expected to use: run a few cases first, then --dry-run --pilot runs")
        return
    from robustjudge.cli.progress import Progress

    planned = sum(1 for _ in plan.cells())
    sys.stderr.write(f"{inputs['cases']} cases, {planned} cells\n")
    with Progress(planned) as progress:
        done = execute(
            plan,
            Options(
                root=output,
                ledger=None if mode == "off" else ledger,
                mode=mode,  # type: ignore[arg-type]
                slug=settings.name,
                resume=resume,
                window=concurrency,
                max_calls=settings.max_calls,
                max_cost=settings.max_cost,
                store=store,
                fail_fast=fail_fast,
                batch=batch,
                retry_errors=retry_errors,
                models=settings_of(settings),
                services=services_of(settings, base),
                config=whole,
                inputs=inputs,
                listener=progress,
            ),
        )
    finish(done.path, redact)
    sys.stderr.write(f"{progress.words()}\n")
    require_usable(done.path)


def written(config: Path | None) -> dict[str, Any]:
    """What a configuration file says, unchecked; nothing without one."""
    from robustjudge.config.files import read_table, read_yaml

    if config is None:
        return {}
    return read_table(config) if config.name == "pyproject.toml" else read_yaml(config)


def taken_in(plan: Any) -> dict[str, Any]:
    """Read every case once, before anything is sent: bad rows are told on stderr with file and line, and counted."""
    intake = plan.cases.read_through()
    for row in intake.bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    if intake.bad_rows:
        sys.stderr.write(f"{intake.bad_rows} rows set aside in all; {intake.count} cases can be used\n")
    if not intake.count:
        from robustjudge.errors import Inconclusive

        why = f"all {intake.bad_rows} rows were set aside" if intake.bad_rows else "the sources hold none"
        raise Inconclusive(f"no case can be used ({why}), so nothing can be measured; correct the rows and run again")
    told: dict[str, Any] = intake.as_dict()
    return told


def stored(path: Path) -> tuple[Any, Path]:
    """The configuration that a run folder was made from."""
    from robustjudge.config.files import validated
    from robustjudge.config.schema import Config
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import ConfigError

    found = dict(Folder.open(path).manifest().get("config", {}))
    if not found:
        raise ConfigError(f"{path}: the run keeps no configuration (it was made in Python); give -c FILE")
    base = Path(found.pop("base", "."))
    return validated(Config, found, f"{path}/manifest.json"), base


def require_usable(path: Path) -> None:
    """Raise :class:`Incomplete` when not one row has both verdicts: an outage must not read as an outcome."""
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import Incomplete
    from robustjudge.table import open_run

    db = open_run(Folder.open(path).table)
    try:
        usable = "clean_status = 'ok' AND attacked_status = 'ok'"
        rows, ok = db.execute(f"SELECT count(*), total({usable}) FROM trials").fetchone()
        sql = "SELECT reason, clean_status, cell, error FROM trials GROUP BY reason ORDER BY count(*) DESC LIMIT 1"
        found = db.execute(sql).fetchone()
    finally:
        db.close()
    if rows and not ok:
        raise Incomplete(f"0 of {rows} rows have a verdict to compare, so nothing was measured; {_next(*found)}")


def _next(reason: str, status: str, cell: str, error: str | None) -> str:
    """Why most rows of a run that measured nothing have no verdict, and what to do about it."""
    if reason == "no_reference":
        return "most cases have no reference, which pairs and best-of-K need: add references, or judge pointwise"
    if reason == "our_error":
        lines = [x for x in (error or "").splitlines() if _RAISED.match(x)]
        told = lines[-1] if lines else reason
        return f"most often: {told}; `robustjudge trace {cell}` shows where"
    if status == "error":
        return (
            f"most often: {reason}; `robustjudge doctor --live` checks the endpoint,"
            " `robustjudge run --resume runs --retry-errors` tries again"
        )
    if reason.startswith(("no score on the scale at", "no slot number at", "slot ")):
        return (
            f"most often: {status} ({reason}); the report shows answers: compare low, high and the paths of the service"
        )
    return f"most often: {status} ({reason}); the report shows replies, `robustjudge lint` checks the prompt and its reader"


def finish(path: Path, redact: bool = False) -> None:
    """Write the reports of a run and print its summary."""
    from robustjudge.reports import summary, write

    written = write(path, ("html", "md", "json"), redact=redact)
    typer.echo(visible(summary(path)))
    for name, file in written.items():
        typer.echo(f"{name}: {file}")
    show_suite(path)


def show_suite(path: Path) -> None:
    """For the run of a suite: write its tables beside the published ones, and print them."""
    from robustjudge.shapes.build import told, write

    for file in write(path).values():
        typer.echo(f"suite: {file}")
    if text := told(path):
        typer.echo(f"\n{text}")
