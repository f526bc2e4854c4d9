"""Intervals for one proportion and for the difference of two: Wilson first, Clopper-Pearson and Jeffreys on request.

``x`` events among ``n`` trials; both may be fractional (an effective sample size).  ``n = 0`` is undefined with the
interval [0, 1].
"""

from __future__ import annotations

from math import sqrt

from scipy import special

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, bounded, z_of
from robustjudge.nouns import Estimate


def _checked(x: float, n: float) -> None:
    if not (0 <= x <= n):
        raise DataError(f"{x} events among {n} trials is not a count of events")


def no_trials(method: str, reason: str = "no_items") -> Estimate:
    """The rate of nothing: undefined, anything in [0, 1]."""
    return Estimate.undefined(reason, low=0.0, high=1.0, method=method)


def wilson_bounds(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score bounds for an observed share ``p`` of ``n > 0`` (Wilson 1927, eq. 4)."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(max(p * (1 - p), 0.0) / n + z * z / (4 * n * n))
    low = 0.0 if p <= 0 else max(0.0, centre - half)
    high = 1.0 if p >= 1 else min(1.0, centre + half)
    return low, high


def wilson(x: float, n: float, level: float = LEVEL, reason: str = "no_items") -> Estimate:
    """The rate x/n with Wilson's score interval; the default for a single rate of independent items."""
    _checked(x, n)
    if n <= 0:
        return no_trials("wilson", reason)
    low, high = wilson_bounds(x / n, n, z_of(level))
    return bounded(x / n, low, high, round(n), "wilson")


def clopper_pearson(x: float, n: float, level: float = LEVEL, reason: str = "no_items") -> Estimate:
    """The rate x/n with the exact interval: guaranteed coverage, wider than Wilson's (Clopper and Pearson 1934)."""
    _checked(x, n)
    if n <= 0:
        return no_trials("clopper-pearson", reason)
    a = (1 - level) / 2
    low = 0.0 if x <= 0 else _beta_quantile(a, x, n - x + 1)
    high = 1.0 if x >= n else _beta_quantile(1 - a, x + 1, n - x)
    return bounded(x / n, low, high, round(n), "clopper-pearson")


def _beta_quantile(q: float, a: float, b: float) -> float:
    if a <= 0:
        return 0.0
    if b <= 0:
        return 1.0
    quantile: float = float(special.betaincinv(a, b, q))
    return quantile


def jeffreys_quantiles(x: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Equal-tailed quantiles of the posterior Beta(x + 1/2, n - x + 1/2)."""
    _checked(x, n)
    a = (1 - level) / 2
    return _beta_quantile(a, x + 0.5, n - x + 0.5), _beta_quantile(1 - a, x + 0.5, n - x + 0.5)


def jeffreys(x: float, n: float, level: float = LEVEL, reason: str = "no_items") -> Estimate:
    """The rate x/n with the Jeffreys interval, its ends reaching 0 at x = 0 and 1 at x = n (Brown et al. 2001)."""
    _checked(x, n)
    if n <= 0:
        return no_trials("jeffreys", reason)
    low, high = jeffreys_quantiles(x, n, level)
    return bounded(x / n, low, high, round(n), "jeffreys")


def agresti_coull(x: float, n: float, level: float = LEVEL) -> Estimate:
    """The rate x/n with a Wald interval on x + z^2/2 of n + z^2; for comparison only."""
    _checked(x, n)
    if n <= 0:
        return no_trials("agresti-coull")
    z = z_of(level)
    m = n + z * z
    p = (x + z * z / 2) / m
    half = z * sqrt(p * (1 - p) / m)
    return bounded(x / n, p - half, p + half, round(n), "agresti-coull")


def zero_event_bound(n: int, level: float = LEVEL) -> float:
    """One-sided upper bound of a rate after 0 events in ``n`` trials, 1 - alpha^(1/n) (the exact rule of three)."""
    if n <= 0:
        return 1.0
    return float(1.0 - (1.0 - level) ** (1.0 / n))


INTERVALS = {"wilson": wilson, "clopper-pearson": clopper_pearson, "jeffreys": jeffreys}
"""The intervals that may be shown, by name."""


def newcombe(x1: float, n1: float, x2: float, n2: float, level: float = LEVEL) -> Estimate:
    """x1/n1 - x2/n2 of independent groups with the hybrid score interval (Newcombe 1998, method 10)."""
    _checked(x1, n1)
    _checked(x2, n2)
    if n1 <= 0 or n2 <= 0:
        return Estimate.undefined("empty_group", n=round(n1 + n2), low=-1.0, high=1.0, method="newcombe")
    z = z_of(level)
    p1, p2 = x1 / n1, x2 / n2
    low, high = mover(p1, wilson_bounds(p1, n1, z), p2, wilson_bounds(p2, n2, z))
    return bounded(p1 - p2, low, high, round(n1 + n2), "newcombe", span=(-1.0, 1.0))


def mover(
    a: float, a_bounds: tuple[float, float], b: float, b_bounds: tuple[float, float], rho: float = 0.0
) -> tuple[float, float]:
    """Bounds of ``a - b`` recovered from the bounds of each part; ``rho`` is the correlation of the two estimates
    (method of variance estimates recovery, Zou and Donner 2008, eq. 5)."""
    dl, du = a - a_bounds[0], a_bounds[1] - a
    el, eu = b - b_bounds[0], b_bounds[1] - b
    low = a - b - sqrt(max(dl * dl - 2 * rho * dl * eu + eu * eu, 0.0))
    high = a - b + sqrt(max(du * du - 2 * rho * du * el + el * el, 0.0))
    return low, high
