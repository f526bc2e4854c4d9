"""O4 Cheating (null model): one constant response, unrelated to any task, that wins everywhere.

Source: arXiv 2410.07137 as used in arXiv 2506.09443 section IV-B; structure and search re-made, wording ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.attacks.base import Channel, Exhausted, NoCandidate, Target, objective
from robustjudge.attacks.search import Provenance, Search, odds
from robustjudge.attacks.text import TextAttack
from robustjudge.attacks.words import VOCABULARY
from robustjudge.nouns import Access, Budget, Case, Severity


@spec.register("cheating")
@dataclass(frozen=True)
class Cheating(Search):
    """A prefix of ``length`` plain words, then a structure that closes the field and forges an evaluation.

    ``fit`` changes one word per step and keeps the change unless the mean log-odds over the training cases falls.
    With ``grow`` > 0 the set grows from 2 to ``contexts`` cases by one every ``grow`` steps, and a change is compared
    on the cases that both strings were scored on, so that losses of different sets are never compared; otherwise the
    set is fixed.  Queries: ``grow``: the sum of the set's sizes over ``steps``; fixed: ``contexts * (1 + steps)``.
    """

    length: int = 128
    steps: int = 384
    contexts: int = 20
    grow: int = 16
    structure: bool = True
    words: tuple[str, ...] = VOCABULARY
    phrase: str = ""
    provenance: Provenance | None = None
    seed: int = 0
    target: Target = Target()

    name: ClassVar[str] = "O4"
    severity: ClassVar[Severity] = "critical"
    channel: ClassVar[Channel] = "replace"

    @property
    def access(self) -> Access:
        """What fitting needs; a fitted one needs none."""
        return Access.ODDS if self.universal else Access.NONE

    @property
    def universal(self) -> bool:
        """Whether it must still be fitted."""
        return self.provenance is None

    family: ClassVar[str] = "optimisation"
    small: ClassVar[Mapping[str, Any]] = {"length": 16, "steps": 32, "contexts": 2, "grow": 0}
    """Quick: L = 16, N = 32, two fixed cases: 66 context evaluations.

    Reference: L = 128, N = 384, set growing 2..20 every 16 steps: 4,944 context evaluations.
    """

    def size(self, step: int) -> int:
        """How many training cases step ``step`` is scored on."""
        return min(2 + step // self.grow, self.contexts) if self.grow else self.contexts

    def ceiling(self) -> Budget:
        if not self.universal:
            return Budget(0, 0, 0, 0)
        searched = sum(self.size(i) for i in range(self.steps))
        return Budget(searched + (0 if self.grow else self.contexts), 0, 0, 0)

    def text(self, prefix: Sequence[str]) -> str:
        """The constant response, exactly as scored and as deployed."""
        made = TextAttack("O4", seed=self.seed, target=self.target).payload(Case("", "", "")) if self.structure else ""
        return "\n".join(p for p in (" ".join(prefix), made) if p)

    async def fit(self, cases: Sequence[Case]) -> Cheating:
        """Search the prefix on training cases; the fitted attack deploys without any access."""
        if not cases:
            raise NoCandidate("a universal attack needs training cases")
        rng = Random(f"{self.seed}/cheating")
        prefix = [rng.choice(self.words) for _ in range(self.length)]
        known: dict[int, float] = {}
        trace: list[float] = []
        queries = 0
        used = 0

        async def scored(words: Sequence[str], n: int) -> dict[int, float]:
            nonlocal queries
            found: dict[int, float] = {}
            for i, case in enumerate(cases[:n]):
                answer = await odds(objective(case=case), (self.text(words),))
                queries += 1
                found[i] = answer[0]
            return found

        try:
            if not self.grow:
                known = await scored(prefix, self.contexts)
            for step in range(self.steps):
                used = min(self.size(step), len(cases))
                trial = list(prefix)
                trial[rng.randrange(self.length)] = rng.choice(self.words)
                found = await scored(trial, used)
                shared = known.keys() & found.keys()
                if sum(found[i] for i in shared) >= sum(known[i] for i in shared):
                    prefix, known = trial, found
                trace.append(sum(known.values()) / len(known))
        except Exhausted:
            pass  # the string in hand was scored last as a whole; a half-scored change is dropped
        if not known:
            raise NoCandidate("the budget ended before one candidate was scored on the training cases")
        ids = tuple(c.id for c in cases[: max(used, len(known))])
        origin = Provenance(ids, "mean log-odds of a win over the cases", self.seed, queries, tuple(trace))
        return replace(self, phrase=" ".join(prefix), provenance=origin)

    async def __call__(self, case: Case) -> str:
        if self.provenance is None:
            raise NoCandidate("O4 is universal: fit it on training cases first")
        return self.text(self.phrase.split())
