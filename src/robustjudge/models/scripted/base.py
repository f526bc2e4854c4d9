"""A scripted judge is a function from rendered text to a distribution over outcomes; replies are drawn from it.

Because the distribution is explicit, every rate that an instrument should measure on a scripted judge is known
exactly (:mod:`robustjudge.models.scripted.truth`), and label probabilities agree with the replies by construction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import floor, log
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from robustjudge.models.scripted.view import View, look
from robustjudge.nouns import Access, Call, Completion, LabelCall, Status, Usage, Weights
from robustjudge.spec import canonical, digest, dump, name_of, register

FLOOR = 1e-9
"""Probability below which a label is reported as floored."""

RULES = "2"
"""Version of the judges' rules; raised when a judge would answer differently, so that old replies are not reused."""

Fate = Literal["ok", "refused", "unparsed", "truncated", "error"]


@dataclass(frozen=True)
class Outcome:
    """One thing that may happen: with probability ``p`` the judge says ``label``, or ends with another status."""

    p: float
    label: str = ""
    status: Fate = "ok"
    reason: str = ""


Outcomes = tuple[Outcome, ...]


@dataclass(frozen=True)
class Scripted:
    """Base of the scripted judges: subclasses define :meth:`merit`, or :meth:`outcomes` whole.

    ``seed`` moves every draw.  ``low``, ``high`` and ``labels`` (worst first) replace the answers that would be read
    from the trusted part of the prompt.  Draws depend on the judge's name, seed, rendered text and replica name alone,
    so a replay is equal, and another replica or another judge is independent.
    """

    seed: int = 0
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()

    access: ClassVar[Access] = Access.ODDS
    context: ClassVar[int | None] = None
    concurrency: ClassVar[int] = 64
    segments: ClassVar[bool] = True

    # ------------------------------------------------------------------ what subclasses define

    def merit(self, view: View, i: int) -> float:
        """How good candidate ``i`` seems to this judge, from 0 (worst) to 1 (best)."""
        return 0.5

    def outcomes(self, view: View) -> Outcomes:
        """The exact distribution of what this judge does with ``view``; the probabilities sum to 1.

        By default: the score nearest to the merit, or the candidate of greatest merit; equal merits are a tie where
        the prompt offers one and a fair draw where it does not.
        """
        if view.pointwise:
            return (Outcome(1.0, nearest(view, self.merit(view, 0))),)
        merits = [self.merit(view, i) for i in range(len(view.candidates))]
        return choose(view, merits)

    def odds(self, view: View) -> Outcomes:
        """Label probabilities at the forced verdict position: the outcomes, given that a verdict is said."""
        said = [o for o in self.outcomes(view) if o.status == "ok"]
        total = sum(o.p for o in said)
        return tuple(Outcome(o.p / total, o.label) for o in said) if total > 0 else ()

    def reply(self, view: View, label: str) -> str:
        """The text around the verdict."""
        return view.say(label) if view.form == "{}" else f"Weighed by a fixed rule.\n{view.say(label)}"

    # ------------------------------------------------------------------ the provider face

    @cached_property
    def name(self) -> str:
        """``scripted/<kind>`` with the settings that differ from the defaults, so that ledger keys never collide."""
        settings = []
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                settings.append(f"{f.name}={_short(value)}")
        kind = name_of(self)
        return f"{kind}?{'&'.join(settings)}" if settings else kind

    @cached_property
    def identity(self) -> str:
        """Name and version of the rules: what the ledger tells models apart by."""
        return f"{self.name}\n{RULES}"

    def look(self, call: Call) -> View:
        """The view of a call."""
        return look(call.messages, call.replica, low=self.low, high=self.high, labels=self.labels)

    async def complete(self, call: Call) -> Completion:
        """Draw one outcome and say it; never raises for what a judge may do."""
        view = self.look(call)
        return self.say(view, draw(self.outcomes(view), view.chance(self.seed, self.name)))

    def say(self, view: View, outcome: Outcome) -> Completion:
        """The completion that carries ``outcome``."""
        text, finish, refusal = "", "stop", ""
        status: Status = "ok"
        if outcome.status == "ok":
            text = self.reply(view, outcome.label)
        elif outcome.status == "refused":
            status, refusal = "refused", "I can't judge this material."
        elif outcome.status == "unparsed":
            text = "Both strengths and weaknesses are to be seen here; it depends on what one values."
        elif outcome.status == "truncated":
            status, finish, text = "truncated", "length", "The response starts by"
        else:
            return Completion(status="error", reason=outcome.reason or "transport", model=self.name)
        usage = Usage(self.count_tokens(view.text), self.count_tokens(text))
        return Completion(text, status, finish, refusal, usage=usage, model=self.name)

    async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]:
        """Natural-log probabilities of the labels, from :meth:`odds`; a label below 1e-9 is floored there."""
        return tuple(self._weigh(c) for c in calls)

    def _weigh(self, asked: LabelCall) -> Weights:
        mass: dict[str, float] = {}
        for outcome in self.odds(self.look(asked.call)):
            mass[outcome.label] = mass.get(outcome.label, 0.0) + outcome.p
        if not mass:
            return Weights(status="error", reason="no_verdict")
        ps = [mass.get(label, 0.0) for label in asked.labels]
        return Weights(tuple(log(max(p, FLOOR)) for p in ps), tuple(p < FLOOR for p in ps))

    def count_tokens(self, text: str) -> int:
        """Words, as a stand-in for tokens."""
        return len(text.split())

    async def close(self) -> None:
        """Nothing to close."""


@register("scripted/constant")
@dataclass(frozen=True)
class Constant(Scripted):
    """Gives every text the same merit, ``value`` in [0, 1] of the scale.

    Known: every score is equal, so SDR, ASR and their nulls are 0 and agreement is *degenerate*, never "unbiased".
    Pairwise it ties where it may and tosses a fair coin where it may not.
    """

    value: float = 0.5

    def merit(self, view: View, i: int) -> float:
        return self.value


@dataclass(frozen=True)
class Wrapped(Scripted):
    """Base of flaws that are laid over another scripted judge, which does the judging.

    The scale is this judge's own; the inner judge's ``seed``, ``low``, ``high`` and ``labels`` are not used.
    """

    judge: Scripted = Constant()

    def merit(self, view: View, i: int) -> float:
        return self.judge.merit(view, i)

    def outcomes(self, view: View) -> Outcomes:
        return self.judge.outcomes(view)

    def odds(self, view: View) -> Outcomes:
        return self.judge.odds(view)


def draw(outcomes: Outcomes, u: float) -> Outcome:
    """The outcome at quantile ``u`` in [0, 1)."""
    total = 0.0
    for outcome in outcomes:
        total += outcome.p
        if u < total:
            return outcome
    return [o for o in outcomes if o.p > 0][-1]


def nearest(view: View, merit: float) -> str:
    """The label at ``merit`` of the way from worst to best; halves go up."""
    top = len(view.labels) - 1
    return view.labels[min(top, max(0, floor(merit * top + 0.5)))]


def best(view: View) -> str:
    """The best score."""
    return view.labels[-1]


def choose(view: View, merits: list[float]) -> Outcomes:
    """The slot of greatest merit; equals are a tie where one is offered, else a fair draw among them."""
    top = max(merits)
    slots = [label for label, m in zip(view.labels, merits, strict=True) if m >= top - 1e-12]
    if len(slots) > 1 and view.tie:
        return (Outcome(1.0, view.tie),)
    return tuple(Outcome(1.0 / len(slots), s) for s in slots)


def mix(p: float, first: Outcomes, second: Outcomes) -> Outcomes:
    """``first`` with probability ``p``, else ``second``."""
    if p >= 1:
        return first
    if p <= 0:
        return second
    return tuple(
        Outcome(w * o.p, o.label, o.status, o.reason) for w, part in ((p, first), (1 - p, second)) for o in part
    )


def _short(value: Any) -> str:
    if isinstance(value, Scripted):
        return quote(value.name.removeprefix("scripted/"), safe="/,")
    if isinstance(value, tuple):
        text = ",".join(str(v) for v in value) if all(isinstance(v, (str, int, float)) for v in value) else ""
        return quote(text, safe=",") if text and len(text) <= 60 else "~" + digest(canonical(dump(value)))[:12]
    return quote(str(value), safe="")
