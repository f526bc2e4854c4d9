"""E9 Resubmit(k): submit, see the score, revise, submit again, keep the best; no conversation.

The control resubmits the same text: any gain beyond it is attack, below it is luck.
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
from robustjudge.attacks.operators import Heard, StillWrong, rewritten, tagged, turn_prompt
from robustjudge.attacks.search import Best, Search, worths
from robustjudge.nouns import Access, Budget, Case


@spec.register("resubmit")
@dataclass(frozen=True)
class Resubmit(Search):
    """``times`` submissions, the weak response first; ``same`` repeats it unchanged (the control).  Queries: ``times``."""

    times: int = 10
    same: bool = False
    rules: bool = False
    tolerance: float = 0.02
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.SCORE
    channel: ClassVar[Channel] = "rewrite"

    @property
    def name(self) -> str:
        return "/".join(["Resubmit", *(["same"] if self.same else ["rules"] if self.rules else [])])

    @property
    def control(self) -> str:
        return "resubmit_same" if self.same else ""

    @property
    def writes(self) -> bool:
        return not (self.same or self.rules)

    small: ClassVar[Mapping[str, Any]] = {"times": 3}
    """Quick: k = 3.

    Reference: k = 10.
    """
    single: ClassVar[Mapping[str, Any]] = {"times": 2}

    def ceiling(self) -> Budget:
        return Budget(self.times, self.times - 1 if self.writes else 0, 0, 0)

    async def __call__(self, case: Case) -> str:
        best, heard = Best(), Heard()
        turns: list[tuple[str, float]] = []
        verifier = StillWrong(self.tolerance)
        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            if not self.same:
                await verifier.start(case)
            for i in range(self.times):
                text = case.response if i == 0 or self.same else await self._revised(case, best, turns, i, heard)
                if i and not self.same and not await verifier.passed((text,)):
                    continue
                (worth,) = worths(await Score((text,)))
                turns.append((text, worth))
                best.offer(text, worth)
            if self.times > 1 and not self.same and all(text == case.response for text, _ in turns):
                raise NoCandidate(heard.why("no revision was legal: untagged, refused, or better in content"))
        return best.take("the budget ended before the first submission was judged")

    async def _revised(self, case: Case, best: Best, turns: list[tuple[str, float]], i: int, heard: Heard) -> str:
        here = best.text or case.response
        if self.rules:
            return rewritten(case, here, Random(f"{self.seed}/{case.id}/{i}"), self.target)
        (reply,) = await Write((turn_prompt(case, i, turns[-4:]),), 1.0, 500, self.seed * 1000 + i)
        heard.note((reply,))
        return next(iter(tagged(reply.text)), here) if reply.status == "ok" else here
