"""E2 BEAST: a fluent suffix by beam search over the model's own next tokens, scored by the target loss; no gradient.

Source: arXiv 2402.15570.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.asks import Losses, Sample, Spell
from robustjudge.attacks.base import Exhausted, Target, objective, stem
from robustjudge.attacks.gcg import Ids, Track, prefix, spelled_out
from robustjudge.attacks.search import Search
from robustjudge.nouns import Access, Budget, Case


@spec.register("beast")
@dataclass(frozen=True)
class Beast(Search):
    """``beams`` beams, each extended by ``branch`` sampled tokens per step, up to ``length`` tokens.

    Forward passes: ``1 + (length - 1) * (beams + beams * branch)``, of which ``(length - 1) * beams * branch`` are
    losses and the rest samples.
    """

    beams: int = 15
    branch: int = 15
    length: int = 40
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.LOSS
    name: ClassVar[str] = "E2"

    small: ClassVar[Mapping[str, Any]] = {"beams": 3, "branch": 3, "length": 6}
    """Quick: k1 = k2 = 3, length 6: 61 passes.

    Reference: k1 = k2 = 15, length 40: 9,361 passes.
    """
    single: ClassVar[Mapping[str, Any]] = {"length": 2}

    def ceiling(self) -> Budget:
        return Budget(0, 0, (self.length - 1) * self.beams * self.branch, 0)

    async def __call__(self, case: Case) -> str:
        return await spelled_out(case, await self.search(case))

    async def search(self, case: Case) -> Track:
        """The best suffix and its trace, in token ids."""
        about = objective(stem=stem(case), joint="")
        track = Track()
        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            (first,) = await Sample("", (prefix(case, ""),), self.beams, self.seed)
            beams: list[Ids] = [(token,) for token in first]
            for step in range(1, self.length):
                texts = await Spell("", tuple(beams))
                drawn = await Sample("", tuple(prefix(case, t) for t in texts), self.branch, self.seed * 1000 + step)
                children = [(*beam, token) for beam, tokens in zip(beams, drawn) for token in tokens]
                losses = await Losses(about, tuple(children))
                for ids, value in zip(children, losses):
                    track.offer(ids, value)
                track.trace.append(track.loss)
                best = sorted(range(len(losses)), key=lambda i: losses[i])[: self.beams]
                beams = [children[i] for i in best]
        return track
