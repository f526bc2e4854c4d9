"""O7 Greedy universal phrase: the few words that raise any response, chosen position by position.

Source: arXiv 2402.14016 as used in arXiv 2506.09443 section IV-B.  The released search takes the first improvement in
list order and deploys another text than it scored; ours takes the arg-max and deploys the scored text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.attacks.base import Channel, Exhausted, NoCandidate, Target, objective, stem
from robustjudge.attacks.search import Provenance, Search, odds
from robustjudge.attacks.words import VOCABULARY
from robustjudge.nouns import Access, Budget, Case


@spec.register("greedy")
@dataclass(frozen=True)
class Greedy(Search):
    """``positions`` words from ``words``, each the arg-max of the mean log-odds over ``contexts`` training cases.

    ``contexts`` = 0 takes every training case.  With ``halving`` each further case is asked only about the better half
    of the words.  Queries: at most ``positions * len(words) * contexts``.
    """

    words: tuple[str, ...] = VOCABULARY
    positions: int = 4
    contexts: int = 0
    halving: bool = False
    phrase: str = ""
    provenance: Provenance | None = None
    seed: int = 0
    target: Target = Target()

    name: ClassVar[str] = "O7"
    channel: ClassVar[Channel] = "append"

    @property
    def access(self) -> Access:
        """What fitting needs; a fitted one needs none."""
        return Access.ODDS if self.universal else Access.NONE

    @property
    def universal(self) -> bool:
        """Whether it must still be fitted."""
        return self.provenance is None

    family: ClassVar[str] = "optimisation"
    small: ClassVar[Mapping[str, Any]] = {"words": VOCABULARY[:64], "positions": 2, "contexts": 2}
    """Quick: 64 pre-screened words, P = 2, two cases: 256 queries.

    Reference: P = 4 (original); the published vocabulary has 20,000 words, which the user supplies.
    """
    single: ClassVar[Mapping[str, Any]] = {"positions": 1}

    def ceiling(self) -> Budget:
        if not self.universal:
            return Budget(0, 0, 0, 0)
        cases = self.contexts or None
        return Budget(cases and self.positions * len(self.words) * cases, 0, 0, 0)

    @staticmethod
    def deployed(case: Case, phrase: str) -> str:
        """The response with the phrase: the one text that is scored and deployed."""
        return f"{stem(case)}{phrase}."

    async def fit(self, cases: Sequence[Case]) -> Greedy:
        """Build the phrase on training cases; the fitted attack deploys without any access."""
        chosen = tuple(cases[: self.contexts or len(cases)])
        if not chosen:
            raise NoCandidate("a universal attack needs training cases")
        phrase: list[str] = []
        trace: list[float] = []
        queries = 0
        try:
            for _ in range(self.positions):
                open_ = list(range(len(self.words)))
                totals = [0.0] * len(self.words)
                for at, case in enumerate(chosen):
                    if self.halving and at:
                        open_ = sorted(open_, key=lambda i: -totals[i])[: max(1, (len(open_) + 1) // 2)]
                    texts = [self.deployed(case, " ".join([*phrase, self.words[i]])) for i in open_]
                    answers = await odds(objective(case=case), texts)
                    queries += len(answers)
                    if len(answers) < len(texts):
                        raise Exhausted("the batch was cut")
                    for i, worth in zip(open_, answers, strict=True):
                        totals[i] += worth
                top = max(open_, key=lambda i: (totals[i], -i))
                phrase.append(self.words[top])
                trace.append(totals[top] / len(chosen))
        except Exhausted:
            pass  # words chosen so far stand; a position scored in part is dropped
        if not phrase:
            raise NoCandidate("the budget ended before the first word was chosen")
        ids = tuple(c.id for c in chosen)
        origin = Provenance(ids, "mean log-odds of a win over the cases", self.seed, queries, tuple(trace))
        return replace(self, phrase=" ".join(phrase), provenance=origin)

    async def __call__(self, case: Case) -> str:
        if not self.phrase:
            raise NoCandidate("O7 is universal: fit it on training cases first")
        return self.deployed(case, self.phrase)
