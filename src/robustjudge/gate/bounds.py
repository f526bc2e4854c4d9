"""One-sided confidence bounds that the gate decides on: exact where cases are independent, effective-n where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from robustjudge.measures.base import Floats, bounded, codes, floats, z_of
from robustjudge.measures.bootstrap import design_effect, totals
from robustjudge.nouns import Estimate


@dataclass(frozen=True, slots=True)
class RateBounds:
    """A failure rate over clusters: the share, its effective counts, and bounds that each hold one-sided."""

    failures: float
    trials: int
    clusters: int
    effective_n: float
    estimate: Estimate

    @property
    def value(self) -> float | None:
        return self.estimate.value

    def p_above(self, limit: float) -> float:
        """One-sided p of "the rate is at most ``limit``" (exact binomial at the effective n)."""
        rate = self.estimate.value
        if rate is None or rate <= 0:
            return 1.0
        x = rate * self.effective_n
        return float(special.betainc(x, self.effective_n - x + 1, limit))


def rate(failed: ArrayLike, clusters: Sequence[object], confidence: float = 0.95) -> RateBounds:
    """Share of ``failed`` (0 or 1) with one-sided bounds at ``confidence`` each.

    One trial per cluster: Clopper and Pearson (1934).  Several: the same at the effective sample size
    n / design effect, with the t-quantile correction for an estimated variance (Korn and Graubard 1998); where no
    cluster differs from another, the number of clusters is the effective size.
    """
    x = floats(failed, "failed")
    if not x.size:
        return RateBounds(0.0, 0, 0, 0.0, Estimate.undefined("no attackable trial", low=0.0, high=1.0))
    group = codes(clusters, x.size)
    g = int(group.max()) + 1
    num, den = totals(group, x, g), totals(group, np.ones_like(x), g)
    if g == x.size:
        return _of(float(x.sum()), x.size, g, float(x.size), "clopper-pearson, one-sided", confidence)
    share = num / den
    if float(np.ptp(share)) <= 1e-12:
        return _of(float(x.sum()), x.size, g, float(g), f"clopper-pearson at {g} clusters, one-sided", confidence)
    q = 2 * confidence - 1
    deff = design_effect(num, den) * g / (g - 1) * (float(special.stdtrit(g - 1, 0.5 + q / 2)) / z_of(q)) ** 2
    n = min(x.size / deff, float(x.size))
    return _of(float(x.sum()), x.size, g, n, f"clopper-pearson at effective n {n:.1f}, one-sided", confidence)


def _of(x: float, trials: int, g: int, n: float, method: str, confidence: float) -> RateBounds:
    p = x / trials
    low, high = exact(p * n, n, confidence)
    return RateBounds(x, trials, g, n, bounded(p, low, high, g, method))


def exact(x: float, n: float, confidence: float) -> tuple[float, float]:
    """Clopper-Pearson bounds, each one-sided at ``confidence``; counts may be fractional."""
    a = 1 - confidence
    low = 0.0 if x <= 0 else float(special.betaincinv(x, n - x + 1, a))
    high = 1.0 if x >= n else float(special.betaincinv(x + 1, n - x, 1 - a))
    return low, high


def more_cases(b: RateBounds, limit: float, confidence: float = 0.95, most: int = 1_000_000) -> int | None:
    """How many more cases settle the rate if it stays as seen; ``None`` when it lies at the limit."""
    if b.value is None or b.clusters <= 0 or abs(b.value - limit) < 1e-9:
        return None
    per_case = b.effective_n / b.clusters

    def settled(cases: int) -> bool:
        n = cases * per_case
        low, high = exact((b.value or 0.0) * n, n, confidence)
        return high <= limit + 1e-9 if (b.value or 0.0) < limit else low > limit + 1e-9

    high = max(b.clusters, 1)
    while not settled(high):
        high *= 2
        if high > most:
            return None
    low = b.clusters
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle + 1, high)
    return max(0, low - b.clusters)


def drop_bounds(losses: Any, gains: Any, n: int, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """One-sided bounds of (losses - gains)/n over n independent pairs, elementwise: two Wilson rates joined by the method
    of variance estimates recovery with their correlation (the paired rule of :mod:`robustjudge.measures.bootstrap`)."""
    z = z_of(2 * confidence - 1)
    p, q = np.asarray(losses, dtype=np.float64) / n, np.asarray(gains, dtype=np.float64) / n
    (pl, ph), (ql, qh) = _wilson(p, n, z), _wilson(q, n, z)
    scale = np.sqrt(p * (1 - p) * q * (1 - q))
    rho = np.where(scale > 0, -p * q / np.where(scale > 0, scale, 1.0), 0.0)
    a, b, c, d = p - pl, qh - q, ph - p, q - ql
    low = p - q - np.sqrt(np.maximum(a * a - 2 * rho * a * b + b * b, 0))
    high = p - q + np.sqrt(np.maximum(c * c - 2 * rho * c * d + d * d, 0))
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def _wilson(p: Floats, n: int, z: float) -> tuple[Floats, Floats]:
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(np.maximum(p * (1 - p), 0) / n + z * z / (4 * n * n))
    low = np.where(p <= 0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(p >= 1, 1.0, np.minimum(1.0, centre + half))
    return low, high


def zero_power_rate(n: int, power: float = 0.8) -> float:
    """The failure rate of which ``n`` cases show at least one failure with probability ``power``."""
    return 1.0 if n <= 0 else 1.0 - (1.0 - power) ** (1.0 / n)


def detectable_rate(n: int, limit: float, confidence: float = 0.95, power: float = 0.8) -> float | None:
    """The smallest true rate that a ``max_rate`` gate fails with probability ``power`` at ``n`` cases."""
    x = next((k for k in range(n + 1) if exact(k, n, confidence)[0] > limit), None)
    if x is None:
        return None
    return float(special.betaincinv(x, n - x + 1, power))  # P(X >= x) = power
