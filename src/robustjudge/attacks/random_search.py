"""E3 Random search on log-probabilities with self-transfer: the default optimiser for judges that show label odds.

Source: arXiv 2404.02151; re-made over words, since no tokenizer of a remote judge is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp, inf
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from robustjudge import spec
from robustjudge.attacks.base import Exhausted, NoCandidate, Target, objective, stem
from robustjudge.attacks.search import Best, Provenance, Search, odds
from robustjudge.attacks.words import VOCABULARY
from robustjudge.nouns import Access, Budget, Case

if TYPE_CHECKING:
    from robustjudge.objective import Objective

DEAD = 20
"""Answers in a row without a usable label after which the search gives up instead of spinning."""


@spec.register("random_search")
@dataclass(frozen=True)
class RandomSearch(Search):
    """A suffix of ``length`` words; each step changes a contiguous block and keeps it if the log-odds rise.

    ``block`` fixes the block's size (0: a sixth of the suffix, half of that from a win probability of 10 %, a quarter
    from 50 %);
    ``start`` is a suffix that worked on another case; with ``transfer`` it is searched first, on up to ``contexts``
    training cases (0: all), each started from the last one's.  Stops at the log-odds ``stop`` (default 0 where a label is
    chosen, 2.2 = 90 % of the range where a score is given), or after ``patience`` steps that together gained less
    than 0.01.  Queries: at most ``1 + steps`` per case.
    """

    length: int = 25
    steps: int = 10_000
    block: int = 0
    patience: int = 750
    stop: float | None = None
    start: str = ""
    words: tuple[str, ...] = VOCABULARY
    provenance: Provenance | None = None
    seed: int = 0
    target: Target = Target()
    transfer: bool = False
    contexts: int = 2

    access: ClassVar[Access] = Access.ODDS

    @property
    def name(self) -> str:
        return "E3/transfer" if self.transfer else "E3"

    @property
    def universal(self) -> bool:
        """Whether its start must still be found."""
        return self.transfer and self.provenance is None

    small: ClassVar[Mapping[str, Any]] = {"length": 8, "steps": 60}
    """Quick: 8 words, 60 steps.

    Reference: 25 words, 10,000 steps.
    """

    def ceiling(self) -> Budget:
        if not self.universal:
            return self.fitted_ceiling()
        return Budget(self.contexts * (1 + self.steps) if self.contexts else None, 0, 0, 0)

    def fitted_ceiling(self) -> Budget:
        return Budget(1 + self.steps, 0, 0, 0)

    def least(self) -> Budget:
        return Budget(2, 0, 0, 0)

    async def __call__(self, case: Case) -> str:
        best = Best()
        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            await self._search(case, objective(), self.start.split(), best, [])
        return best.take("no label probability came back for the target")

    async def fit(self, cases: Sequence[Case]) -> RandomSearch:
        """Self-transfer: search the cases in turn, each started from the last one's suffix; keep that suffix."""
        words, trace, queries = self.start.split(), list[float](), list[float]()
        with suppress(Exhausted):
            for case in cases[: self.contexts or None]:
                best = Best()
                await self._search(case, objective(case=case), words, best, queries)
                trace.append(best.worth)
                words = (best.text or "")[len(stem(case)) :].split() or words
        if not words:
            raise NoCandidate("no training case gave a suffix")
        origin = Provenance(
            tuple(c.id for c in cases[: len(trace)]),
            "log-odds of a win, case by case",
            self.seed,
            len(queries),
            tuple(trace),
        )
        return replace(self, start=" ".join(words), provenance=origin)

    def _goal(self) -> float:
        if self.stop is not None:
            return self.stop
        return 0.0 if self.target.protocol in ("pairwise", "best_of") else 2.2

    def _block(self, worth: float) -> int:
        if self.block:
            return self.block
        p = 1 / (1 + exp(-max(min(worth, 50.0), -50.0)))
        return max(1, self.length // 6 // (4 if p >= 0.5 else 2 if p >= 0.1 else 1))

    async def _search(self, case: Case, about: Objective, start: Sequence[str], best: Best, asked: list[float]) -> None:
        rng = Random(f"{self.seed}/{case.id}/random_search")
        words = (list(start) + [rng.choice(self.words) for _ in range(self.length)])[: self.length]
        lead = stem(case)

        async def scored(candidate: Sequence[str]) -> float:
            text = lead + " ".join(candidate)
            answers = await odds(about, (text,))
            asked.extend(answers)
            if answers[0] > -inf:
                best.offer(text, answers[0])
            return answers[0]

        here = await scored(words)
        gained, since, dead = here, 0, int(here == -inf)
        for _ in range(self.steps):
            if here >= self._goal() or since >= self.patience or dead >= DEAD:
                return
            size = min(self._block(here), self.length)
            at = rng.randrange(self.length - size + 1)
            changed = [*words[:at], *(rng.choice(self.words) for _ in range(size)), *words[at + size :]]
            worth = await scored(changed)
            dead = dead + 1 if worth == -inf else 0
            if worth > here:
                words, here = changed, worth
            since += 1
            if here >= gained + 0.01:
                gained, since = here, 0
