"""O1 AdvEval: rewrite the whole response from a growing pool of scored texts, quality held down.

Source: arXiv 2506.09443 section IV-B after AdvEval.  The released code starts from the *reference* and maximises
victim minus quality, so that it gains by degrading text; ours starts from the weak response and keeps quality as a
constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.asks import Score, Write
from robustjudge.attacks.base import Channel, Exhausted, NoCandidate, Target
from robustjudge.attacks.operators import Heard, StillWrong, pool_prompt, rewritten, tagged
from robustjudge.attacks.search import Best, Search, worths
from robustjudge.nouns import Access, Budget, Case


@spec.register("adveval")
@dataclass(frozen=True)
class AdvEval(Search):
    """``rounds`` rounds of ``width`` new texts, ``keep`` of the pool shown to the attacker model; ``stop`` is the
    worth in [0, 1] that ends the search, ``tolerance`` how far quality may rise.  ``rules`` needs no attacker model.

    Queries: at most ``1 + rounds * width``.
    """

    rounds: int = 10
    width: int = 4
    keep: int = 10
    stop: float = 0.8
    tolerance: float = 0.02
    rules: bool = False
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.SCORE
    category: ClassVar[str] = "injection"
    channel: ClassVar[Channel] = "rewrite"

    @property
    def name(self) -> str:
        return "O1/rules" if self.rules else "O1"

    @property
    def writes(self) -> bool:
        return not self.rules

    family: ClassVar[str] = "optimisation"
    small: ClassVar[Mapping[str, Any]] = {"rounds": 3, "width": 2, "keep": 4}
    """Quick: T = 3, n = 2, K = 4: 7 queries.

    Reference: T = 10, n = 4, K = 10, stop at 80 of 100 (released code): 41 queries.
    """
    single: ClassVar[Mapping[str, Any]] = {"rounds": 1}

    def ceiling(self) -> Budget:
        return Budget(1 + self.rounds * self.width, 0 if self.rules else self.rounds, 0, 0)

    async def __call__(self, case: Case) -> str:
        pool: dict[str, float] = {}
        heard = Heard()
        with suppress(Exhausted):  # the budget is spent: what the pool holds is the answer
            await self._search(case, pool, heard)
        if not set(pool) - {case.response}:
            raise NoCandidate(heard.why("no new text was legal: untagged, doubled, refused, or better in content"))
        best = Best()
        best.offer_all(list(pool), list(pool.values()))
        return best.take("")

    async def _search(self, case: Case, pool: dict[str, float], heard: Heard) -> None:
        verifier = StillWrong(self.tolerance)
        await verifier.start(case)
        pool |= zip((case.response,), worths(await Score((case.response,))))
        for step in range(self.rounds):
            texts = await verifier.passed(await self._proposed(case, pool, step, heard))
            if texts:
                pool |= zip(texts, worths(await Score(texts)))
            if max(pool.values()) >= self.stop:
                return

    async def _proposed(self, case: Case, pool: dict[str, float], step: int, heard: Heard) -> tuple[str, ...]:
        """Up to ``width`` texts that the pool does not hold yet."""
        ranked = sorted(pool, key=pool.__getitem__)[-self.keep :]
        if self.rules:
            rng = Random(f"{self.seed}/{case.id}/{step}")
            # half from the best text, half from the weak response, so that one lucky operator does not end variety
            starts = [ranked[-1] if i % 2 == 0 else case.response for i in range(4 * self.width)]
            found = [rewritten(case, text, rng, self.target) for text in starts]
        else:
            prompt = pool_prompt(case, [(t, pool[t]) for t in ranked], self.width)
            (reply,) = await Write((prompt,), max_tokens=1024, seed=self.seed * 1000 + step)
            heard.note((reply,))
            found = list(tagged(reply.text)) if reply.status in ("ok", "truncated") else []
        return tuple(t for t in dict.fromkeys(found) if t not in pool)[: self.width]
