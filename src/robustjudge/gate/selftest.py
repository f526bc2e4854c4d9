"""The gate tested on itself: A/A false alarms from a run's own retests, and the smallest effect the gate would see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from robustjudge.gate.bounds import detectable_rate, drop_bounds, exact, zero_power_rate
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.failures import GRAVE, Noise, noises, outcome
from robustjudge.gate.policy import Policy
from robustjudge.measures.intervals import clopper_pearson
from robustjudge.nouns import Estimate

POWER = 0.8


@dataclass(frozen=True)
class FalseAlarm:
    """What the gate does when nothing changed: each text judged again (``identity/i`` against ``clean/i``) as if attacked.

    ``per_comparison``: share of retests that would count as a confirmed failure.  ``gate``: the chance that a gate of
    ``trials`` blocks an unchanged judge, with bounds from those of ``per_comparison``.  ``flip_rate``: share of retests
    that differ at all.  ``mde``: failure rate that the gate sees with 80 % power at its cases.
    """

    per_comparison: Estimate
    gate: Estimate
    flip_rate: Estimate
    mde: float | None
    trials: int
    cases: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "per_comparison": self.per_comparison.as_dict(),
            "gate": self.gate.as_dict(),
            "flip_rate": self.flip_rate.as_dict(),
            "mde_at_80_percent_power": self.mde,
            "trials": self.trials,
            "cases": self.cases,
        }


def false_alarm(e: Evidence, policy: Policy) -> FalseAlarm:
    """A/A on a run: the identity control goes through the gate's own rule, with noise known from clean replicas alone."""
    noise, every = noises(e)
    null = [outcome(t, policy, noise.get(t.panel, Noise())) for t in e.controls("identity")]
    live = [o for o in null if o.evaluated and o.attackable]
    false = sum(o.confirmed for o in live)
    per = clopper_pearson(false, len(live), reason="no identity control was run")
    graves = [t for t in e.attacks if t.severity in GRAVE]
    cases = len({t.cluster for t in e.attacks})
    if per.value is None:
        gate = Estimate.undefined("no identity control was run", low=0.0, high=1.0)
    else:
        risks = [_blocks(p, len(graves), cases, policy) for p in (per.value, per.low or 0.0, per.high or 1.0)]
        gate = Estimate(risks[0], min(risks), max(risks), len(live), "from the retests' exact interval")
    moved, pairs = sum(n.moved for n in every.values()), sum(n.pairs for n in every.values())
    flips = clopper_pearson(moved, pairs, reason="nothing was judged twice")
    mde = (
        zero_power_rate(cases, POWER)
        if policy.rule == "strict"
        else detectable_rate(cases, policy.limit(""), policy.confidence)
    )
    return FalseAlarm(per, gate, flips, mde, len(graves), cases)


def _blocks(p: float, trials: int, cases: int, policy: Policy) -> float:
    """Chance that the gate fails where each trial is a false failure with probability ``p``."""
    if policy.rule == "strict":
        return 1.0 - (1.0 - p) ** trials
    limit = policy.limit("")
    x = next((k for k in range(cases + 1) if exact(k, cases, policy.confidence)[0] > limit), cases + 1)
    return float(stats.binom.sf(x - 1, cases, p))


# --------------------------------------------------------------------------- the baseline rule's power


@dataclass(frozen=True)
class Release:
    """A situation to preview: true pass share of the base, the true drop, the judge's error rates, cases in the gate."""

    n: int
    base: float = 0.9
    drop: float = 0.0
    sensitivity: float = 1.0
    specificity: float = 1.0

    def cells(self) -> tuple[float, float]:
        """P(observed loss), P(observed gain) per case: items that passed and fail now, and the judge's independent errors."""
        se, fp = self.sensitivity, 1 - self.specificity
        stay, fall, out = self.base - self.drop, self.drop, 1 - self.base
        loss = stay * se * (1 - se) + fall * se * (1 - fp) + out * fp * (1 - fp)
        gain = stay * (1 - se) * se + fall * (1 - se) * fp + out * (1 - fp) * fp
        return loss, gain

    @property
    def j(self) -> float:
        return self.sensitivity + self.specificity - 1.0


def blocks(losses: Any, gains: Any, n: int, policy: Policy, j: float) -> Any:
    """Whether the baseline rule blocks (regression) or does not pass (non-inferiority), elementwise over counts."""
    low, high = drop_bounds(losses, gains, n, policy.confidence)
    b = policy.baseline
    return low / j > b.tolerance if b.rule == "regression" else high / j >= b.margin


def block_rate(release: Release, policy: Policy) -> float:
    """Exact chance that the baseline rule blocks, summed over all counts of losses and gains."""
    n, (loss, gain) = release.n, release.cells()
    losses = np.arange(n + 1)
    p_loss = stats.binom.pmf(losses, n, loss)
    total = 0.0
    for k in np.flatnonzero(p_loss > 1e-12):
        left = n - int(k)
        gains = np.arange(left + 1)
        p_gain = stats.binom.pmf(gains, left, gain / (1 - loss))
        total += float(p_loss[k] * np.sum(p_gain * blocks(np.full(left + 1, k), gains, n, policy, release.j)))
    return total


def simulated(release: Release, policy: Policy, runs: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The same by simulation of ``runs`` releases: share blocked and its Monte-Carlo standard error."""
    loss, gain = release.cells()
    drawn = np.random.default_rng(seed).multinomial(release.n, (loss, gain, 1 - loss - gain), size=runs)
    share = float(np.mean(blocks(drawn[:, 0], drawn[:, 1], release.n, policy, release.j)))
    return share, float(np.sqrt(max(share * (1 - share), 1e-12) / runs))


def detectable_drop(release: Release, policy: Policy, power: float = POWER) -> float | None:
    """The smallest true drop that the baseline rule blocks with ``power``; ``None`` if not even a total one."""
    from dataclasses import replace

    low, high = 0.0, release.base
    if block_rate(replace(release, drop=high), policy) < power:
        return None
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if block_rate(replace(release, drop=middle), policy) >= power else (middle, high)
    return high


def preview(policy: Policy, ns: Sequence[int] = (60, 200, 500), base: float = 0.9) -> list[dict[str, Any]]:
    """The gate's risk before adopting it: blocked share for drops 0, 5, 10 and 20 points, and the detectable drop, per n."""
    b = policy.baseline
    out = []
    for n in ns:
        r = [Release(n, base, d, b.sensitivity, b.specificity) for d in (0.0, 0.05, 0.10, 0.20)]
        row: dict[str, Any] = {"n": n, "blocked": {f"{x.drop:g}": block_rate(x, policy) for x in r}}
        row["detectable_drop"] = detectable_drop(r[0], policy)
        out.append(row)
    return out
