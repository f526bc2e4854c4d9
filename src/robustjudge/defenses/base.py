"""The three hooks of a defense: screen (block), transform (rewrite untrusted text), prompt (add trusted text).

Each is a small class; a concrete defense is a frozen dataclass that derives from one or two of them.  None sees a case,
a gold label, an attack or the reference of grading mode: a defense knows what the slate shows, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from robustjudge import spec
from robustjudge.errors import ConfigError
from robustjudge.judges import Service
from robustjudge.nouns import Frame, Slate, Turn, Verdict
from robustjudge.steps import together

if TYPE_CHECKING:
    from robustjudge.defenses.threshold import Threshold
    from robustjudge.judges import Judge

Worth = Literal["reject", "floor", "abstain", "fallback"]
"""What a blocked verdict is worth: the attack fails and an honest author loses; the lowest score; a person decides;
the reference wins.  A declared column, applied by the measures, never written into a score."""

UNREAD = "detector_unparsed"
"""In the reason of a verdict that was blocked because the detector failed or could not be read."""

CERTAIN = 1e300
"""The suspicion recorded for a text that a detector could not read (finite, so that every row stays plain JSON)."""


@dataclass(frozen=True, slots=True)
class Extra:
    """What a defense adds to one slate: calls of a language model, forward passes of a scoring model, and calls of the
    guarded (or another) judge.  ``once`` judge calls are paid once for a whole run."""

    calls: int = 0
    passes: int = 0
    judges: int = 0
    once: int = 0

    def __add__(self, other: Extra) -> Extra:
        return Extra(
            self.calls + other.calls,
            self.passes + other.passes,
            self.judges + other.judges,
            self.once + other.once,
        )


class Shield:
    """What every defense has: its name, the models it calls, whether it blocks, and what it costs."""

    screens: ClassVar[bool] = False
    frames: ClassVar[bool] = False
    """Whether it adds trusted text to the judge's prompt."""

    @property
    def name(self) -> str:
        """The registered name."""
        return spec.name_of(self)

    def models(self) -> tuple[str, ...]:
        """The models that this defense may call besides the judge's."""
        model = getattr(self, "model", "")
        return (model,) if model else ()

    def extra(self, slate: Slate) -> Extra:
        """The most that one slate may cost besides the judge's own call."""
        return Extra()

    def refuses(self, judge: Judge) -> str:
        """Why it cannot guard ``judge``, told before any call; the empty string where it can."""
        return f"it adds to the prompt, and {OWNED}" if self.frames and owned(judge) else ""

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        return await judge(slate)


OWNED = "a service owns its prompt: a detector or a transform can guard it"


def owned(judge: Any) -> bool:
    """Whether a service, whose prompt is not ours, stands somewhere in ``judge``."""
    inner = (*getattr(judge, "members", ()), *([judge.judge] if hasattr(judge, "judge") else []))
    return isinstance(judge, Service) or any(map(owned, inner))


@spec.register("none")
@dataclass(frozen=True)
class NoDefense(Shield):
    """The identity: the bare judge, on the same grid as every defense, so that each figure has its matched baseline."""


# --------------------------------------------------------------------------- prompt


class Prompting(Shield):
    """Adds trusted text to the judge prompt and touches no untrusted text."""

    frames = True

    def frame(self, slate: Slate) -> Frame:
        """The additions for one slate."""
        raise NotImplementedError

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        return await judge(replace(slate, frame=joined(slate.frame, self.frame(slate))))


def joined(inner: Frame, outer: Frame) -> Frame:
    """Both frames: what was there first stands nearer to the data."""
    return Frame(
        (*outer.before, *inner.before),
        (*inner.after, *outer.after),
        (*inner.fences, *outer.fences),
        inner.escape and outer.escape,
    )


# --------------------------------------------------------------------------- transform


class Transforming(Shield):
    """Rewrites every untrusted text by one function drawn once per slate, so that no side can be told by its mark."""

    def rewriter(self, slate: Slate) -> Callable[[str], str]:
        """The function for this slate; it must be total on text."""
        raise NotImplementedError

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        return await judge(rewritten(slate, self.rewriter(slate)))


def rewritten(slate: Slate, change: Callable[[str], str]) -> Slate:
    """``slate`` with ``change`` applied to the task, every candidate and every turn, the author's or the model's.

    The judge's own words in an appeal and the reference of grading mode (never the author's) stay as they are.
    """
    return replace(
        slate,
        task=change(slate.task),
        candidates=tuple(change(c) for c in slate.candidates),
        history=tuple(Turn(t.role, change(t.text)) for t in slate.history),
        exchange=tuple(t if t.role == "assistant" else Turn(t.role, change(t.text)) for t in slate.exchange),
    )


def untrusted(slate: Slate) -> tuple[str, ...]:
    """Every untrusted text of a slate: task, candidates, turns and the author's part of an appeal."""
    own = [t.text for t in slate.exchange if t.role != "assistant"]
    return (slate.task, *slate.candidates, *(t.text for t in slate.history), *own)


# --------------------------------------------------------------------------- screen


class Thresholded(Shield):
    """A defense that compares a suspicion with ``tau``: a number, or a calibrated :class:`Threshold`; ``None`` never
    fires.  A text is flagged when its suspicion lies *above* tau (paper, eq. 2).  ``worth``: of a blocked verdict."""

    tau: float | Threshold | None
    worth: Worth

    def __post_init__(self) -> None:
        """Refuse a threshold that was calibrated for another detector or another model."""
        tau = self.tau
        if isinstance(tau, (int, float)):
            if not isfinite(tau):
                raise ConfigError(f"{self.name}: tau is {tau}; a threshold is a finite number, or none: never fires")
        elif tau is not None:
            tau.check(self.name, self.key(), "".join(self.models()))

    def key(self) -> str:
        """What a calibrated threshold belongs to: the content hash of this detector without its threshold and what
        follows from it."""
        data = spec.dump(replace(self, tau=None))  # type: ignore[type-var]
        return spec.digest(spec.canonical({k: v for k, v in data.items() if k not in ("tau", "worth", "scope")}))

    def limit(self, text: str, slate: Slate) -> float | None:
        """The threshold for one text; ``None`` never fires."""
        tau = self.tau
        return tau if tau is None or isinstance(tau, (int, float)) else tau.at(slate.kind, slate.language, len(text))

    def unfit(self, slate: Slate) -> str:
        """Why the threshold may not be used on this slate, or the empty string."""
        tau = self.tau
        return "" if tau is None or isinstance(tau, (int, float)) else tau.refuses(slate.language)


class Screening(Thresholded):
    """Blocks a slate when any screened text is suspicious; the judge is then not asked.

    ``scope``: ``candidates``, or ``all`` untrusted texts but the task, whose author is the examiner.
    """

    screens: ClassVar[bool] = True
    scope: Literal["candidates", "all"]

    async def suspicion(self, texts: tuple[str, ...], slate: Slate) -> tuple[float | None, ...]:
        """Suspicion of each text, larger is worse; ``None`` where the detector failed or could not be read."""
        raise NotImplementedError

    def screened(self, slate: Slate) -> tuple[str, ...]:
        """The texts to screen: the candidates in the order shown, then, for ``all``, the turns."""
        if self.scope == "candidates":
            return slate.candidates
        own = [t.text for t in slate.exchange if t.role != "assistant"]
        return (*slate.candidates, *(t.text for t in slate.history), *own)

    def limits(self, texts: tuple[str, ...], found: tuple[float | None, ...], slate: Slate) -> tuple[float | None, ...]:
        """The threshold of each text."""
        return tuple(self.limit(t, slate) for t in texts)

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        refused = self.unfit(slate)
        if refused:
            return Verdict(status="error", reason=refused)
        texts = self.screened(slate)
        found = await self.suspicion(texts, slate)
        flagged = [above(s, t) for s, t in zip(found, self.limits(texts, found, slate), strict=True)]
        kept = by_identity(slate, found)
        if any(flagged):
            reason = f"{self.name}: {UNREAD}" if None in found else self.name
            return Verdict(status="blocked", reason=reason, suspicion=kept, fallback=self.worth)
        verdict = await judge(slate)
        return replace(verdict, suspicion=verdict.suspicion or kept)


def above(suspicion: float | None, tau: float | None) -> bool:
    """Flag or pass: unreadable is unsafe whatever the threshold (fail closed); equality is safe."""
    return suspicion is None or (tau is not None and suspicion > tau)


def by_identity(slate: Slate, found: Iterable[float | None]) -> tuple[float, ...]:
    """Suspicion of each candidate in order of identity, finite."""
    pairs = zip(slate.index, found)
    return tuple(CERTAIN if s is None or not isfinite(s) else s for _, s in sorted(pairs, key=lambda p: p[0]))


# --------------------------------------------------------------------------- chance and order


def item_rng(seed: int, slate: Slate, salt: str) -> Random:
    """Randomness of one item and replica: equal for all candidates ever shown for it, so that an attacker's texts are
    compared under the same draw; another replica draws anew."""
    turns = [x for t in slate.history for x in (t.role, t.text)]
    return Random(spec.digest("item", salt, str(seed), slate.replica, slate.task, *turns))


def request_rng(seed: int, slate: Slate, salt: str) -> Random:
    """Randomness of one request: differs for any other text anywhere on the slate, but not for another order."""
    turns = [x for t in (*slate.history, *slate.exchange) for x in (t.role, t.text)]
    texts = sorted(slate.candidates)
    return Random(spec.digest("request", salt, str(seed), slate.replica, slate.task, *texts, "turns", *turns))


def code(rng: Random, bits: int) -> str:
    """A hexadecimal code of ``bits`` bits."""
    return f"{rng.getrandbits(bits):0{-(-bits // 4)}x}"


@spec.register("chain")
@dataclass(frozen=True)
class Chain(Shield):
    """Defenses one after another: the first sees the slate as submitted, each later one what the former made of it.

    Put a detector first to screen the original text, behind a transform to screen what the judge would read.
    """

    members: tuple[Shield, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(m.name for m in self.members) or "none"

    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m for member in self.members for m in member.models()))

    def extra(self, slate: Slate) -> Extra:
        """Costs add up, except that what multiplies the judge multiplies all that stands behind it."""
        total = Extra()
        for member in reversed(self.members):
            own = member.extra(slate)
            asks = 1 + own.judges
            total = Extra(
                own.calls + asks * total.calls,
                own.passes + asks * total.passes,
                own.judges + asks * total.judges,
                own.once + total.once,
            )
        return total

    def refuses(self, judge: Judge) -> str:
        return next(filter(None, (m.refuses(judge) for m in self.members)), "")

    def passed(self) -> Chain:
        """The chain without its detectors: the branch on which every text passed."""
        return Chain(tuple(m for m in self.members if not m.screens))

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        if not self.members:
            return await judge(slate)
        return await self.members[0](slate, Behind(judge, self.members[1:]))


@dataclass(frozen=True)
class Behind:
    """A judge behind the rest of a chain."""

    judge: Judge
    rest: tuple[Shield, ...]

    async def __call__(self, slate: Slate) -> Verdict:
        return await Chain(self.rest)(slate, self.judge)


async def per_text(ask: Callable[[str], Any], texts: tuple[str, ...]) -> tuple[Any, ...]:
    """``ask`` each distinct text once, side by side; answers in the order of ``texts``."""
    distinct = tuple(dict.fromkeys(texts))
    answers = dict(zip(distinct, await together(ask(t) for t in distinct), strict=True))
    return tuple(answers[t] for t in texts)
