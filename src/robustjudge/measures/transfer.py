"""May error rates measured here be used there?  Homogeneity of TPR and FPR over strata, covariate balance, a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.multiplicity import holm
from robustjudge.measures.power import detectable_difference
from robustjudge.nouns import Estimate

TransferStatus = Literal["transfers", "does_not_transfer", "untested"]
MIN_PER_STRATUM = 20
"""Fewer items of a class in a stratum than this leave its rate untested (the detectable difference is then > .35)."""


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """One test that a rate is the same in every stratum; ``p`` and ``adjusted`` are None where it was not tested."""

    rate: str
    test: str
    p: float | None
    adjusted: float | None
    strata: tuple[str, ...]
    rates: tuple[float | None, ...]
    smallest: int
    detectable: float | None


@dataclass(frozen=True, slots=True)
class Transfer:
    """The outcome of the transfer test with its parts and one sentence for people."""

    status: TransferStatus
    tests: tuple[Homogeneity, ...]
    sentence: str


def transfer_test(strata: Mapping[str, Confusion], alpha: float = 0.05) -> Transfer:
    """Are TPR and FPR the same in all strata?  Fisher's exact test for two, chi-square for more, Holm over both.

    ``does_not_transfer`` when either adjusted p is below ``alpha``; ``untested`` when a class has fewer than
    ``MIN_PER_STRATUM`` items in some stratum (and nothing was rejected), with the difference that n could detect.
    """
    names = tuple(strata)
    if len(names) < 2:
        return Transfer("untested", (), "one stratum only: nothing to compare its error rates with")
    found = []
    for rate in ("tpr", "fpr"):
        pairs = [(c.tp, c.fn) if rate == "tpr" else (c.fp, c.tn) for c in strata.values()]
        found.append(_homogeneity(rate, names, pairs))
    tested = [t for t in found if t.p is not None]
    adjusted = dict(zip([t.rate for t in tested], holm([t.p for t in tested if t.p is not None]).tolist()))
    tests = tuple(
        Homogeneity(t.rate, t.test, t.p, adjusted.get(t.rate), t.strata, t.rates, t.smallest, t.detectable)
        for t in found
    )
    broken = [t for t in tests if t.adjusted is not None and t.adjusted < alpha]
    if broken:
        told = "; ".join(
            f"{t.rate.upper()} differs between strata ({t.test}, Holm p = {t.adjusted:.2g})" for t in broken
        )
        return Transfer("does_not_transfer", tests, f"{told}: a correction from one stratum is wrong in another")
    thin = [t for t in tests if t.smallest < MIN_PER_STRATUM]
    if thin:
        told = "; ".join(f"{t.rate.upper()}: smallest stratum has {t.smallest} items" + _could(t) for t in thin)
        return Transfer("untested", tests, told)
    told = "; ".join(f"{t.rate.upper()} (Holm p = {t.adjusted:.2g})" + _could(t) for t in tests)
    return Transfer("transfers", tests, f"no difference between strata found: {told}")


def _could(t: Homogeneity) -> str:
    return f"; a difference of {t.detectable:.2f} would be seen with 80 % power" if t.detectable is not None else ""


def _homogeneity(rate: str, names: Sequence[str], pairs: Sequence[tuple[float, float]]) -> Homogeneity:
    table = np.rint(np.asarray(pairs, dtype=np.float64))
    sizes = table.sum(1)
    shares = tuple(float(a / (a + b)) if a + b > 0 else None for a, b in table)
    smallest = int(sizes.min())
    pooled = float(table[:, 0].sum() / max(table.sum(), 1))
    could = detectable_difference(pooled, smallest) if smallest > 0 else None
    test = "fisher" if len(names) == 2 else "chi-square"
    if smallest == 0:
        return Homogeneity(rate, test, None, None, tuple(names), shares, 0, None)
    if len(names) == 2:
        p = float(stats.fisher_exact(table)[1])
    elif np.any(table.sum(0) == 0):
        p = 1.0
    else:
        p = float(stats.chi2_contingency(table, correction=False)[1])
    return Homogeneity(rate, test, p, None, tuple(names), shares, smallest, could)


@dataclass(frozen=True, slots=True)
class BreslowDay:
    """Homogeneity of odds ratios over 2 x 2 strata, with the common (Mantel-Haenszel) ratio and its test."""

    statistic: float | None
    p: float | None
    common_odds_ratio: float | None
    cmh: float | None
    cmh_p: float | None


def breslow_day(tables: ArrayLike) -> BreslowDay:
    """Breslow-Day test (1980, without Tarone's correction) and Cochran-Mantel-Haenszel (no continuity correction)."""
    t = np.asarray(tables, dtype=np.float64)
    if t.ndim != 3 or t.shape[1:] != (2, 2) or np.any(t < 0):
        raise DataError("expected strata x 2 x 2 counts")
    n = t.sum((1, 2))
    a, b, c, d = t[:, 0, 0], t[:, 0, 1], t[:, 1, 0], t[:, 1, 1]
    bottom = float(np.sum(b * c / n))
    row, col = a + b, a + c
    spread = row * (n - row) * col * (n - col) / (n**2 * np.maximum(n - 1, 1))
    cmh = float((a - row * col / n).sum() ** 2 / spread.sum()) if spread.sum() > 0 else None
    cmh_p = float(special.chdtrc(1, cmh)) if cmh is not None else None
    if bottom <= 0:
        return BreslowDay(None, None, None, cmh, cmh_p)
    odds = float(np.sum(a * d / n)) / bottom
    expected = _expected(odds, row, col, n)
    with np.errstate(divide="ignore"):
        variance = 1 / (1 / expected + 1 / (row - expected) + 1 / (col - expected) + 1 / (n - row - col + expected))
    if not np.all(variance > 0):
        return BreslowDay(None, None, odds, cmh, cmh_p)
    statistic = float(np.sum((a - expected) ** 2 / variance))
    return BreslowDay(statistic, float(special.chdtrc(len(t) - 1, statistic)), odds, cmh, cmh_p)


def _expected(odds: float, row: np.ndarray, col: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The upper-left cell that gives the odds ratio ``odds`` at these margins."""
    if abs(odds - 1) < 1e-12:
        return np.asarray(row * col / n)
    q2, q1, q0 = 1 - odds, n - row - col + odds * (row + col), -odds * row * col
    root = np.sqrt(q1**2 - 4 * q2 * q0)
    first, second = (-q1 + root) / (2 * q2), (-q1 - root) / (2 * q2)
    fits = (first >= np.maximum(0, row + col - n) - 1e-9) & (first <= np.minimum(row, col) + 1e-9)
    return np.asarray(np.where(fits, first, second))


def smd(mean_a: float, sd_a: float, mean_b: float, sd_b: float) -> Estimate:
    """Standardised mean difference (a - b)/sqrt((sd_a^2 + sd_b^2)/2); |SMD| > .1 is flagged ``imbalance``."""
    spread = sqrt((sd_a**2 + sd_b**2) / 2)
    if spread <= 0:
        return Estimate.undefined("no variation", method="smd")
    value = (mean_a - mean_b) / spread
    return Estimate(value, None, None, 0, "smd", flags=("imbalance",) if abs(value) > 0.1 else ())


def covariate_balance(subset: ArrayLike, population: ArrayLike) -> Estimate:
    """SMD of one covariate between the labelled subset and the population."""
    a, b = np.asarray(subset, dtype=np.float64), np.asarray(population, dtype=np.float64)
    if a.size < 2 or b.size < 2:
        return Estimate.undefined("fewer than two items", method="smd")
    return smd(float(a.mean()), float(a.std(ddof=1)), float(b.mean()), float(b.std(ddof=1)))
