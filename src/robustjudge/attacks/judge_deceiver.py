"""E1 JudgeDeceiver: GCG on a judge's own verdict against shadow rivals, with a fluency term.

Source: arXiv 2403.17710.  Its target-sentence and label losses are one here: the loss of our objective is the margin of
the judge's own label after its own forced lead, so no label position is coded by hand.  Orders are averaged inside each
objective; rivals are of the attacker's own making.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp, inf, log
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from robustjudge import spec
from robustjudge.asks import Losses, Spell, Surprise, Swaps
from robustjudge.attacks.base import Exhausted, Target, objective, stem
from robustjudge.attacks.gcg import Ids, Table, Track, descend, opening, spelled_out
from robustjudge.attacks.operators import rewritten
from robustjudge.attacks.search import Search
from robustjudge.nouns import Access, Budget, Case

if TYPE_CHECKING:
    from robustjudge.objective import Objective


@spec.register("judge_deceiver")
@dataclass(frozen=True)
class JudgeDeceiver(Search):
    """``contexts`` shadow rivals; ``fluency`` weighs the payload's mean surprisal; ``worst`` > 0 replaces the mean over
    contexts by a soft maximum of that temperature, so that the win holds against every rival.

    ``progressive`` starts with one shadow rival and adds the next once the best loss wins against all current ones, as
    published; the ceiling is reached without it.  Losses: at most ``steps * width * contexts``.
    """

    length: int = 20
    steps: int = 600
    width: int = 128
    k: int = 256
    contexts: int = 6
    fluency: float = 0.1
    worst: float = 0.0
    progressive: bool = False
    init: tuple[int, ...] = ()
    shadows: tuple[str, ...] = ()
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.GRADIENT
    name: ClassVar[str] = "E1"

    small: ClassVar[Mapping[str, Any]] = {"length": 8, "steps": 10, "width": 16, "k": 32, "contexts": 2}
    """Quick: 8 tokens, 10 steps, B = 16, k = 32, 2 shadow sets: at most 320 losses.

    Reference: 20 tokens, 600 steps, B = 128, k = 256, 6 shadow sets: at most 460,800 losses.
    """
    single: ClassVar[Mapping[str, Any]] = {"steps": 1, "contexts": 1}

    def ceiling(self) -> Budget:
        return Budget(0, 0, self.steps * self.width * self.contexts, self.steps * self.contexts)

    def objectives(self, case: Case) -> tuple[Objective, ...]:
        """One objective per shadow rival: the given ones, else rule-made rewrites of the weak response."""
        own = [
            rewritten(case, case.response, Random(f"{self.seed}/{case.id}/shadow/{i}"), self.target)
            for i in range(self.contexts)
        ]
        rivals = (*self.shadows, *own)[: self.contexts]
        return tuple(objective(stem=stem(case), joint="", shadows=(rival,)) for rival in rivals)

    def combined(self, losses: Sequence[float]) -> float:
        """Mean, or soft maximum, of one suffix's losses over the contexts."""
        if inf in losses:
            return inf
        if self.worst <= 0:
            return sum(losses) / len(losses)
        top = max(losses)
        return top + self.worst * log(sum(exp((x - top) / self.worst) for x in losses) / len(losses))

    async def __call__(self, case: Case) -> str:
        return await spelled_out(case, await self.search(case))

    async def search(self, case: Case) -> Track:
        """The best suffix and its trace, in token ids."""
        about = self.objectives(case)
        active = 1 if self.progressive else len(about)
        track = Track()

        async def loss(batch: tuple[Ids, ...]) -> Sequence[float]:
            found = [await Losses(o, batch) for o in about[:active]]
            totals = [self.combined(row) for row in zip(*found)]
            if self.fluency:
                texts = await Spell("", batch[: len(totals)])
                said = await Surprise("", texts)
                for i, s in enumerate(said[: len(totals)]):
                    totals[i] += -self.fluency * sum(s.logprobs) / max(1, len(s.logprobs))
            return totals

        async def gradient(suffix: Ids) -> Table:
            tables = [await Swaps(o, suffix, self.k) for o in about[:active]]
            return tuple(ranked(rows, self.k) for rows in zip(*tables))

        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            start = self.init or await opening(case, self.length, self.seed)
            rng = Random(f"{self.seed}/{case.id}/judge_deceiver")
            if not self.progressive:
                await descend(start, self.steps, self.width, loss, gradient, track, rng)
                return track
            for _ in range(self.steps):
                await descend(track.ids or start, 1, self.width, loss, gradient, track, rng)
                if track.loss < 0 and active < len(about):  # the own label leads its rivals everywhere: a harder set
                    active += 1
                    track.loss = inf  # losses over different sets are not compared
        return track


def ranked(rows: Sequence[Ids], k: int) -> Ids:
    """One position's token ids by summed rank over contexts, best first (a token outside a list counts as last)."""
    score: dict[int, int] = {}
    for row in rows:
        for place, token in enumerate(row):
            score[token] = score.get(token, 0) + k - place
    return tuple(sorted(score, key=lambda t: -score[t])[:k])
