"""Comparing two judges, runs or groups: McNemar, paired differences, score intervals, clustered standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.measures.base import LEVEL, bounded, codes, floats, same_length, z_of
from robustjudge.measures.bootstrap import Groups, cluster_bootstrap, totals
from robustjudge.nouns import Estimate


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tests of b against c discordant pairs; ``chi2`` and its p are None without discordant pairs."""

    b: int
    c: int
    exact_p: float
    mid_p: float
    chi2: float | None
    p: float | None
    chi2_corrected: float | None
    p_corrected: float | None


def mcnemar(b: int, c: int) -> McNemar:
    """Two-sided Binomial(b + c, 1/2) on min(b, c), its mid-p form, and both chi-square forms."""
    m = b + c
    if m == 0:
        return McNemar(b, c, 1.0, 1.0, None, None, None, None)
    k = min(b, c)
    exact = min(1.0, 2 * float(stats.binom.cdf(k, m, 0.5)))
    mid = 1.0 if b == c else exact - float(stats.binom.pmf(k, m, 0.5))
    chi2, corrected = (b - c) ** 2 / m, max(abs(b - c) - 1, 0) ** 2 / m
    return McNemar(
        b, c, exact, mid, chi2, float(special.chdtrc(1, chi2)), corrected, float(special.chdtrc(1, corrected))
    )


def paired_table_difference(both: int, b: int, c: int, neither: int, level: float = LEVEL) -> Estimate:
    """First minus second share of a paired 2 x 2 table (b: first only), interval of the paired bootstrap's rule."""
    d = np.repeat([0.0, 1.0, -1.0], [both + neither, b, c])
    return cluster_bootstrap(d, bounds=(-1.0, 1.0), level=level)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences three ways; the tests are None where they are not defined."""

    mean: Estimate
    se: float | None
    t: float | None
    t_p: float | None
    wilcoxon_p: float | None


def paired_difference(
    differences: ArrayLike,
    clusters: Groups = None,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> PairedDifference:
    """Mean paired difference with a cluster interval, the t test and Wilcoxon's signed-rank test (zeros dropped).

    With ``clusters`` the tests run on cluster means: repeats of one item are not independent.
    """
    d = floats(differences, "differences")
    mean = cluster_bootstrap(d, clusters, bounds=bounds, level=level, seed=seed)
    group = codes(clusters, d.size)
    if d.size:
        size = int(group.max()) + 1
        d = totals(group, d, size) / totals(group, np.ones_like(d), size)
    n = d.size
    sd = float(d.std(ddof=1)) if n > 1 else 0.0
    if sd <= 0:
        return PairedDifference(mean, None, None, None, None)
    se = sd / sqrt(n)
    t = float(d.mean()) / se
    p = 2 * float(special.stdtr(n - 1, -abs(t)))
    moved = d[d != 0]
    w = float(stats.wilcoxon(moved, method="approx").pvalue) if moved.size else None
    return PairedDifference(mean, se, t, p, w)


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean whose rows come in clusters: naive and clustered standard errors and what the clustering costs."""

    mean: float
    se_iid: float
    se_clustered: float
    se_small_sample: float
    design_effect: float
    effective_n: float
    clusters: int


def clustered_mean(scores: ArrayLike, clusters: Groups) -> ClusteredMean | None:
    """Clustered SE of a mean (Miller 2024, eq. 4); the small-sample form, times sqrt(G/(G-1)), is for G < 40.

    None with fewer than two rows or clusters, or without any variation.
    """
    s = floats(scores, "scores")
    group = codes(clusters, s.size)
    n = s.size
    g = int(group.max()) + 1 if n else 0
    if n < 2 or g < 2 or float(np.ptp(s)) == 0:
        return None
    gap = s - s.mean()
    iid = float(s.std(ddof=1)) / sqrt(n)
    se = sqrt(float(np.sum(totals(group, gap, g) ** 2))) / n
    deff = (se / iid) ** 2
    return ClusteredMean(float(s.mean()), iid, se, se * sqrt(g / (g - 1)), deff, n / deff if deff else float(n), g)


@dataclass(frozen=True, slots=True)
class PairedPrecision:
    """How much pairing saves: the SE of a difference with and without it."""

    difference: float
    se_paired: float
    se_unpaired: float
    correlation: float | None


def pairing_gain(a: ArrayLike, b: ArrayLike) -> PairedPrecision | None:
    """SE of mean(a) - mean(b) as pairs and as if independent; None below two items."""
    x, y = floats(a, "first"), floats(b, "second")
    n = same_length(first=x, second=y)
    if n < 2:
        return None
    paired = float((x - y).std(ddof=1)) / sqrt(n)
    unpaired = sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / n)
    r = float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) > 0 and np.ptp(y) > 0 else None
    return PairedPrecision(float(x.mean() - y.mean()), paired, unpaired, r)


def miettinen_nurminen(x1: int, n1: int, x2: int, n2: int, level: float = LEVEL) -> Estimate:
    """x1/n1 - x2/n2 by inverting the score test with its n/(n-1) factor (Miettinen and Nurminen 1985)."""
    return _inverted(x1, n1, x2, n2, level, "miettinen-nurminen", n2)


def score_statsmodels(x1: int, n1: int, x2: int, n2: int, level: float = LEVEL) -> Estimate:
    """What statsmodels 0.15.0 calls the score interval of a difference; to compare with figures made there, never shown.

    Its cubic for the restricted estimates has x2 delta in the linear term, where Miettinen and Nurminen's has n2 delta,
    so its restricted estimates are not the maximum-likelihood ones: :func:`miettinen_nurminen` is the interval to use.
    """
    return _inverted(x1, n1, x2, n2, level, "score, as statsmodels 0.15", x2)


def _inverted(x1: int, n1: int, x2: int, n2: int, level: float, method: str, linear: int) -> Estimate:
    if n1 <= 0 or n2 <= 0:
        return Estimate.undefined("empty_group", n=n1 + n2, low=-1.0, high=1.0, method=method)
    z2, value = z_of(level) ** 2, x1 / n1 - x2 / n2

    def excess(delta: float) -> float:
        return _score(x1, n1, x2, n2, delta, linear) - z2

    low = _root(excess, -1.0, value) if excess(-1 + 1e-9) > 0 else -1.0
    high = _root(excess, 1.0, value) if excess(1 - 1e-9) > 0 else 1.0
    return bounded(value, low, high, n1 + n2, method, span=(-1.0, 1.0))


def _root(f: Callable[[float], float], far: float, near: float) -> float:
    """Bisect between ``near`` (inside the interval) and ``far`` (outside it)."""
    inside, outside = near, far
    for _ in range(80):
        middle = (inside + outside) / 2
        if f(middle) > 0:
            outside = middle
        else:
            inside = middle
    return inside


def _score(x1: int, n1: int, x2: int, n2: int, delta: float, linear: int) -> float:
    """Score statistic of p1 - p2 = delta with the restricted maximum-likelihood variance: a closed-form cubic with
    ``linear`` delta (n2) in its linear term."""
    n, p1, p2 = n1 + n2, x1 / n1, x2 / n2
    l3 = n
    l2 = (n1 + 2 * n2) * delta - n - x1 - x2
    l1 = (linear * delta - n - 2 * x2) * delta + x1 + x2
    l0 = x2 * delta * (1 - delta)
    q = (l2 / (3 * l3)) ** 3 - l1 * l2 / (6 * l3 * l3) + l0 / (2 * l3)
    root = max((l2 / (3 * l3)) ** 2 - l1 / (3 * l3), 0.0)
    p = (1.0 if q >= 0 else -1.0) * sqrt(root)
    if p == 0:
        r2 = -l2 / (3 * l3)
    else:
        ratio = min(max(q / p**3, -1.0), 1.0)
        r2 = 2 * p * float(np.cos((np.pi + np.arccos(ratio)) / 3)) - l2 / (3 * l3)
    r2 = min(max(r2, 0.0), 1.0)
    r1 = min(max(r2 + delta, 0.0), 1.0)
    variance = (r1 * (1 - r1) / n1 + r2 * (1 - r2) / n2) * n / (n - 1)
    gap = (p1 - p2 - delta) ** 2
    if variance <= 1e-300:
        return 0.0 if gap < 1e-18 else float("inf")
    return gap / variance
