"""From a configuration to a plan: names become attacks, judges, cases and settings, all of it before any call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustjudge.attacks import library
from robustjudge.attacks.base import Attack
from robustjudge.config.intake import Intake
from robustjudge.config.schema import CasesConfig, Config, JudgeConfig, ThreatConfig
from robustjudge.datasets.base import KINDS, OPEN, Cases, OnBad
from robustjudge.datasets.registry import load
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.judges import Judge, Panel, Prompted, Repeated, Service
from robustjudge.nouns import Budget, Sampling
from robustjudge.plan import Plan, Source
from robustjudge.prompts.declare import declare
from robustjudge.prompts.library import PROTOCOLS
from robustjudge.prompts.template import Template
from robustjudge.protocols import Appeal, BestOf, Pairwise, Pointwise, Protocol
from robustjudge.quality.base import default_evaluator
from robustjudge.redteam.batch import attacks_of as approved
from robustjudge.regression import replays
from robustjudge.threat import ThreatModel


def plan_of(config: Config, base: Path = Path()) -> Plan:
    """The plan of a configuration; relative paths are relative to ``base`` (the file's folder)."""
    judges = tuple((name, named_judge(name, j, base)) for name, j in config.judges.items())
    source = cases_of(config.cases, base)
    evaluators = {kind: config.evaluators.get(kind, default_evaluator(kind)) for kind in (*KINDS, OPEN)}
    unknown = set(config.evaluators) - set(evaluators)
    if unknown:
        raise UnknownName("task kind", min(unknown), tuple(evaluators))
    return Plan(
        cases=source,
        judges=tuple((name, judge) for name, judge in judges if not config.judges[name].surrogate),
        protocols=tuple(protocol_of(p) for p in config.protocols),
        attacks=attacks_of(
            config.attacks, config.controls, config.quick, base, any(t.attacker for t in config.threats)
        ),
        defenses=defenses_of(config, base),
        threats=tuple(threat_of(t, dict(judges)) for t in config.threats),
        seeds=tuple(range(config.seed, config.seed + config.seeds)),
        evaluators=tuple(sorted((k, e) for k, e in evaluators.items() if e)),
        finals=config.repeats,
        train=trained(source, config.train_share),
    )


def trained(source: Source, share: float) -> frozenset[str]:
    """The clusters on which universal attacks are fitted: a seeded share, stable under re-ordering."""
    if share <= 0:
        return frozenset()
    from robustjudge.datasets.split import Split

    parts = Split(train=share, validation=0.0, test=1.0 - share)(source())
    return frozenset(c.cluster or c.id for c in parts.train)


def cases_of(configs: Iterable[CasesConfig], base: Path) -> Intake:
    """A source that reads every configured set anew each time it is called, rejecting ids that come twice."""
    sets = [one for c in configs for one in tasks_of(c)]
    return Intake([(c.source, lambda on_bad, c=c: _load(c, base, on_bad)) for c in sets])  # type: ignore[misc]


def tasks_of(c: CasesConfig) -> tuple[CasesConfig, ...]:
    """A set of several tasks as one set per task, so that a limit counts cases per task: ``builtin``, and ``paper`` for
    T1-T8 from the published files."""
    named = {"builtin": [f"builtin/{k}" for k in KINDS], "paper": [f"T{i}" for i in range(1, 9)]}
    return tuple(c.model_copy(update={"source": s}) for s in named.get(c.source, [c.source]))


def _load(c: CasesConfig, base: Path, on_bad: OnBad) -> Cases:
    from robustjudge.datasets.columns import Columns

    name = c.source
    if (base / name).exists() and not Path(name).is_absolute():
        name = str(base / name)
    root = str(base / c.root) if c.root else ""
    columns: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in c.columns.items()}
    try:
        mapping = Columns(**columns)
    except TypeError:
        known = tuple(Columns.__dataclass_fields__)
        bad = next(k for k in columns if k not in known)
        raise UnknownName("case field in columns", bad, known) from None
    return load(
        name,
        root=root,
        limit=c.limit,
        columns=mapping,
        kind=c.kind,
        split=c.split,
        make_weak=c.make_weak,
        on_bad=on_bad,
    )


def protocol_of(text: str) -> Protocol:
    """``pointwise``, ``grading``, ``pairwise``, ``best_of:K``, ``best_of:K:S`` (S seeded orders instead of K rotations) or
    ``appeal:TURNS``."""
    name, _, rest = text.partition(":")
    if name == "pointwise":
        return Pointwise()
    if name == "grading":
        return Pointwise(grading=True)
    if name == "pairwise":
        return Pairwise()
    if name == "appeal":
        if rest and not rest.isdigit():
            raise ConfigError(f"{text!r}: write appeal:TURNS, as in appeal:3")
        return Appeal(turns=int(rest or 3))
    if name == "best_of":
        k, _, orders = rest.partition(":")
        if not k.isdigit() or (orders and not orders.isdigit()):
            raise ConfigError(f"{text!r}: write best_of:K, as in best_of:4")
        return BestOf(int(k), int(orders or 0))
    raise UnknownName("protocol", name, ("pointwise", "grading", "pairwise", "best_of:4", "appeal:3"))


def with_packs(names: Iterable[str], base: Path) -> list[str]:
    """The names, with every ``payload:FILE`` among them read as a text attack of the user and replaced by its id."""
    from robustjudge.attacks import packs

    out = []
    for name in names:
        if name.startswith("payload:"):
            file = base / name.removeprefix("payload:")
            try:
                found = packs.read(file.read_text("utf-8"), str(file))
            except (OSError, UnicodeDecodeError) as fault:
                raise ConfigError(f"attacks: {file} cannot be read ({fault})") from None
            packs.add(found)
            name = found.id
        out.append(name)
    return out


RULED = ("O1", "O2", "O3", "Resubmit")
"""Attacks that an attacker model serves, or rules where there is none."""


def attacks_of(
    names: Iterable[str], controls: Iterable[str], quick: bool, base: Path = Path(), written: bool = False
) -> tuple[Attack, ...]:
    """Attacks by name, alias, suite or category, with the controls that make their numbers mean something.

    ``replay:FILE`` takes the texts of a regression file, ``variants:FILE`` the approved ones of a red-team review file (with
    a neutral control each), ``artefact:FILE`` a universal attack that an earlier run fitted (``runs/.../artefacts/*.json``),
    to be tried on another judge; ``payload:FILE`` a text attack of the user (TOML).  Without an attacker model
    (``written``) O1 is ``O1/rules``, and so are its like.
    """
    given = tuple(with_packs(names, base))
    kept = [n for n in given if n.startswith(("replay:", "artefact:", "variants:"))]
    wanted = library.expand(tuple(n for n in given if n not in kept)) if len(kept) < len(given) else ()
    if not written:
        wanted = tuple(dict.fromkeys(f"{n}/rules" if n.removeprefix("E8/") in RULED else n for n in wanted))
    made = [library.attack(n, quick=quick) for n in wanted]
    for name in kept:
        kind, _, file = name.partition(":")
        if kind == "variants":
            made += approved(base / file)
        else:
            made += replays(base / file) if kind == "replay" else [fitted_at(base / file)]
    extra = [library.attack(n, quick=quick) for n in library.expand(tuple(controls))]
    return (*extra, *(a for a in made if a.name not in {x.name for x in extra}))


def fitted_at(path: Path) -> Attack:
    """The fitted attack in an artefact of a run."""
    import json

    from robustjudge.attacks import searches  # noqa: F401 (what an artefact names must be registered)
    from robustjudge.spec import load as built

    try:
        attack: Attack = built(json.loads(path.read_text("utf-8"))["attack"])
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such artefact; runs keep theirs under artefacts/") from None
    except (ValueError, KeyError, TypeError) as fault:
        raise ConfigError(f"{path}: not an artefact of a fitted attack ({fault})") from None
    return attack


def named_judge(name: str, c: JudgeConfig, base: Path) -> Judge:
    """The judge of that name; what is wrong with it is told with the name."""
    try:
        return judge_of(c, base)
    except ConfigError as fault:
        fault.args = (f"judge {name}: {fault}",)
        raise


def judge_of(c: JudgeConfig, base: Path) -> Judge:
    """One judge of the file."""
    if c.panel:
        judge: Judge = Panel(tuple(judge_of(m, base) for m in c.panel))
    elif c.service is not None:
        given = dict(c.service)
        for key in (*_ENDPOINT, "callable"):
            given.pop(key, None)
        parts = given.pop("parts", {})
        known = tuple(Service.__dataclass_fields__)
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise UnknownName("key of a service", unknown[0], (*known, *_ENDPOINT, "callable"))
        if not isinstance(parts, dict):
            raise ConfigError(
                "service: parts maps the names of sub-scores to where they stand, {clarity: result.clarity}"
            )
        try:
            judge = Service(parts=tuple(parts.items()), **given)
        except TypeError as fault:
            raise ConfigError(f"service: {fault}") from None
    else:
        judge = prompted_of(c, base)
    return judge if c.repeat == 1 else Repeated(judge, c.repeat)


def prompted_of(c: JudgeConfig, base: Path) -> Prompted:
    """A model behind a shipped template or the user's own prompt."""
    from robustjudge.prompts.library import template

    if not c.model:
        raise ConfigError("a judge needs a model (provider/name), a service or a panel")
    if c.template and (c.prompt is not None or c.messages is not None):
        raise ConfigError("a judge has either a template (shipped) or a prompt (yours), not both")
    if c.prompt is not None or c.messages is not None:
        made = own_template(c, base)
    else:
        made = template(c.template or "robustjudge")
        if c.scale is not None:
            from robustjudge.scales.scale import scale_from

            made = made.scored(scale_from(c.scale if isinstance(c.scale, dict) else {"labels": c.scale}))
        if c.fence == "plain":
            made = made.plain()
    s = c.sampling
    sampling = Sampling(
        temperature=s.temperature,
        max_tokens=s.max_tokens,
        top_p=s.top_p,
        seed=s.seed,
        stop=tuple(s.stop),
        top_logprobs=s.top_logprobs,
        effort=s.effort,
    )
    return Prompted(c.model, made, sampling, c.family, c.expect, c.constrained)


def own_template(c: JudgeConfig, base: Path) -> Template:
    """The user's own prompt: one form, or one for each protocol it is used under."""
    shared = {k: v for k in ("slots", "scale", "reply", "fence", "syntax") if (v := getattr(c, k)) not in (None, {})}
    if isinstance(c.prompt, dict) and set(c.prompt) <= set(PROTOCOLS) and c.prompt:
        made = Template("own")
        for protocol, given in c.prompt.items():
            form = given if isinstance(given, dict) else {"prompt": given}
            one = declare({**shared, **form, "protocol": protocol}, base, f"{protocol} prompt")
            made = replace(made, **{protocol: getattr(one, protocol)}, name=one.name)
        return made
    if isinstance(c.prompt, dict):
        return declare({**shared, **c.prompt}, base)
    return declare(
        {**shared, "messages": c.messages} if c.messages is not None else {**shared, "prompt": c.prompt}, base
    )


def defenses_of(config: Config, base: Path) -> tuple[tuple[str, Any], ...]:
    """The defenses by name; the bare judge is always there, so that every figure has its matched baseline."""
    out: list[tuple[str, Any]] = [("none", None)]
    if config.defenses:
        from robustjudge.defenses.library import defense_of, stacks

        made = [(name, defense_of(name, spec or {}, base)) for name, spec in config.defenses.items() if name != "none"]
        out += stacks(made, config.stacks) if config.stacks > 1 else made
    return tuple(out)


def threat_of(c: ThreatConfig, judges: dict[str, Judge]) -> ThreatModel:
    """A threat model; a surrogate is named among the file's judges."""
    surrogate = None
    if c.answers == "surrogate":
        if c.surrogate not in judges:
            raise UnknownName("surrogate (a judge of this file)", c.surrogate, tuple(judges))
        surrogate = judges[c.surrogate]
    b = c.budget
    budget = Budget(b.queries, b.writes, b.losses, b.gradients)
    name = c.name or (c.surrogate if surrogate is not None else "")
    return ThreatModel(c.answers, surrogate, c.draws, c.verdict_only, c.rationale, c.attacker, budget, name=name)


def settings_of(config: Config) -> dict[str, Any]:
    """Model settings by name."""
    from robustjudge.models.base import Settings

    out = {}
    for name, m in config.models.items():
        given = m.model_dump()
        given["headers"] = tuple(given["headers"].items())
        given["query"] = tuple(given["query"].items())
        out[name] = Settings(**given)
    return out


def services_of(config: Config, base: Path) -> dict[str, Any]:
    """Answerers of the service judges, by service name."""
    from robustjudge.models.service import open_service
    from robustjudge.prompts.reply import load as callable_at

    def answerer(given: dict[str, Any], base: Path) -> Any:
        if "callable" in given:
            return callable_at(str(given["callable"]))
        return endpoint(given)

    out: dict[str, Any] = {}

    def visit(c: JudgeConfig) -> None:
        for member in c.panel:
            visit(member)
        if c.service is not None:
            name = str(c.service.get("name", ""))
            out[name] = open_service(name, answerer(c.service, base))

    for judge in config.judges.values():
        visit(judge)
    return out


_ENDPOINT = ("url", "request", "headers", "query", "key_env", "key_header", "key_prefix", "rpm", "max_calls", "timeout")


def endpoint(given: dict[str, Any]) -> Any:
    """The HTTP side of a service judge; one request a second and 500 calls unless the file says otherwise."""
    import json

    from robustjudge.models.base import Settings
    from robustjudge.models.service import Endpoint

    if "url" not in given or "request" not in given:
        raise ConfigError(
            "a service needs `url` and `request` (a JSON body with slots), or `callable: module:function`"
        )
    request = given["request"]
    settings = Settings(
        headers=tuple(dict(given.get("headers", {})).items()),
        query=tuple(dict(given.get("query", {})).items()),
        key_env=given.get("key_env", ""),
        rpm=float(given.get("rpm", 60.0)),
        timeout=float(given.get("timeout", 120.0)),
        max_concurrency=4,
    )
    extra = {k: given[k] for k in ("key_header", "key_prefix", "max_calls") if k in given}
    body = request if isinstance(request, str) else json.dumps(request, ensure_ascii=False)
    return Endpoint(str(given["url"]), body, settings, **extra)


def with_limit(config: Config, limit: int | None) -> Config:
    """The configuration with every source cut to ``limit`` cases."""
    if limit is None:
        return config
    return config.model_copy(update={"cases": [c.model_copy(update={"limit": limit}) for c in config.cases]})


def controls_for(attacks: tuple[Attack, ...]) -> tuple[Attack, ...]:
    """The attacks that are controls."""
    return tuple(a for a in attacks if getattr(a, "control", ""))


def pruned(plan: Plan, keep: Iterable[str]) -> Plan:
    """The plan with only the named attacks (and every control)."""
    wanted = set(keep)
    return replace(plan, attacks=tuple(a for a in plan.attacks if a.name in wanted or a in controls_for((a,))))
