"""A candidate against a baseline run: paired on the same cases and attacks, raw and corrected for the judge's errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robustjudge.errors import NotComparable
from robustjudge.gate.decide import Word
from robustjudge.gate.evidence import Evidence, Observed, fingerprint
from robustjudge.gate.failures import Outcome
from robustjudge.gate.policy import Policy
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.compare import mcnemar
from robustjudge.nouns import Estimate

MUST_AGREE = ("case_set", "attack_set", "reader")
"""What must be equal for a comparison to mean anything; the rest of the fingerprint is what a release changes."""


@dataclass(frozen=True)
class Against:
    """The drop in the share of robust trials from baseline to candidate: raw, and divided by J."""

    verdict: Word
    reason: str
    rule: str
    raw: Estimate
    corrected: Estimate
    worse: int
    better: int
    pairs: int
    mcnemar_p: float
    changed: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "rule": self.rule,
            "raw_drop": self.raw.as_dict(),
            "corrected_drop": self.corrected.as_dict(),
            "worse": self.worse,
            "better": self.better,
            "pairs": self.pairs,
            "mcnemar_exact_p": self.mcnemar_p,
            "changed": list(self.changed),
        }


def check_comparable(candidate: Evidence, base: Evidence) -> tuple[str, ...]:
    """Raise :class:`NotComparable` where cases, attacks or reader differ; else what else of the fingerprint changed."""
    now, then = fingerprint(candidate), fingerprint(base)
    different = [name for name in MUST_AGREE if now[name] != then[name]]
    if different:
        told = ", ".join(f"{n.replace('_', ' ')} ({then[n]} then, {now[n]} now)" for n in different)
        raise NotComparable(
            f"the runs do not measure the same thing: {told}; run the baseline again on the candidate's cases and attacks"
        )
    return tuple(n for n in now if now[n] != then[n])


def against(
    candidate: Sequence[Outcome], base: Sequence[Outcome], policy: Policy, changed: tuple[str, ...] = ()
) -> Against:
    """Hold the candidate's outcomes against the baseline's, pair by pair; clusters are cases."""
    b = policy.baseline
    then = {_key(o.trial): o for o in base if _scored(o)}
    pairs = [(o, then[_key(o.trial)]) for o in candidate if _scored(o) and _key(o.trial) in then]
    drops = [float(now.succeeded) - float(old.succeeded) for now, old in pairs]
    worse, better = sum(d > 0 for d in drops), sum(d < 0 for d in drops)
    level = 2 * policy.confidence - 1
    raw = cluster_bootstrap(drops, [o.trial.cluster for o, _ in pairs], bounds=(-1.0, 1.0), level=level)
    p = mcnemar(worse, better).exact_p
    cases = len({o.trial.cluster for o, _ in pairs})
    if b.j <= 1e-9:
        corrected = Estimate.undefined("judge_not_better_than_chance", n=cases, low=-1.0, high=1.0)
        why = "unscorable: by its calibration the judge is no better than chance (J <= 0)"
        return Against("fail", why, b.rule, raw, corrected, worse, better, len(pairs), p, changed)
    corrected = _over(raw, b.j)
    word, why = _verdict(corrected, cases, policy)
    return Against(word, why, b.rule, raw, corrected, worse, better, len(pairs), p, changed)


def _verdict(drop: Estimate, cases: int, policy: Policy) -> tuple[Word, str]:
    b = policy.baseline
    if drop.value is None or drop.low is None or drop.high is None:
        return "inconclusive", "no pair of trials was scored in both runs"
    told = f"drop {100 * drop.value:+.1f} points ({100 * drop.low:+.1f} to {100 * drop.high:+.1f})"
    if cases < policy.minimum_n:
        return "inconclusive", f"{cases} paired cases, the policy wants {policy.minimum_n}: {told}"
    if b.rule == "regression":
        if drop.low > b.tolerance + 1e-9:
            return "fail", f"regression: {told}, beyond the tolerance of {100 * b.tolerance:g} points"
        return "pass", f"no regression shown: {told}, tolerance {100 * b.tolerance:g} points"
    if drop.high < b.margin - 1e-9:
        return "pass", f"not inferior: {told}, within the margin of {100 * b.margin:g} points"
    if drop.low >= b.margin - 1e-9:
        return "fail", f"inferior: {told}, beyond the margin of {100 * b.margin:g} points"
    return "inconclusive", f"not shown to be non-inferior: {told}, margin {100 * b.margin:g} points"


def _over(e: Estimate, j: float) -> Estimate:
    if e.value is None:
        return e
    cut = [
        max(-1.0, min(1.0, v / j))
        for v in (e.value, -1.0 if e.low is None else e.low, 1.0 if e.high is None else e.high)
    ]
    return Estimate(cut[0], cut[1], cut[2], e.n, f"{e.method}, divided by J = {j:.3g}", e.reason, e.flags)


def _scored(o: Outcome) -> bool:
    return o.evaluated and (o.attackable or o.failed)


def _key(t: Observed) -> tuple[str, ...]:
    return t.case_id, t.case_hash, t.attack, t.protocol, t.threat, str(t.seed)
