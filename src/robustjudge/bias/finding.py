"""A finding and a report of findings, as they are printed and published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from robustjudge.bias.policy import BiasPolicy
from robustjudge.nouns import Estimate

Decision = Literal["bounded", "biased", "inconclusive", "degenerate"]


@dataclass(frozen=True)
class Finding:
    """One hypothesis about one judge.

    ``effect`` lies in [-1, 1]: share of the scale, or of wins (a difference of differences between judges: [-2, 2]).
    ``p_adjusted`` is Holm's over the gating hypotheses, or Benjamini-Hochberg's over the exploratory ones.  ``worst``
    counts every unread pair against the judge, ``drop_p`` tests whether edit and twin were unreadable equally often.
    ``needed``: cases that would settle it.  ``more`` holds further figures by name.
    """

    judge: str
    name: str
    group: str
    protocol: str
    claim: str
    gating: bool
    effect: Estimate
    p: float | None
    p_adjusted: float | None
    retest: Estimate
    coverage: Estimate
    worst: Estimate
    drop_p: float | None
    decision: Decision
    statement: str
    needed: int | None = None
    flags: tuple[str, ...] = ()
    more: Mapping[str, Estimate] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; the same shape stands in a profile under ``bias``."""
        out = {k: v.as_dict() if isinstance(v, Estimate) else v for k, v in vars(self).items()}
        return out | {"flags": list(self.flags), "more": {k: e.as_dict() for k, e in self.more.items()}}


@dataclass(frozen=True)
class Report:
    """All findings of a run, with the policy that was fixed before it."""

    findings: tuple[Finding, ...]
    policy: BiasPolicy
    population: str
    run: str = ""

    @property
    def exit_code(self) -> int:
        """1 when a gating hypothesis is found biased (or the judge degenerate), 3 when one is open, else 0."""
        said = [f.decision for f in self.findings if f.gating]
        if any(d in ("biased", "degenerate") for d in said):
            return 1
        return 3 if not said or "inconclusive" in said else 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "robustjudge.bias/1",
            "population": self.population,
            "run": self.run,
            "policy": asdict(self.policy),
            "findings": [f.as_dict() for f in self.findings],
        }
