"""E8 defense-aware search: start from the static winner, then search against the judge as it is defended.

The threat model does the rest: ``answers="victim"`` asks the defended judge, ``draws`` averages over fresh draws of the
defense's randomness (expectation over transformation), ``penalty`` charges what detectors block.  Because the search
ends with one comparison of its best text with the static winner under the same draws, its *objective* is never below
the static one; the success rate on the final draws may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from robustjudge import spec
from robustjudge.asks import Score
from robustjudge.attacks.base import Channel, Exhausted, NoCandidate, Plugin, Target, objective
from robustjudge.attacks.search import odds, worths
from robustjudge.nouns import Access, Budget, Case, Severity


@spec.register("adaptive")
@dataclass(frozen=True)
class Adaptive(Plugin):
    """The best of ``starts`` (text attacks; the weak response itself is always among them), continued by ``inner``.

    Queries: one per start and one for the response, the inner search's, and two for the last comparison; where the
    budget ends before that, the static winner stands.
    """

    inner: Plugin
    starts: tuple[Plugin, ...] = ()
    seed: int = 0

    @property
    def name(self) -> str:
        return f"E8/{self.inner.name}"

    @property
    def access(self) -> Access:
        return max(self.inner.access, Access.SCORE)

    @property
    def severity(self) -> Severity:
        return self.inner.severity

    @property
    def channel(self) -> Channel:
        return self.inner.channel

    @property
    def writes(self) -> bool:
        return self.inner.writes

    def ceiling(self) -> Budget:
        inner = self.inner.ceiling()
        own = len(self.starts) + 3
        return Budget(
            None if inner.queries is None else inner.queries + own, inner.writes, inner.losses, inner.gradients
        )

    def least(self) -> Budget:
        """A look at the starts and the response, and one step of the inner search."""
        inner = self.inner.least()
        own = len(self.starts) + 1
        return replace(inner, queries=None if inner.queries is None else inner.queries + own)

    def bound(self, target: Target) -> Adaptive:
        return replace(self, inner=self.inner.bound(target), starts=tuple(s.bound(target) for s in self.starts))

    async def __call__(self, case: Case) -> str:
        winner = await self._winner(case)
        inner: Any = self.inner
        if self.seed and "seed" in inner.__dataclass_fields__:
            inner = replace(inner, seed=self.seed)
        with suppress(Exhausted, NoCandidate):  # then the static winner is the answer
            found = await inner(replace(case, response=winner))
            before, after = await self._worth((winner, found))
            return found if after > before else winner
        return winner

    async def _winner(self, case: Case) -> str:
        """The static text of greatest worth; the earlier one of equals."""
        texts = {case.response: None}
        for start in self.starts:
            with suppress(NoCandidate):
                texts[await start(case)] = None
        listed = tuple(texts)
        found = await self._worth(listed)
        best = max(range(len(found)), key=lambda i: (found[i], -i))
        return listed[best]

    async def _worth(self, texts: Sequence[str]) -> list[float]:
        """Worth of texts in one ask, by what the inner search itself may see."""
        if self.inner.access >= Access.ODDS:
            found = await odds(objective(), texts)
        else:
            found = worths(await Score(tuple(texts)))
        if len(found) < min(2, len(texts)):
            raise Exhausted("the budget ended before two texts could be compared")
        return found
