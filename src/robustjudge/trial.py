"""One cell of the grid, still pure: clean verdicts, the attack under its threat model, final verdicts, quality."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf
from typing import Any

from robustjudge import door
from robustjudge.asks import (
    Complete,
    Gradient,
    Invoke,
    Losses,
    Measure,
    Odds,
    Rate,
    Sample,
    Score,
    Spell,
    Surprise,
    Swaps,
    Weigh,
    Write,
)
from robustjudge.attacks.base import Attack, Exhausted, NoCandidate
from robustjudge.errors import Incomplete, PlanError
from robustjudge.judges import Judge, models_of, passed
from robustjudge.nouns import (
    Access,
    AttackStatus,
    Budget,
    Call,
    Case,
    Completion,
    Feedback,
    Sampling,
    Slate,
    Status,
    Turn,
    Verdict,
    Written,
)
from robustjudge.objective import Objective, losses, margins, model_of, swaps
from robustjudge.protocols import Appeal, Protocol
from robustjudge.spec import register
from robustjudge.steps import Ask, Handler, Stateless, handled, together
from robustjudge.threat import ThreatModel


@register("cell")
@dataclass(frozen=True)
class Cell:
    """The frozen spec of one trial.  ``seed`` re-draws everything random on our side.

    ``cleans`` clean replicas are shared by all attacks of a (case, judge, protocol); ``finals`` final replicas
    re-measure the attacked text; ``evaluator`` names the quality evaluator (empty: none).
    """

    case: Case
    attack: Attack
    judge: Judge
    protocol: Protocol
    seed: int = 0
    threat: ThreatModel = ThreatModel()
    evaluator: str = ""
    cleans: int = 2
    finals: int = 1
    judge_name: str = field(default="", metadata={"spec": False})
    defense_name: str = field(default="none", metadata={"spec": False})
    attack_name: str = field(default="", metadata={"spec": False})


@dataclass(frozen=True, slots=True)
class Shown:
    """One judged slate: which arm and order, what the judge said, and every call behind it."""

    arm: str
    order: int
    replica: str
    slate: Slate
    verdict: Verdict
    calls: tuple[tuple[Call, Completion], ...] = ()


@dataclass(frozen=True, slots=True)
class Spent:
    """What the attack used: candidates on the victim (``queries``), texts written, losses, gradients; for budget curves
    the best worth after so many candidates and losses, for label probabilities their chance of a win."""

    queries: int = 0
    writes: int = 0
    losses: int = 0
    gradients: int = 0
    curve: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Trial:
    """Everything observed for one cell."""

    cell: Cell
    attack_status: AttackStatus
    text: str | None
    clean: tuple[Shown, ...]
    attacked: tuple[Shown, ...]
    quality_clean: float | None = None
    quality_attacked: float | None = None
    spent: Spent = Spent()
    error: str = ""


@dataclass
class Recorder(Stateless):
    """Keeps every call of a judge with its completion; answers nothing itself."""

    calls: list[tuple[Call, Completion]] = field(default_factory=list)

    async def answer(self, ask: Ask[Any]) -> Any:
        reply = await ask
        if isinstance(ask, Complete):
            self.calls.extend(zip(ask.calls, reply, strict=True))
        return reply


async def shown(judge: Judge, slate: Slate, arm: str, order: int) -> Shown:
    """Judge one slate and keep the calls behind the verdict."""
    recorder = Recorder()
    verdict = await handled(judge(slate), recorder)
    return Shown(arm, order, slate.replica, slate, verdict, tuple(recorder.calls))


async def judged(
    judge: Judge, protocol: Protocol, case: Case, text: str, arm: str, replicas: Iterable[int | str], seed: int
) -> tuple[Shown, ...]:
    """Judge a text in every order of the protocol, once per replica index."""
    parts = [
        shown(judge, slate, arm, order)
        for i in replicas
        for order, slate in enumerate(protocol.slates(case, text, f"{arm}/{i}", seed))
    ]
    return await together(parts)


# --------------------------------------------------------------------------- what answers the attacker


@dataclass
class Meter:
    """Charges the budget when an ask is issued, in structural order, and cuts a batch that does not fit.

    A cut batch is answered as far as it fits; the next ask of that kind raises :class:`Exhausted` into the attack.
    Side-by-side parts get their share up front.
    """

    budget: Budget
    spent: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("queries", "writes", "losses", "gradients"), 0)
    )
    left: dict[str, int | None] = field(default_factory=dict)
    best: list[tuple[float, str]] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.left:
            b = self.budget
            self.left = {"queries": b.queries, "writes": b.writes, "losses": b.losses, "gradients": b.gradients}

    def fit(self, kind: str, n: int) -> int:
        """How many of ``n`` may be spent now; raises :class:`Exhausted` when none."""
        left = self.left[kind]
        n = n if left is None else min(n, left)
        if n == 0:
            raise Exhausted(f"the budget of {kind} is spent")
        if left is not None:
            self.left[kind] = left - n
        self.spent[kind] += n
        return n

    def parts(self, n: int) -> list[Meter]:
        """``n`` meters that share the tally and split what is left."""
        shares: list[dict[str, int | None]] = [
            {k: None if v is None else v // n + (i < v % n) for k, v in self.left.items()} for i in range(n)
        ]
        self.left = {k: None if v is None else 0 for k, v in self.left.items()}
        return [Meter(self.budget, self.spent, share, self.best, self.curve) for share in shares]

    def note(self, worth: float, text: str) -> None:
        """Remember the best text so far and the curve of best worth over queries."""
        if not self.best or worth > self.best[0][0]:
            self.best[:] = [(worth, text)]
        self.curve.append((self.spent["queries"], self.best[0][0]))

    def saw(self, margins: Sequence[float]) -> None:
        """Remember the best chance of a win that label probabilities showed, once per ask that raised it."""
        best = max((1 / (1 + exp(-max(min(m, 700.0), -700.0))) for m in margins), default=0.0)
        if margins and (not self.curve or best > self.curve[-1][1]):
            self.curve.append((self.spent["queries"] + self.spent["losses"], best))


_NEEDS: dict[type[Ask[Any]], Access] = {
    Score: Access.VERDICT,
    Odds: Access.ODDS,
    Losses: Access.LOSS,
    Swaps: Access.GRADIENT,
}


def allowed(attack: Attack, ask: Ask[Any]) -> None:
    """Refuse an ask beyond the access that the attack declares, and any ask past the meter (a model asked directly)."""
    if isinstance(ask, (Complete, Weigh, Invoke, Gradient)):
        raise PlanError(
            f"attack {attack.name} asks a model directly ({type(ask).__name__}), which no budget meters; ask Score,"
            " Odds, Losses, Swaps or Write"
        )
    needed = _NEEDS.get(type(ask), Access.NONE)
    if needed > attack.access:
        raise PlanError(
            f"attack {attack.name} declares {attack.access.name} access and asks {type(ask).__name__}, which needs"
            f" {needed.name}; declare it, so that plans without it are refused"
        )


@dataclass
class Oracle:
    """Binds the attack asks of one trial to the judge that answers the attacker.

    ``round`` counts the asks answered so far and ``lane`` names side-by-side parts: both are structural, so the draws
    of a defense do not depend on which part happens to end first.
    """

    cell: Cell
    meter: Meter
    lane: str = ""
    round: int = 0
    asked: list[int] = field(default_factory=lambda: [0])

    def split(self, n: int) -> Iterable[Handler]:
        here = f"{self.lane}{self.round}"
        self.round += 1
        parts = enumerate(self.meter.parts(n))
        return [Oracle(self.cell, m, f"{here}.{i}.", asked=self.asked) for i, m in parts]

    def draws(self) -> tuple[str, ...]:
        """Replica indices of the next ask: one fixed, or ``threat.draws`` that no earlier ask has seen."""
        m = self.cell.threat.draws
        if m == 1:
            return ("0",)
        first, self.round = self.round * m, self.round + 1
        return tuple(f"{self.lane}{i}" for i in range(first, first + m))

    async def answer(self, ask: Ask[Any]) -> Any:
        cell = self.cell
        self.asked[0] += 1
        allowed(cell.attack, ask)
        match ask:
            case Score(candidates, case):
                fit = candidates[: self.meter.fit("queries", len(candidates))]
                draws = self.draws()
                replies = await together(self.feedback(case or cell.case, c, draws) for c in fit)
                if case is None:
                    for text, reply in zip(fit, replies, strict=True):
                        self.meter.note(reply.worth, text)
                return replies
            case Odds(objective, candidates):
                fit = candidates[: self.meter.fit("queries", len(candidates))]
                told = await margins(self.bind(objective, self.draws()), fit)
                if objective.case is None:
                    self.meter.saw([f.worth for f in told if f.status == "ok"])
                return told
            case Losses(objective, suffixes):
                fitting = suffixes[: self.meter.fit("losses", len(suffixes))]
                values = await losses(self.bind(objective, self.draws()), fitting)
                if objective.case is None:
                    self.meter.saw([-v for v in values if v < inf])
                return values
            case Swaps(objective, suffix, k):
                self.meter.fit("gradients", 1)
                return await swaps(self.bind(objective, self.draws()), suffix, k)
            case Write(prompts):
                return await self.write(ask, prompts[: self.meter.fit("writes", len(prompts))])
            case Rate(candidates) if not cell.evaluator:
                return tuple(None for _ in candidates)
            case Rate(candidates):
                return await Measure(cell.evaluator, cell.case, candidates)
            case Spell(model="") | Sample(model="") | Surprise(model=""):
                return await replace(ask, model=await model_of(self.bind(Objective())))
            case _:
                return await ask

    def bind(self, objective: Objective, draws: Sequence[str] = ("0",)) -> Objective:
        """The objective on the branch where every detector let the text pass, charged for what would be blocked."""
        judge = self.cell.threat.oracle(self.cell.judge)
        free = passed(judge)
        bound = objective.bound(self.cell.case, free, self.cell.protocol)
        if free != judge and not objective.judges:
            bound = replace(bound, screened=(judge,), penalty=self.cell.threat.penalty)
        return replace(bound, replicas=tuple(f"search/{i}" for i in draws))

    async def feedback(self, case: Case, text: str, draws: Sequence[str]) -> Feedback:
        """Mean worth over orders and defense draws.  Under one draw a status other than ``ok`` in any order stays
        visible; over several the mean already counts it as 0, so only a text that no draw let through shows it."""
        cell, threat = self.cell, self.cell.threat
        judge, protocol = threat.oracle(cell.judge), cell.protocol
        shown_case, candidate = planted(replace(cell, case=case), text)
        seen = await judged(judge, protocol, shown_case, candidate, "search", draws, cell.seed)
        worths = [protocol.worth(s.verdict) for s in seen]
        worth = sum(worths) / len(worths)
        if threat.verdict_only or cell.attack.access == Access.VERDICT:
            worth = float(worth >= 1 - 1e-9)
        bad: list[Status] = [s.verdict.status for s in seen if s.verdict.status != "ok"]
        status: Status = bad[0] if bad and (threat.draws == 1 or len(bad) == len(seen)) else "ok"
        whole = not threat.verdict_only and cell.attack.access != Access.VERDICT
        return Feedback(
            worth,
            status,
            seen[0].verdict.rationale if threat.rationale else "",
            parts(seen[0].verdict) if whole else (),
        )

    async def write(self, ask: Write, prompts: Sequence[Any]) -> tuple[Written, ...]:
        model = self.cell.threat.attacker
        if not model:
            return tuple(Written(status="error", reason="no attacker model") for _ in prompts)
        sampling = Sampling(temperature=ask.temperature, max_tokens=ask.max_tokens, seed=ask.seed)
        calls = [Call(model, p, sampling, f"write/{ask.seed}.{i}", "attacker") for i, p in enumerate(prompts)]
        replies = await Complete(tuple(calls))
        return tuple(Written(r.text, r.status, r.reason) for r in replies)


def parts(verdict: Verdict) -> tuple[tuple[str, float], ...]:
    """The sub-scores of a verdict as shares of its scale."""
    if verdict.status != "ok" or verdict.range is None:
        return ()
    low, high = verdict.range
    return tuple((name, (value - low) / (high - low)) for name, value in verdict.parts)


# --------------------------------------------------------------------------- the trial


Attempt = tuple[AttackStatus, "str | None", Spent, str]
"""What came of an attack: status, text, what it spent, and the traceback of an error."""


async def attacked(cell: Cell) -> Attempt:
    """Run the attack under its threat model: status, text, what it spent, and the traceback of an error."""
    meter = Meter(cell.threat.budget)
    view = cell.case if getattr(cell.attack, "reads_reference", False) else cell.case.sealed()
    status: AttackStatus = "ok"
    text: str | None = None
    error = ""
    oracle = Oracle(cell, meter)
    try:
        text = await handled(cell.attack(view), oracle)
        status = "exhausted" if _spent(meter) else "ok"
    except Exhausted:
        status, text = "exhausted", meter.best[0][1] if meter.best else cell.case.response
    except NoCandidate as why:
        status, error = "no_candidate", str(why)
    except (Incomplete, GeneratorExit):
        raise
    except Exception as fault:
        fault.add_note(f"ask {oracle.asked[0]} of attack {cell.attack_name or cell.attack.name}")
        status, error = "error", "".join(traceback.format_exception(fault))
    s = meter.spent
    return status, text, Spent(s["queries"], s["writes"], s["losses"], s["gradients"], tuple(meter.curve)), error


def _spent(meter: Meter) -> bool:
    return any(left == 0 for kind, left in meter.left.items() if meter.spent[kind])


def surrogate(cell: Cell) -> str:
    """The models that answered the attack: the provenance of what it found."""
    return ", ".join(models_of(cell.threat.oracle(cell.judge)))


async def fitting(cell: Cell, cases: Sequence[Case]) -> tuple[Attack, Spent]:
    """Fit a universal attack on training cases under the cell's threat model and budget."""
    meter = Meter(cell.threat.budget)
    fit: Any = cell.attack.fit  # type: ignore[attr-defined]
    fitted: Attack = await handled(fit(tuple(c.sealed() for c in cases)), Oracle(cell, meter))
    origin = getattr(fitted, "provenance", None)
    if origin is not None and not origin.surrogate:
        found: Any = fitted
        fitted = replace(found, provenance=replace(origin, surrogate=surrogate(cell)))
    s = meter.spent
    return fitted, Spent(s["queries"], s["writes"], s["losses"], s["gradients"], tuple(meter.curve))


def planted(cell: Cell, text: str) -> tuple[Case, str]:
    """What the judge is shown of an attack's text: the candidate, or (channel ``history``) a turn of the dialogue.
    Texts that an attack makes enter here, through the door."""
    text = door.safe(text)
    if getattr(cell.attack, "channel", "append") != "history":
        return cell.case, text
    return replace(cell.case, history=(*cell.case.history, Turn("user", text))), cell.case.response


async def attack_and_final(cell: Cell) -> tuple[Attempt, tuple[Shown, ...]]:
    """The attack, then its text judged again on replicas of its own (``identity/i`` for the null control), never on the
    search's or the baseline's."""
    attempt = await attacked(cell)
    text = attempt[1]
    if text is None:
        return attempt, ()
    arm = getattr(cell.attack, "arm", "final")
    first = cell.seed * cell.finals
    case, candidate = planted(cell, text)
    replicas = range(first, first + cell.finals)
    return attempt, await judged(cell.judge, cell.protocol, case, candidate, arm, replicas, cell.seed)


async def trial(cell: Cell) -> Trial:
    """Everything about one cell.  The clean arm runs beside the attack and its final evaluation: neither waits for the
    other, so a plain attack needs one round of calls."""
    if isinstance(cell.protocol, Appeal):
        from robustjudge.appeal import appeal  # which is made of the pieces above

        return await appeal(cell)
    case, judge, protocol = cell.case, cell.judge, cell.protocol
    clean_steps = judged(judge, protocol, case, case.response, "clean", range(cell.cleans), cell.seed)
    both: tuple[Any, ...] = await together((clean_steps, attack_and_final(cell)))
    clean: tuple[Shown, ...] = both[0]
    attempt: Attempt = both[1][0]
    final: tuple[Shown, ...] = both[1][1]
    status, text, spent, error = attempt
    before = after = None
    if cell.evaluator and text is not None:
        before, after = await Measure(cell.evaluator, case, (case.response, planted(cell, text)[1]))
        if before is None or after is None:
            before = after = None  # a one-sided value is never paired with 0 (metrics.md 3)
    return Trial(cell, status, text, clean, final, before, after, spent, error)
