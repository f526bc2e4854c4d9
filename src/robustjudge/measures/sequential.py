"""Inference that may be looked at after every label: confidence sequences, e-values, Wald's test.

A fixed-n interval that is peeked at loses its coverage; these hold at all times at once, and say so in ``method``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robustjudge.errors import DataError
from robustjudge.measures.base import Floats, bounded, floats
from robustjudge.nouns import Estimate

ANYTIME = "anytime-valid"


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def beta_binomial(successes: float, n: int, alpha: float = 0.05) -> Estimate:
    """Confidence sequence of a rate, {p : B(1+S, 1+n-S)/(p^S (1-p)^(n-S)) < 1/alpha}, uniform mixture (Robbins 1970).

    Also of a mean of values in [0, 1] with sum ``successes``: the likelihood ratio of such a value is at most that of a
    coin with its mean (weighted arithmetic and geometric mean), so it stays a supermartingale.
    """
    if not 0 <= successes <= n:
        raise DataError(f"{successes} successes among {n}")
    if n == 0:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=f"beta-binomial, {ANYTIME}")
    s, f = successes, n - successes
    mix = _log_beta(1 + s, 1 + f)

    def outside(p: float) -> bool:
        likelihood = (s * log(p) if s else 0.0) + (f * log(1 - p) if f else 0.0)
        return mix - likelihood >= -log(alpha)

    peak = s / n

    def edge(far: float) -> float:
        inner, outer = peak, far
        for _ in range(100):
            middle = (inner + outer) / 2
            if outside(middle):
                outer = middle
            else:
                inner = middle
        return (inner + outer) / 2

    low = edge(0.0) if s else 0.0
    high = edge(1.0) if f else 1.0
    return bounded(peak, low, high, n, f"beta-binomial, {ANYTIME}")


def _unit(x: ArrayLike) -> Floats:
    values = floats(x, "scores")
    if values.size and (values.min() < 0 or values.max() > 1):
        raise DataError("confidence sequences for a mean need scores in [0, 1], in the order they came")
    return values


def hoeffding(x: ArrayLike, alpha: float = 0.05) -> Estimate:
    """Predictable-mixture Hoeffding sequence for a mean in [0, 1] (Waudby-Smith and Ramdas 2024, eq. 14)."""
    v = _unit(x)
    if not v.size:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=f"hoeffding, {ANYTIME}")
    t = np.arange(1, v.size + 1)
    lam = np.minimum(np.sqrt(8 * log(2 / alpha) / (t * np.log(t + 1))), 1.0)
    centre = float(np.sum(lam * v) / np.sum(lam))
    margin = float((log(2 / alpha) + np.sum(lam**2) / 8) / np.sum(lam))
    return _around(v, centre - margin, centre + margin, "predictable-mixture hoeffding")


def _past_variance(v: Floats) -> Floats:
    """The regularised variance known *before* each observation."""
    t = np.arange(1, v.size + 1)
    mean = (0.5 + np.cumsum(v)) / (t + 1)
    variance = (0.25 + np.cumsum((v - mean) ** 2)) / (t + 1)
    return np.concatenate(([0.25], variance[:-1]))


def empirical_bernstein(x: ArrayLike, alpha: float = 0.05) -> Estimate:
    """Predictable-mixture empirical-Bernstein sequence (Waudby-Smith and Ramdas 2024, theorem 2).

    Squares are taken about the running mean of what came before, 0 before the first score; any predictable centre is
    valid, and this is the reference package's.
    """
    v = _unit(x)
    if not v.size:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=f"empirical bernstein, {ANYTIME}")

    def lower(values: Floats) -> float:
        t = np.arange(1, values.size + 1)
        centre = np.concatenate(([0.0], (np.cumsum(values) / t)[:-1]))
        lam = np.minimum(np.sqrt(2 * log(2 / alpha) / (_past_variance(values) * t * np.log(t + 1))), 0.5)
        psi = -np.log(1 - lam) - lam
        margin = log(2 / alpha) + np.sum((values - centre) ** 2 * psi)
        return float((np.sum(lam * values) - margin) / np.sum(lam))

    return _around(v, lower(v), 1 - lower(1 - v), "predictable-mixture empirical bernstein")


def betting(x: ArrayLike, alpha: float = 0.05, grid: int = 1000) -> Estimate:
    """Hedged-capital betting sequence on a grid of means (Waudby-Smith and Ramdas 2024, theorem 3)."""
    v = _unit(x)
    if not v.size:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=f"betting, {ANYTIME}")
    t = np.arange(1, v.size + 1)
    lam = np.sqrt(2 * log(2 / alpha) / (_past_variance(v) * t * np.log(t + 1)))
    m = np.arange(grid + 1) / grid
    kept = np.zeros(m.size, dtype=bool)
    for i, mean in enumerate(m):
        up = np.minimum(lam, 0.5 / mean) if mean > 0 else lam
        down = np.minimum(lam, 0.5 / (1 - mean)) if mean < 1 else lam
        gap = v - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            plus, minus = float(np.sum(np.log1p(up * gap))), float(np.sum(np.log1p(-down * gap)))
        kept[i] = max(log(0.5) + plus, log(0.5) + minus) < log(1 / alpha)
    inside = m[kept]
    low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 1.0)
    return _around(
        v, max(low - 1 / grid, 0.0) if low > 0 else 0.0, min(high + 1 / grid, 1.0), f"betting (grid 1/{grid})"
    )


def _around(v: Floats, low: float, high: float, name: str) -> Estimate:
    return bounded(float(v.mean()), low, high, v.size, f"{name}, {ANYTIME}")


@dataclass(frozen=True, slots=True)
class EValue:
    """Evidence against a null: ``p`` = min(1, 1/e) may be read at any time."""

    log_e: float

    @property
    def p(self) -> float:
        return min(1.0, exp(-self.log_e)) if self.log_e > 0 else 1.0


def mcnemar_evalue(b: int, c: int) -> EValue:
    """Sequential McNemar: uniform prior on the discordant share, e = B(1+b, 1+c) 2^(b+c)."""
    return EValue(_log_beta(1 + b, 1 + c) + (b + c) * log(2))


@dataclass(frozen=True, slots=True)
class SPRT:
    """Wald's sequential test of p0 against p1 after some observations."""

    log_a: float
    log_b: float
    llr: float
    decision: Literal["accept_H1", "accept_H0", "continue"]


def sprt(successes: int, n: int, p0: float, p1: float, alpha: float = 0.05, beta: float = 0.2) -> SPRT:
    """Log likelihood ratio against log((1-beta)/alpha) and log(beta/(1-alpha)) (Wald 1945)."""
    if not (0 < p0 < 1 and 0 < p1 < 1) or p0 == p1:
        raise DataError("both hypotheses lie strictly between 0 and 1 and differ")
    up, down = log((1 - beta) / alpha), log(beta / (1 - alpha))
    llr = successes * log(p1 / p0) + (n - successes) * log((1 - p1) / (1 - p0))
    return SPRT(up, down, llr, "accept_H1" if llr >= up else "accept_H0" if llr <= down else "continue")
