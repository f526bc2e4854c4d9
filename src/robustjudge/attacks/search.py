"""What the searches share: best-so-far, feedback as one scalar, provenance of fitted strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

from robustjudge import spec
from robustjudge.asks import Odds
from robustjudge.attacks.base import NoCandidate, Plugin
from robustjudge.nouns import Budget, Feedback

if TYPE_CHECKING:
    from robustjudge.objective import Objective


FLOOR = -745.0
"""The log of the smallest positive float: the log-odds of something that never happens."""


@spec.register("provenance")
@dataclass(frozen=True)
class Provenance:
    """Where a searched string comes from: training cases, objective in words, random seed, queries spent, the model or
    judge that answered (``surrogate``, filled in by whoever ran the search), and the best worth after each round.

    A worth that is unknown (no usable answer) is kept as ``FLOOR``, so that the record is plain JSON.
    """

    cases: tuple[str, ...] = ()
    objective: str = ""
    seed: int = 0
    queries: int = 0
    trace: tuple[float, ...] = ()
    surrogate: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace", tuple(max(w, FLOOR) for w in self.trace))


class Search(Plugin):
    """An attack that searches, with two budgets by name."""

    small: ClassVar[Mapping[str, Any]] = {}
    """The fields of the quick budget that differ from the defaults."""
    single: ClassVar[Mapping[str, Any]] = {"steps": 1}
    """The fields of a search of one step."""

    @classmethod
    def reference(cls, **changes: Any) -> Self:
        """The search with its default budget, which is the published one, and ``changes`` to its fields."""
        return cls(**changes)

    @classmethod
    def quick(cls, **changes: Any) -> Self:
        """The search with its budget for a small local model, and ``changes`` to its fields."""
        return cls(**{**cls.small, **changes})

    def least(self) -> Budget:
        me: Any = self
        one: Plugin = replace(me, **self.single)
        return one.ceiling()


@dataclass
class Best:
    """The best candidate so far; offering never makes it worse, so more budget never gives a worse answer."""

    text: str | None = None
    worth: float = -inf

    def offer(self, text: str, worth: float) -> bool:
        """Keep ``text`` if its worth is higher, and say whether it was kept."""
        if worth <= self.worth and self.text is not None:
            return False
        self.text, self.worth = text, worth
        return True

    def offer_all(self, texts: Sequence[str], worths: Sequence[float]) -> None:
        for text, worth in zip(texts, worths):
            self.offer(text, worth)

    def take(self, reason: str) -> str:
        """The best text; raises :class:`~robustjudge.attacks.base.NoCandidate` when nothing was offered."""
        if self.text is None:
            raise NoCandidate(reason)
        return self.text


def worths(feedback: Sequence[Feedback]) -> list[float]:
    """Worth in [0, 1] of each ``Score`` answer; a status other than ``ok`` is worth 0."""
    return [f.worth if f.status == "ok" else 0.0 for f in feedback]


async def odds(objective: Objective, texts: Sequence[str]) -> list[float]:
    """Log-odds of each text, in one ask; ``-inf`` for a status other than ``ok``.

    Shorter than ``texts`` where the budget cut the batch.
    """
    feedback = await Odds(objective, tuple(texts))
    return [f.worth if f.status == "ok" else -inf for f in feedback]


def tied(worth: float, draw: float) -> tuple[float, float]:
    """A sort key: best worth first, ties in the random order of ``draw``, never by index."""
    return (-worth, draw)
