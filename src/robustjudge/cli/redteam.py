"""``robustjudge redteam``: generate adversarial variants, hold them for review, and execute what was approved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustjudge.cli.terminal import visible

if TYPE_CHECKING:
    from robustjudge.config.schema import Config
    from robustjudge.redteam.generate import Brief, Generator, Made

app = typer.Typer(add_completion=False)


@app.command("redteam")
def redteam(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="robustjudge.yaml")] = None,
    judge: Annotated[str, typer.Option(help="a judge of the configuration, or provider/model")] = "",
    template: Annotated[str, typer.Option(help="shipped judge prompt for --judge provider/model")] = "",
    rubric: Annotated[Path | None, typer.Option(help="file with the scoring rubric, for the generator")] = None,
    cases: Annotated[str, typer.Option(help="inputs to be judged: builtin, T1..T8 or a file")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="cases per task (per file for your own)")] = None,
    protocol: Annotated[
        str, typer.Option(help="pointwise, pairwise, best_of:K; default: the configuration's first")
    ] = "",
    strategies: Annotated[
        str,
        typer.Option(
            "--strategies",
            "-s",
            help='names, aliases, categories or all, by commas; for a generator also "..."=CATEGORY:SEVERITY',
        ),
    ] = "",
    pack: Annotated[
        list[Path] | None, typer.Option(help="payload pack of your domain (TOML); repeat for several")
    ] = None,
    number: Annotated[
        int | None, typer.Option("--number", "-n", min=1, help="variants per case; default: one a strategy")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0.0, help="allowed swing in scale units; default: the policy's")
    ] = None,
    generator: Annotated[str, typer.Option(help="model that writes the variants; default: the template engine")] = "",
    constrained: Annotated[
        bool | None,
        typer.Option(
            help="hold the generator to the contract (default: local models, by a grammar that keeps the response)"
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=64, help="longest reply of the generator")] = 1024,
    manual: Annotated[
        Path | None, typer.Option(help="inputs by hand: .jsonl, or a contract A document (.json)")
    ] = None,
    review: Annotated[
        str,
        typer.Option(help="required, high, sample:N or none; default: none for shipped texts, required for all others"),
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="review file")] = Path("review/redteam.jsonl"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    print_prompt: Annotated[
        bool, typer.Option("--print-prompt", help="show the red-team prompt, filled, and stop")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="tell how many texts and calls; ask and write nothing")
    ] = False,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute", help="run what the file releases; without -s, --generator, --manual nothing new is made"
        ),
    ] = False,
    runs: Annotated[Path, typer.Option(help="where --execute makes its run folder")] = Path("runs"),
    max_calls: Annotated[int | None, typer.Option(min=1)] = None,
    max_cost: Annotated[float | None, typer.Option(help="USD, a hard cap")] = None,
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
) -> None:
    """Write variants of responses that should not change their score; a person releases them; then they are judged.

    A second call with the same options adds nothing and loses nothing: texts are seeded, replies lie in the ledger.
    """
    from robustjudge.redteam.batch import Review

    asked = Review.of(review) if review else None
    settings, base, name = _settings(config, judge, template, cases, limit, protocol, max_calls, max_cost)
    only_run = execute and output.exists() and not (strategies or manual or generator or pack)
    if not only_run:
        brief, own = _brief(settings, base, name, strategies, pack or [], number, threshold, rubric, generator, seed)
        writer = _generator(generator, constrained, max_tokens)
        if print_prompt:
            from robustjudge.redteam.prompt import filled, values

            told = values(brief.judge, brief.cases[0], brief.strategies, brief.number, brief.threshold, brief.rubric)
            typer.echo(visible(filled(told).text))
            return
        if dry_run:
            typer.echo(_forecast(brief, writer))
            return
        _generate(brief, settings, base, writer, manual, asked, output, name, ledger, own)
    if execute:
        _execute(settings, base, name, output, runs, ledger, threshold)


def _settings(
    config: Path | None,
    judge: str,
    template: str,
    cases: str,
    limit: int | None,
    protocol: str,
    calls: int | None,
    cost: float | None,
) -> tuple[Config, Path, str]:
    """The configuration with one judge, its folder, and that judge's name."""
    from robustjudge.config.build import with_limit
    from robustjudge.config.files import found, read_config
    from robustjudge.errors import ConfigError, UnknownName

    config = found(config)
    plain = read_config(config, {})
    over: dict[str, Any] = {"max_calls": calls, "max_cost": cost}
    if protocol:
        over["protocols"] = [protocol]
    if cases:
        over["cases"] = [{"source": cases}]
    if judge and judge not in plain.judges:
        if "/" not in judge:
            raise UnknownName("judge", judge, tuple(plain.judges) or ("provider/model",))
        over["judges"] = {judge: {"model": judge, "template": template}}
    settings = with_limit(read_config(config, over), limit)
    names = [judge] if judge else list(settings.judges)
    if len(names) != 1:
        raise ConfigError(
            f"the judge under test is not clear: name one with --judge ({', '.join(names) or 'the configuration has none'})"
        )
    settings = settings.model_copy(update={"judges": {names[0]: settings.judges[names[0]]}})
    return settings, config.parent if config else Path(), names[0]


def _brief(
    settings: Config,
    base: Path,
    name: str,
    strategies: str,
    pack: list[Path],
    number: int | None,
    threshold: float | None,
    rubric: Path | None,
    generator: str,
    seed: int,
) -> tuple[Brief, tuple[str, ...]]:
    """What is tested, with the ids of the user's packs."""
    from robustjudge.config.build import cases_of, judge_of, protocol_of, with_packs
    from robustjudge.errors import Inconclusive
    from robustjudge.redteam.generate import Brief
    from robustjudge.redteam.strategies import parse

    intake = cases_of(settings.cases, base).read_through()
    for row in intake.bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    held = tuple(intake())
    if not held:
        raise Inconclusive("no case can be used, so there is nothing to vary")
    own = tuple(with_packs([f"payload:{p.absolute()}" for p in pack], Path()))
    named = strategies or ",".join(own) or "all"
    found = parse(named, own, bool(generator))
    judge, protocol = judge_of(settings.judges[name], base), protocol_of(settings.protocols[0])
    low, high = _range(judge, protocol)
    limit = threshold if threshold is not None else _policy(settings, base).swing("", "high", low, high)
    brief = Brief(
        judge,
        protocol,
        held,
        found,
        number or max(1, len([s for s in found if s.words or not generator])),
        f"{limit:g} points (the scale runs from {low:g} to {high:g})" if high - low > 1 else "one verdict",
        seed,
        _text(rubric) if rubric else "",
        low if high - low > 1 else None,
    )
    return brief, own


def _policy(settings: Config, base: Path) -> Any:
    from robustjudge.gate.policy import read_policy

    return read_policy(base / settings.policy if settings.policy else None)


def _range(judge: Any, protocol: Any) -> tuple[float, float]:
    """The ends of the judge's scale; 0 and 1 where verdicts are labels or choices."""
    from robustjudge.judges import Service
    from robustjudge.plan import prompted

    if isinstance(judge, Service):
        return judge.low, judge.high
    for p in prompted(judge):
        scale = p.template.form({"pointwise": 1, "pairwise": 2}.get(protocol.kind, 3)).scale
        if scale.numeric and scale.low is not None and scale.high is not None and protocol.kind == "pointwise":
            return scale.low, scale.high
    return 0.0, 1.0


def _text(path: Path) -> str:
    from robustjudge.errors import DataError

    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path}: cannot be read ({fault})") from None


def _generator(model: str, constrained: bool | None, max_tokens: int) -> Generator | None:
    from robustjudge.redteam.generate import Generator

    if not model:
        return None
    local = model.startswith(("llamacpp/", "llamacpp:"))
    held = local if constrained is None else constrained
    return Generator(model, ("grammar" if local else "schema") if held else "", max_tokens)


def _forecast(brief: Brief, writer: Generator | None) -> str:
    from robustjudge.redteam.generate import requests
    from robustjudge.redteam.strategies import shares

    texts = len(brief.cases) * sum(n for _, n in shares(brief.strategies, brief.number))
    if writer is None:
        return f"{texts} texts by the template engine, 0 calls"
    todo = requests(brief)
    return f"{sum(n for *_, n in todo)} texts by {writer.model}, {len(todo)} calls of at most {writer.max_tokens} tokens each"


def _generate(
    brief: Brief,
    settings: Config,
    base: Path,
    writer: Generator | None,
    manual: Path | None,
    asked: Any,
    output: Path,
    name: str,
    ledger: Path,
    own: tuple[str, ...],
) -> None:
    """Make the variants, apply the review rule, and write the file and a report beside it."""
    from robustjudge.redteam.batch import Review, ready, write
    from robustjudge.redteam.generate import by_template
    from robustjudge.variants import read_variants

    if manual is not None:
        from robustjudge.redteam.manual import by_hand

        bad: list[Any] = []
        made, source = by_hand(brief, manual, bad), "manual"
        for row in bad[:20]:
            sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    elif writer is not None:
        made, source = _written(brief, settings, base, writer, name, ledger), "generator"
    else:
        made, source = by_template(brief), "template"
    shipped = source == "template" and all(s.shipped for s in brief.strategies)
    rule = asked or Review.of("none" if shipped else "required")
    fresh, known = write(output, rule.applied(made.variants))
    report = {
        "judge": name,
        "source": source,
        "generator": writer.model if source == "generator" and writer else None,
        "constrained": writer.constrained if source == "generator" and writer else None,
        "review": rule.name,
        "cases": len(brief.cases),
        "variants_per_case": brief.number,
        "strategies": [s.name for s in brief.strategies],
        "own_packs": list(own),
        "threshold": brief.threshold,
        "seed": brief.seed,
        **made.as_dict(),
    }
    beside = output.with_suffix(f".{source}.json")
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", "utf-8")
    _tell(made, source, fresh, known)
    found = ready(read_variants(output).values() if output.exists() else ())
    typer.echo(f"{output}: {found.words}")
    if found.waiting:
        typer.echo(f"decide: robustjudge review --inputs {output}")


def _written(brief: Brief, settings: Config, base: Path, writer: Generator, name: str, ledger: Path) -> Made:
    """Ask the generator, with ledger, limits and caps."""
    from robustjudge.cli.progress import Progress
    from robustjudge.config.build import services_of, settings_of
    from robustjudge.errors import ConfigError, Incomplete
    from robustjudge.execution import Options, flown, in_loop
    from robustjudge.judges import models_of
    from robustjudge.models.families import UNKNOWN, family_of, same_family
    from robustjudge.redteam.generate import by_model, requests

    mute = [s.name for s in brief.strategies if not s.words]
    if mute:
        sys.stderr.write(f"only the template engine makes {', '.join(mute)}: leave --generator out for these\n")
    if not requests(brief):
        raise ConfigError("none of these strategies can be told to a model; leave --generator out")
    theirs = family_of(writer.model, settings.models[writer.model].family if writer.model in settings.models else "")
    for model in models_of(brief.judge):
        mine = family_of(model, settings.judges[name].family)
        if same_family(mine, theirs):
            sys.stderr.write(f"warning: judge and generator are of one family ({theirs}): they may share blind spots\n")
        elif UNKNOWN in (mine, theirs):
            sys.stderr.write("note: the family of judge or generator is unknown, so a shared one is not excluded\n")
    with Progress(None) as progress:
        options = Options(
            ledger=ledger,
            slug="redteam",
            max_calls=settings.max_calls,
            max_cost=settings.max_cost,
            models=settings_of(settings),
            services=services_of(settings, base),
            listener=progress,
        )
        done: Made = in_loop(lambda: flown(lambda: by_model(brief, writer), [writer.model], options))
    sys.stderr.write(f"{progress.words()}\n")
    if done.wanted and sum(n for r, n in done.refused.items() if r.startswith("no reply")) == sum(done.wanted.values()):
        raise Incomplete(
            f"the generator answered nothing ({next(iter(done.refused))}); `robustjudge doctor --live` checks it"
        )
    return done


def _tell(made: Made, source: str, fresh: int, known: int) -> None:
    total, good = sum(made.wanted.values()), sum(made.accepted.values())
    share = f" ({100 * good / total:.0f} %)" if total else ""
    typer.echo(f"{source}: {good} of {total} texts accepted{share}; {fresh} new, {known} were there before")
    for reason, n in made.refused.most_common():
        typer.echo(f"  refused {n}: {visible(reason, 200)}")


def _execute(
    settings: Config, base: Path, name: str, inputs: Path, runs: Path, ledger: Path, threshold: float | None
) -> None:
    """Judge the approved variants; the run is one like any other, and its contracts are written."""
    from dataclasses import replace

    from robustjudge.cli.execute import finish, require_usable, taken_in
    from robustjudge.cli.progress import Progress
    from robustjudge.config.build import plan_of, services_of, settings_of
    from robustjudge.execution import Options, execute
    from robustjudge.gate import contracts
    from robustjudge.gate.check import check
    from robustjudge.redteam.batch import ready
    from robustjudge.variants import read_variants

    attacks = [f"variants:{inputs.absolute()}"]
    more = {"attacks": attacks, "controls": ["identity"], "repeats": max(2, settings.repeats), "name": "redteam"}
    settings = settings.model_copy(update=more)
    plan = plan_of(settings, base)
    typer.echo(f"{inputs}: {ready(read_variants(inputs).values()).words}")
    taken = taken_in(plan)
    with Progress(sum(1 for _ in plan.cells())) as progress:
        done = execute(
            plan,
            Options(
                root=runs,
                ledger=ledger,
                slug=settings.name,
                max_calls=settings.max_calls,
                max_cost=settings.max_cost,
                models=settings_of(settings),
                services=services_of(settings, base),
                config={**settings.model_dump(mode="json"), "base": str(base.absolute())},
                inputs=taken,
                listener=progress,
            ),
        )
    finish(done.path)
    sys.stderr.write(f"{progress.words()}\n")
    require_usable(done.path)
    rules = _policy(settings, base)
    if threshold is not None:
        rules = replace(rules, unit="points", threshold=threshold)
    e, d = check(done.path, rules, judge=name)
    contracts.write(e, d)
    found = [o for o in d.outcomes if contracts.vulnerable(o)]
    swings = [abs(o.score_delta) for o in d.outcomes if o.score_delta is not None]
    largest = f"{max(swings):g}" if swings else "none"
    typer.echo(
        f"{len(d.outcomes)} tests, {len(found)} vulnerabilities, largest swing {largest}: {done.path}/adversarial"
    )
    typer.echo(f"decide: robustjudge gate {done.path}")
