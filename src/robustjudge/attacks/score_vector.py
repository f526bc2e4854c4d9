"""The search of RQ3: climb on the whole score vector that a service returns, where its overall score alone stays flat.

Source: RQ3 of arXiv 2506.09443, a PAIR-style search against a service with five sub-scores and an overall score; here
by rule, without an attacker model.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.asks import Score
from robustjudge.attacks.base import Channel, Exhausted, Target
from robustjudge.attacks.operators import StillWrong, rewritten
from robustjudge.attacks.search import Best, Search
from robustjudge.nouns import Access, Budget, Case, Feedback


@spec.register("score_vector")
@dataclass(frozen=True)
class ScoreVector(Search):
    """Each round rewrites the best text so far ``width`` times by rule and keeps the best by :func:`height`.

    Texts whose content quality rises are left out.  Queries: at most ``1 + rounds * width``.
    """

    rounds: int = 3
    width: int = 4
    tolerance: float = 0.02
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.SCORE
    name: ClassVar[str] = "score_vector"
    channel: ClassVar[Channel] = "rewrite"

    small: ClassVar[Mapping[str, Any]] = {"rounds": 2, "width": 2}
    """Quick: two rounds of two: 5 queries.

    Reference: three rounds of four: 13 queries.
    """
    single: ClassVar[Mapping[str, Any]] = {"rounds": 1}

    def ceiling(self) -> Budget:
        return Budget(1 + self.rounds * self.width, 0, 0, 0)

    async def __call__(self, case: Case) -> str:
        best = Best()
        verifier = StillWrong(self.tolerance)
        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            await verifier.start(case)
            best.offer_all([case.response], [height(f) for f in await Score((case.response,))])
            for turn in range(self.rounds):
                rng = Random(f"{self.seed}/{case.id}/{turn}")
                here = best.text or case.response
                made = dict.fromkeys(rewritten(case, here, rng, self.target) for _ in range(2 * self.width))
                made.pop(here, None)
                texts = await verifier.passed(tuple(made)[: self.width])
                if texts:
                    best.offer_all(texts, [height(f) for f in await Score(texts)])
        return best.take("the budget ended before the first text was judged")


def height(feedback: Feedback) -> float:
    """Mean of the overall worth and the mean sub-score; 0 for a status other than ``ok``."""
    if feedback.status != "ok":
        return 0.0
    if not feedback.parts:
        return feedback.worth
    return (feedback.worth + sum(v for _, v in feedback.parts) / len(feedback.parts)) / 2
