"""One night of a fleet: every member is run, or kept where nothing changed, and decided; one that breaks stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from robustjudge.config.build import plan_of, services_of, settings_of
from robustjudge.config.changes import changes, manifest_of, runs_under, unfinished
from robustjudge.config.files import read_config
from robustjudge.config.intake import Intake
from robustjudge.engine.folder import Folder
from robustjudge.errors import ConfigError, RobustJudgeError, UnknownName
from robustjudge.execution import Options, execute
from robustjudge.fleet.file import Fleet, Member, place
from robustjudge.gate import contracts
from robustjudge.gate.check import check
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence, subjects
from robustjudge.gate.junit import junit
from robustjudge.gate.people import reviewed
from robustjudge.gate.policy import read_policy
from robustjudge.gate.waivers import read_waivers
from robustjudge.plan import Plan
from robustjudge.review.store import decisions
from robustjudge.tracking.alerts import Alert, Standing, standing

KEPT = 14
"""Earlier verdicts that a member's trend shows."""

EXIT: Mapping[str, int] = {"pass": 0, "fail": 1, "inconclusive": 3, "incomplete": 4}


@dataclass(frozen=True)
class Stand:
    """How one judge of a member stands: what is alerted, the exit code it asks for, and what the page shows.

    ``fault`` says why the member could not be run or decided.  ``kept``: nothing had changed, so an earlier run stands.
    ``trend`` holds earlier verdicts as (time, words), the newest first.
    """

    member: str
    told: Standing
    code: int
    when: str = ""
    kept: bool = False
    fault: str = ""
    categories: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    trend: tuple[tuple[str, str], ...] = ()


def night(
    fleet: Fleet,
    base: Path,
    options: Options,
    *,
    changed_only: bool = False,
    reviews: str = ".robustjudge/review.sqlite",
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[int], Any] | None = None,
) -> tuple[Stand, ...]:
    """Run and decide every member; ``options.root`` gets a folder for each.

    ``say`` is told what is done; ``watch`` opens a listener for a run of so many cells (a context manager).
    """
    out: list[Stand] = []
    for m in fleet.judges:
        say(f"{m.name}:")
        root = options.root / place(m.name)
        try:
            found = _one(m, base, replace(options, root=root), changed_only, reviews, say, watch)
        except RobustJudgeError as fault:
            say(f"  {type(fault).__name__}: {fault}")
            found = [_broken(m, fault, root)]
        out += found
    return tuple(out)


def _one(
    m: Member,
    base: Path,
    options: Options,
    changed_only: bool,
    reviews: str,
    say: Callable[[str], None],
    watch: Callable[[int], Any] | None,
) -> list[Stand]:
    file = base / m.config
    settings, home = read_config(file), file.parent
    plan = plan_of(settings, home)
    if m.judge:
        if m.judge not in dict(plan.judges):
            raise UnknownName(f"judge of member {m.name!r}", m.judge, tuple(dict(plan.judges)))
        plan = replace(plan, judges=tuple(j for j in plan.judges if j[0] == m.judge))
    if not plan.judges:
        raise ConfigError(f"{file}: no judge")
    assert isinstance(plan.cases, Intake)
    inputs = plan.cases.read_through().as_dict()
    config = {**settings.model_dump(mode="json"), "base": str(home.absolute())}
    policy = base / m.policy if m.policy else home / settings.policy if settings.policy else None
    rules, accepted = read_policy(policy), read_waivers(base / m.waivers if m.waivers else None)
    stands: dict[str, tuple[Path, bool]] = {}
    if changed_only:
        for name, c in changes(plan, config, inputs, options.root).items():
            say(f"  {name}: {c.words}")
            if c.run is not None and not c.parts:
                stands[name] = (c.run, True)
    todo = tuple(j for j in plan.judges if j[0] not in stands)
    if todo:
        part = replace(plan, judges=todo)
        given = replace(
            options,
            slug=m.name,
            models={**settings_of(settings), **options.models},
            services={**services_of(settings, home), **options.services},
            max_calls=settings.max_calls,
            max_cost=settings.max_cost,
            config=config,
            inputs=inputs,
            resume=unfinished(part, config, inputs, options.root),
        )
        path = _executed(part, given, watch)
        stands |= {name: (path, False) for name, _ in todo}
    return [
        _decided(m, name, *stands[name], rules, accepted, base / m.baseline if m.baseline else None, reviews)
        for name, _ in plan.judges
    ]


def _executed(plan: Plan, options: Options, watch: Callable[[int], Any] | None) -> Path:
    from robustjudge.reports import write

    if watch is None:
        path = execute(plan, options).path
    else:
        with watch(sum(1 for _ in plan.cells())) as listener:
            path = execute(plan, replace(options, listener=listener)).path
    write(path, ("html", "md", "json"))
    return path


def _decided(
    m: Member,
    judge: str,
    path: Path,
    kept: bool,
    rules: Any,
    accepted: Any,
    baseline: Path | None,
    reviews: str,
) -> Stand:
    e, d = check(path, rules, judge=judge, baseline=baseline, waivers=accepted)
    d = reviewed(e, d, decisions(reviews))
    several = len({j for j, _ in subjects(path)}) > 1
    where = contracts.folder_of(e) if several else e.path
    contracts.write(e, d, (), where)
    Folder(where).write("junit.xml", junit(e, d))
    return Stand(
        m.name,
        standing(e, d, f"{m.name}/{e.judge}/{e.defense}"),
        EXIT[d.verdict],
        e.timestamp,
        kept,
        categories=tuple((c.category, c.verdict, c.reason) for c in d.categories),
        notes=d.notes,
        trend=tuple(_trend(path, e, d)),
    )


def _trend(path: Path, e: Evidence, d: Decision) -> Iterator[tuple[str, str]]:
    """This verdict, and those that the gate wrote into the member's earlier run folders."""
    yield e.timestamp, d.words
    shown = 1
    for other in runs_under(path.parent):
        if other == path or shown >= KEPT:
            continue
        for file in (contracts.folder_name(other, e), other / contracts.REPORT):
            if file.is_file():
                try:
                    old = contracts.read_document("contract_b", file)
                except RobustJudgeError:
                    continue
                if old["judge_id"] == e.judge:
                    yield str(old["test_timestamp"]), contracts.words_of(old)
                    shown += 1
                    break


def _broken(m: Member, fault: RobustJudgeError, root: Path) -> Stand:
    """A member that gave no verdict: it does not pass, and its key is its own, so that it is told once."""
    last = next(iter(runs_under(root)), None)
    run = last.name if last is not None else ""
    word = "incomplete" if fault.exit_code == 4 else "inconclusive" if fault.exit_code == 3 else "not decided"
    told = Standing(f"{m.name}//", m.judge or m.name, type(fault).__name__, "", False, word, (str(fault),), run=run)
    when = str(manifest_of(last).get("updated", "")) if last is not None else ""
    return Stand(m.name, told, fault.exit_code, when.replace("+00:00", "Z"), fault=str(fault))


def standings(stands: tuple[Stand, ...]) -> list[Standing]:
    """What alerts are given: every judge, and for a member that was decided again the end of its being broken."""
    whole = {s.member: s.told.judge for s in stands if not s.fault}
    mended = [Standing(f"{m}//", judge, "", "", True, "can be decided on again") for m, judge in whole.items()]
    return [*(s.told for s in stands), *mended]


def outcome(stands: tuple[Stand, ...]) -> int:
    """The exit code of a night: a broken configuration before a failure before an outage before doubt."""
    codes = {s.code for s in stands}
    return next((c for c in (2, 1, 4, 3) if c in codes), 0)


def expiring(fleet: Fleet, base: Path, today: date | None = None) -> dict[str, Alert]:
    """What ends within the fleet's ``expiry_days``: waivers and judge packages, by a key that tells each once."""
    from robustjudge.profile.package import load_profile

    day = today or datetime.now(UTC).date()
    out: dict[str, Alert] = {}

    def note(m: Member, judge: str, kind: str, what: str, end: date) -> None:
        left = (end - day).days
        if left > fleet.expiry_days:
            return
        word = f"ends on {end}" if left >= 0 else f"ended on {end}"
        out[f"expiry/{m.name}/{kind}/{what}/{end}"] = Alert(
            "expiring", judge, "", "expiring", (f"{m.name}: {kind} ({what}) {word}",), 0, 0, ""
        )

    for m in fleet.judges:
        try:
            for w in read_waivers(base / m.waivers if m.waivers else None):
                note(m, w.scope.judge, "waiver", f"{w.owner}: {w.reason}"[:200], w.expires)
            expires = load_profile(base / m.profile).expires if m.profile else ""
            if expires:
                note(m, m.judge or m.name, "judge package", m.profile, datetime.fromisoformat(expires).date())
        except (RobustJudgeError, ValueError) as fault:
            key = f"expiry/{m.name}/unreadable/{type(fault).__name__}"
            out[key] = Alert("expiring", m.judge or m.name, "", "unreadable", (f"{m.name}: {fault}",), 0, 0, "")
    return out
