"""``robustjudge bias``: probe a judge for biases, with matched twins, both orders and repeats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible


def bias(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="robustjudge.yaml with judges and cases")
    ] = None,
    judge: Annotated[str, typer.Option(help="model of the judge, provider/model")] = "",
    template: Annotated[str, typer.Option(help="shipped judge prompt for --judge")] = "",
    constrained: Annotated[bool, typer.Option(help="hold replies to the verdict line (local models)")] = False,
    cases: Annotated[str, typer.Option(help="builtin, a task, or a file (task, response, reference)")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="cases per task (per file for your own)")] = None,
    probe: Annotated[list[str] | None, typer.Option(help="probe by name; repeat; default: all")] = None,
    probes_file: Annotated[Path | None, typer.Option("--probes", help="TOML file with probes of your own")] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="pairwise, pointwise; default: both")] = None,
    band: Annotated[float, typer.Option(help="effects within +- this do not matter")] = 0.1,
    minimum: Annotated[int, typer.Option(min=1, help="fewer cases than this decide nothing")] = 60,
    gate: Annotated[list[str] | None, typer.Option(help="hypotheses that gate; default: the five must-biases")] = None,
    population: Annotated[str, typer.Option(help="what the cases stand for, in words")] = "",
    profile: Annotated[Path | None, typer.Option(help="a profile.json of this judge to add the findings to")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="where run folders are made")] = Path("runs"),
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
    concurrency: Annotated[int, typer.Option("--max-concurrency", "-j", min=0, help="live trials (0: automatic)")] = 0,
    max_calls: Annotated[int | None, typer.Option(min=1)] = None,
    dry_run: Annotated[bool, typer.Option(help="tell how many calls it would take; send nothing")] = False,
    show: Annotated[bool, typer.Option("--list", help="list the probes and their twins")] = False,
) -> None:
    """Probe for biases.  Exit 0: every gating bias is bounded; 1: one is found; 3: one is open."""
    from robustjudge.bias import BiasPolicy, edits, probes, write
    from robustjudge.bias.variants import CLAIMS

    if probes_file is not None:
        for own in edits.read(probes_file.read_text("utf-8"), str(probes_file)).values():
            edits.add(own)
    if show:
        for p in probes().values():
            typer.echo(f"{p.name} ({p.group}{', must' if p.must else ''}): {p.claim}; twin: {p.twin}")
        for name, claim in CLAIMS.items():
            typer.echo(f"{name} (prompt): {claim}; twin: the same prompt asked again")
        return
    settings, base = _settings(config, judge, template, constrained, cases, limit)
    policy = BiasPolicy(band, minimum, tuple(gate) if gate else BiasPolicy().gating)
    told = population or ", ".join(c.source for c in settings.cases)
    report, path = _run(
        settings, base, policy, told, tuple(probe or ()), protocol, output, ledger, concurrency, max_calls, dry_run
    )
    if report is None:
        return
    written = write(report, path)
    for f in report.findings:
        if f.gating or f.decision in ("biased", "degenerate"):
            typer.echo(visible(f"{f.decision}: {f.statement}", 2000))
    for name, file in written.items():
        typer.echo(f"{name}: {file}")
    if profile is not None:
        _into(profile, report)
    raise typer.Exit(report.exit_code)


def _settings(
    config: Path | None, judge: str, template: str, constrained: bool, cases: str, limit: int | None
) -> tuple[Any, Path]:
    from robustjudge.config.build import with_limit
    from robustjudge.config.files import found, read_config
    from robustjudge.errors import ConfigError

    config = None if judge and config is None else found(config)
    over: dict[str, Any] = {}
    if judge:
        own: dict[str, Any] = {"model": judge, "template": template, "constrained": constrained}
        if template == "brief":
            own["fence"] = "plain"
        over["judges"] = {judge: own}
    if cases:
        over["cases"] = [{"source": cases}]
    settings = with_limit(read_config(config, over), limit)
    if not settings.judges:
        raise ConfigError("no judge: give --judge provider/model, or -c FILE with judges")
    return settings, config.parent if config else Path()


def _run(
    settings: Any,
    base: Path,
    policy: Any,
    population: str,
    names: tuple[str, ...],
    protocols: list[str] | None,
    output: Path,
    ledger: Path,
    window: int,
    max_calls: int | None,
    dry_run: bool,
) -> tuple[Any, Path]:
    from robustjudge.bias import bias_plan, findings
    from robustjudge.bias.design import BOTH, facts_of
    from robustjudge.cli.execute import require_usable
    from robustjudge.cli.progress import Progress
    from robustjudge.config.build import cases_of, judge_of, protocol_of, services_of, settings_of
    from robustjudge.execution import Options, execute
    from robustjudge.models.families import family_of
    from robustjudge.plan import prompted

    source = cases_of(settings.cases, base)
    held = tuple((name, judge_of(j, base)) for name, j in settings.judges.items())
    wanted = tuple(protocol_of(p) for p in protocols) if protocols else BOTH
    plan = bias_plan(source, held, wanted, names)
    intake = source.read_through()
    for row in intake.bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    planned = sum(1 for _ in plan.cells())
    kinds = ", ".join(p.kind for p in plan.protocols)
    sys.stderr.write(f"{intake.count} cases, {planned} cells ({kinds})\n")
    if dry_run:
        calls = sum(2 if c.protocol.kind == "pairwise" else 1 for c in plan.cells())
        typer.echo(
            f"{calls} edited and repeated calls at most, and 2 to 4 per case for the untouched answers; nothing was sent"
        )
        return None, Path()
    with Progress(planned) as progress:
        done = execute(
            plan,
            Options(
                root=output,
                ledger=ledger,
                slug="bias",
                window=window,
                max_calls=max_calls or settings.max_calls,
                models=settings_of(settings),
                services=services_of(settings, base),
                listener=progress,
                inputs=intake.as_dict(),
            ),
        )
    require_usable(done.path)
    families = {name: _family(family_of, prompted(j)) for name, j in held}
    facts = facts_of(source())
    report = findings(done.table(), facts, policy, families=families, population=population, run=done.path)
    _strangers(report, facts, families)
    return report, done.path


def _strangers(report: Any, facts: Any, families: dict[str, str]) -> None:
    """Say which judges wrote none of the answers, so that a wrong family name does not pass for a missing bias."""
    from robustjudge.models.families import family_of

    told = [f.get(k) for f in facts.values() for k in ("generator", "reference_generator")]
    writers = sorted({family_of(str(name)) for name in told if name})
    for judge, family in families.items():
        if writers and not any(f.judge == judge and f.group == "self_preference" for f in report.findings):
            sys.stderr.write(
                visible(
                    f"self-preference of {judge} is not measured: its family is {family or 'unknown'}, the answers are by"
                    f" {', '.join(writers)} (`family` in the judge's settings names another)\n"
                )
            )


def _family(family_of: Any, found: Any) -> str:
    return str(family_of(found[0].model, found[0].family)) if found else ""


def _into(path: Path, report: Any) -> None:
    """Add the findings to a package; it gets a new content address."""
    from dataclasses import replace

    from robustjudge.profile import load_profile, save_profile

    address = save_profile(replace(load_profile(path), bias=tuple(f.as_dict() for f in report.findings)), path)
    typer.echo(f"findings added to {path}, now {address[:12]}")
