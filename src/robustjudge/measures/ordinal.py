"""Judge against human on an ordered or numeric scale: correlation hides a shift, so bias and error stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures.agreement import kappa
from robustjudge.measures.base import LEVEL, Floats, bounded, floats, rows, same_length, z_of
from robustjudge.measures.bootstrap import Groups, cluster_bootstrap
from robustjudge.measures.intervals import wilson, wilson_bounds
from robustjudge.nouns import Estimate


def level_table(human: ArrayLike, judge: ArrayLike, levels: Sequence[float]) -> Floats:
    """K x K counts over the declared ``levels``, lowest first; a value that is none of them is an error."""
    h, j, v = floats(human, "human"), floats(judge, "judge"), floats(levels, "levels")
    same_length(human=h, judge=j)
    if v.size < 2 or np.any(np.diff(v) <= 0):
        raise DataError("the levels of a scale are at least two, in rising order")
    k = v.size
    coded = []
    for name, x in (("human", h), ("judge", j)):
        at = np.clip(np.searchsorted(v, x), 0, k - 1)
        bad = np.flatnonzero(v[at] != x)
        if bad.size:
            raise DataError(f"{name}: value not on the declared scale in row(s) {rows(bad)}")
        coded.append(at)
    return np.asarray(np.bincount(coded[0] * k + coded[1], minlength=k * k), dtype=np.float64).reshape(k, k)


def ordinal_agreement(
    human: ArrayLike,
    judge: ArrayLike,
    levels: Sequence[float],
    clusters: Groups = None,
    level: float = LEVEL,
) -> dict[str, Estimate]:
    """QWK, linear and plain kappa, Spearman, Kendall tau-b, Pearson, mean bias (judge - human), MAE, exact and
    adjacent (within one step) agreement over the scale's declared levels."""
    h, j = floats(human, "human"), floats(judge, "judge")
    table = level_table(h, j, levels)
    width = float(levels[-1]) - float(levels[0])
    step = np.abs(np.searchsorted(levels, j) - np.searchsorted(levels, h))
    return {
        "qwk": kappa(table, "quadratic", level),
        "linear_kappa": kappa(table, "linear", level),
        "kappa": kappa(table, "none", level),
        "spearman": spearman(h, j, level),
        "kendall_tau_b": kendall(h, j, level),
        "pearson": pearson(h, j, level),
        "mean_bias": mean_bias(h, j, clusters, width, level),
        "mae": cluster_bootstrap(np.abs(j - h), clusters, bounds=(0.0, width), level=level),
        "exact_agreement": wilson(int(np.sum(step == 0)), step.size, level),
        "adjacent_agreement": wilson(int(np.sum(step <= 1)), step.size, level),
    }


def mean_bias(
    human: ArrayLike, judge: ArrayLike, clusters: Groups = None, width: float | None = None, level: float = LEVEL
) -> Estimate:
    """Mean of judge - human in scale units; ``width`` is the scale's range, which bounds it on both sides."""
    h, j = floats(human, "human"), floats(judge, "judge")
    same_length(human=h, judge=j)
    return cluster_bootstrap(j - h, clusters, bounds=None if width is None else (-width, width), level=level)


def pearson(x: ArrayLike, y: ArrayLike, level: float = LEVEL) -> Estimate:
    """Pearson's r with Fisher's z interval; undefined when either side is constant."""
    a, b = _two(x, y)
    return _correlation(a, b, lambda: float(stats.pearsonr(a, b)[0]), lambda r: 1.0, "pearson, fisher z", level)


def spearman(x: ArrayLike, y: ArrayLike, level: float = LEVEL) -> Estimate:
    """Spearman's rho with the Bonett-Wright interval (2000, eq. 3)."""
    a, b = _two(x, y)
    return _correlation(
        a, b, lambda: float(stats.spearmanr(a, b)[0]), lambda r: 1 + r * r / 2, "spearman, bonett-wright", level
    )


def spearman_p(x: ArrayLike, y: ArrayLike) -> float | None:
    """Two-sided p value of no rank correlation (t approximation); None where rho is undefined."""
    a, b = _two(x, y)
    if a.size < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(stats.spearmanr(a, b)[1])


def kendall(x: ArrayLike, y: ArrayLike, level: float = LEVEL) -> Estimate:
    """Kendall's tau-b with the Fieller interval, variance .437/(n - 4) on the z scale."""
    a, b = _two(x, y)
    n = a.size
    return _correlation(
        a,
        b,
        lambda: float(stats.kendalltau(a, b)[0]),
        lambda r: 0.437 * (n - 3) / max(n - 4, 1),
        "kendall tau-b, fieller",
        level,
    )


def _two(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = floats(x, "first"), floats(y, "second")
    same_length(first=a, second=b)
    return a, b


def _correlation(a: Floats, b: Floats, point: object, inflate: object, method: str, level: float) -> Estimate:
    """A correlation with an interval on the z scale; at +-1 the share of items that could fall out of line is bounded
    by Wilson, and each such item moves the coefficient by at most 2/n."""
    assert callable(point) and callable(inflate)
    n = a.size
    if n < 4:
        return Estimate.undefined("fewer than 4 items", n=n, low=-1.0, high=1.0, method=method)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return Estimate.undefined("one side is constant", n=n, low=-1.0, high=1.0, method=method)
    r = min(max(point(), -1.0), 1.0)
    if 1 - abs(r) < 1e-12:
        inner = 2 * wilson_bounds(1.0, n, z_of(level))[0] - 1
        ends = (inner, 1.0) if r > 0 else (-1.0, -inner)
        return bounded(round(r), *ends, n, f"{method}, boundary rule", span=(-1.0, 1.0))
    half = z_of(level) * sqrt(inflate(r) / (n - 3))
    return bounded(r, tanh(atanh(r) - half), tanh(atanh(r) + half), n, method, span=(-1.0, 1.0))


@dataclass(frozen=True, slots=True)
class ICC:
    """The six intraclass correlations of Shrout and Fleiss (1979): one-way (1), two-way random with absolute
    agreement (2), two-way mixed consistency (3); single measures and means of k judges (``_k``)."""

    icc1: Estimate
    icc2: Estimate
    icc3: Estimate
    icc1k: Estimate
    icc2k: Estimate
    icc3k: Estimate


def icc(scores: ArrayLike, level: float = LEVEL) -> ICC:
    """Intraclass correlations of a complete targets x judges matrix, with F intervals.

    ``icc2`` is the instrument figure: consistency hides bias.
    """
    s = np.asarray(scores, dtype=np.float64)
    if s.ndim != 2 or not np.all(np.isfinite(s)):
        raise DataError("the intraclass correlation needs a complete targets x judges matrix")
    n, k = s.shape
    if n < 2 or k < 2:
        nothing = Estimate.undefined("needs two targets and two judges", n=n, method="icc")
        return ICC(*(nothing,) * 6)
    grand, row, col = s.mean(), s.mean(1), s.mean(0)
    between = k * float(np.sum((row - grand) ** 2)) / (n - 1)
    judges = n * float(np.sum((col - grand) ** 2)) / (k - 1)
    error = float(np.sum((s - row[:, None] - col[None, :] + grand) ** 2)) / ((n - 1) * (k - 1))
    within = float(np.sum((s - row[:, None]) ** 2)) / (n * (k - 1))
    if between + within == 0:
        nothing = Estimate.undefined("all scores are equal", n=n, low=None, high=1.0, method="icc")
        return ICC(*(nothing,) * 6)
    tail = 0.5 + level / 2

    def ends(denominator: float, df1: int, df2: int) -> tuple[float, float]:
        if denominator <= 0:
            return np.inf, np.inf
        f = between / denominator
        return f / float(special.fdtri(df1, df2, tail)), f * float(special.fdtri(df2, df1, tail))

    def single(f: float) -> float:
        return 1.0 if np.isinf(f) else (f - 1) / (f + k - 1)

    def mean(f: float) -> float:
        return 1.0 if np.isinf(f) else 1 - 1 / f if f > 0 else -np.inf

    one, three = ends(within, n - 1, n * (k - 1)), ends(error, n - 1, (n - 1) * (k - 1))
    v2 = (between - error) / (between + (k - 1) * error + k * (judges - error) / n)
    v2k = (between - error) / (between + (judges - error) / n)
    low2, high2 = _absolute_bounds(between, judges, error, v2, n, k, tail)

    def built(value: float, low: float, high: float, name: str) -> Estimate:
        if not high - low > 0:  # no residual at all: bound the share of targets out of line
            low = 2 * wilson_bounds(1.0, n, z_of(level))[0] - 1
            name += ", boundary rule"
        return bounded(value, low, high, n, name, span=(-np.inf, 1.0))

    v1, v3 = (between - within) / (between + (k - 1) * within), (between - error) / (between + (k - 1) * error)
    return ICC(
        built(v1, single(one[0]), single(one[1]), "icc(1,1), f"),
        built(v2, low2, high2, "icc(a,1), f"),
        built(v3, single(three[0]), single(three[1]), "icc(c,1), f"),
        built((between - within) / between if between else 0.0, mean(one[0]), mean(one[1]), "icc(1,k), f"),
        built(v2k, low2 * k / (1 + low2 * (k - 1)), high2 * k / (1 + high2 * (k - 1)), "icc(a,k), f"),
        built((between - error) / between if between else 0.0, mean(three[0]), mean(three[1]), "icc(c,k), f"),
    )


def _absolute_bounds(
    between: float, judges: float, error: float, value: float, n: int, k: int, tail: float
) -> tuple[float, float]:
    """Bounds of ICC(A,1) with Satterthwaite's degrees of freedom (Shrout and Fleiss 1979; McGraw and Wong 1996)."""
    if error <= 0:
        return value, value
    fj = judges / error
    top = (k - 1) * (n - 1) * (k * value * fj + n * (1 + (k - 1) * value) - k * value) ** 2
    bottom = (n - 1) * k**2 * value**2 * fj**2 + (n * (1 + (k - 1) * value) - k * value) ** 2
    v = top / bottom
    fl, fu = float(stats.f.ppf(tail, n - 1, v)), float(stats.f.ppf(tail, v, n - 1))
    low = n * (between - fl * error) / (fl * (k * judges + (k * n - k - n) * error) + n * between)
    high = n * (fu * between - error) / (k * judges + (k * n - k - n) * error + n * fu * between)
    return low, high
