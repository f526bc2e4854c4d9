"""X6 committee: judges of different families answer the same slate, and their verdicts are combined.

Three independent judges, each fooled with probability p, are fooled by majority with 3p^2 - 2p^3; perfectly correlated
ones with p.  So the correlation of failures is what to report, not only the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mean
from typing import Literal

from robustjudge import spec
from robustjudge.defenses.base import Extra, Shield, Worth
from robustjudge.errors import ConfigError
from robustjudge.judges import Judge, aggregate, models_of
from robustjudge.nouns import Slate, Verdict
from robustjudge.steps import together


@spec.register("committee")
@dataclass(frozen=True)
class Committee(Shield):
    """The guarded judge and ``others``.  ``rule``: ``median`` of scores (a choice needs more than half of *all*
    members), or ``trimmed`` mean, which drops the lowest and the highest score.

    Quorum: more than half of all members must give a verdict.  ``veto``: where scores, on [0, 1] of the scale, lie
    further apart than this (or, for a choice, a share of members above it disagrees with the winner), a person decides
    (``blocked``, worth ``abstain``).
    """

    others: tuple[Judge, ...]
    rule: Literal["median", "trimmed"] = "median"
    veto: float | None = None

    def __post_init__(self) -> None:
        if not self.others:
            raise ConfigError("a committee needs at least one judge besides the guarded one")
        if self.rule == "trimmed" and len(self.others) < 2:
            raise ConfigError("a trimmed mean needs three or more members")

    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m for judge in self.others for m in models_of(judge)))

    def extra(self, slate: Slate) -> Extra:
        return Extra(judges=len(self.others))

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        verdicts = await together(j(slate) for j in (judge, *self.others))
        found = aggregate(verdicts)
        if found.status != "ok":
            return found
        units = sorted(v.unit for v in verdicts if v.status == "ok" and v.unit is not None)
        apart = units[-1] - units[0] if found.choice is None and units else 0.0
        if found.choice is not None:
            apart = 1 - sum(v.status == "ok" and v.choice == found.choice for v in verdicts) / len(verdicts)
        if self.veto is not None and apart > self.veto + 1e-9:
            return vetoed(found, f"committee: members lie {apart:.2f} apart", "abstain")
        if self.rule == "trimmed" and found.choice is None and not found.label and len(units) > 2:
            scores = sorted(v.score for v in verdicts if v.status == "ok" and v.score is not None)
            return replace(found, score=mean(scores[1:-1]), unit=mean(units[1:-1]))
        return found


def vetoed(verdict: Verdict, reason: str, worth: Worth) -> Verdict:
    """A verdict that is withheld: its words stay, its value goes."""
    return Verdict(status="blocked", reason=reason, raw=verdict.raw, rationale=verdict.rationale, fallback=worth)
