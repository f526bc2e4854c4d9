"""Agreement of two raters from their K x K table: kappa with the companions that make it readable.

Rows = first rater, columns = second, labels in the declared order (positive first).  K counts the labels *declared*,
not those seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, bounded, rows, same_length, z_of
from robustjudge.measures.intervals import wilson, wilson_bounds
from robustjudge.nouns import Estimate

Weighting = Literal["none", "linear", "quadratic"]
DRAWS = 2000


def cross_table(first: Sequence[Hashable], second: Sequence[Hashable], labels: Sequence[Hashable]) -> Floats:
    """The K x K counts of two raters over the items both rated; an undeclared label is an error with its rows."""
    same_length(first=first, second=second)
    place = {(type(v), v): i for i, v in enumerate(labels)}
    if len(place) != len(labels):
        raise DataError("a label is declared twice")
    coded = []
    for name, given in (("first", first), ("second", second)):
        c = np.asarray([place.get((type(v), v), -1) for v in given], dtype=np.int64)
        bad = np.flatnonzero(c < 0)
        if bad.size:
            told = ", ".join(sorted({repr(given[int(i)]) for i in bad})[:5])
            raise DataError(f"{name} rater: {told} not among the declared labels; row(s) {rows(bad)}")
        coded.append(c)
    k = len(labels)
    return np.asarray(np.bincount(coded[0] * k + coded[1], minlength=k * k), dtype=np.float64).reshape(k, k)


def agreement_weights(k: int, weighting: Weighting = "none") -> Floats:
    """K x K agreement weights, 1 on the diagonal: identity, 1 - |i-j|/(K-1), or 1 - ((i-j)/(K-1))^2."""
    if weighting == "none" or k < 2:
        return np.eye(k)
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    return np.asarray(1 - (gap if weighting == "linear" else gap * gap), dtype=np.float64)


def raw_agreement(table: ArrayLike, level: float = LEVEL) -> Estimate:
    """Share of items on which both raters gave the same label."""
    t = _table(table)
    return wilson(float(np.trace(t)), float(t.sum()), level, "needs two raters on at least one item")


def kappa(
    table: ArrayLike,
    weighting: Weighting = "none",
    level: float = LEVEL,
    interval: Literal["auto", "normal"] = "auto",
    seed: int = 0,
) -> Estimate:
    """Cohen's kappa, (po - pe)/(1 - pe), optionally weighted; in [-1, 1], undefined when both raters are constant.

    ``auto`` takes the normal interval with the Fleiss-Cohen-Everitt SE in the middle; below 100 items or above .9 a
    BCa bootstrap of the cell counts; with perfect or no agreement, or one constant rater, Wilson's bounds of po at
    the observed marginals.
    """
    t = _table(table)
    n = float(t.sum())
    if n <= 0:
        return Estimate.undefined("needs two raters on at least one item", low=-1.0, high=1.0, method="kappa")
    w = agreement_weights(len(t), weighting)
    po, pe = (float(v) for v in _observed(t / n, w))
    if 1 - pe <= 1e-12:
        return Estimate.undefined("one_class", n=round(n), low=-1.0, high=1.0, method="kappa")
    value = (po - pe) / (1 - pe)
    if interval == "normal":
        half = z_of(level) * kappa_se(t, weighting)
        return Estimate(value, value - half, value + half, round(n), "normal, fleiss-cohen-everitt se")
    constant = bool(np.any(np.isclose(t.sum(0), n)) or np.any(np.isclose(t.sum(1), n)))
    if constant or 1 - po <= 1e-12 or po <= 1e-12:
        low, high = wilson_bounds(po, n, z_of(level))
        ends = (low - pe) / (1 - pe), (high - pe) / (1 - pe)
        return bounded(value, *ends, round(n), "wilson on agreement, marginals held", span=(-1.0, 1.0))
    if n >= 100 and value <= 0.9:
        half = z_of(level) * kappa_se(t, weighting)
        ends = (value - half, value + half)
        return bounded(value, *ends, round(n), "normal, fleiss-cohen-everitt se", span=(-1.0, 1.0))
    return _bca(t, w, value, level, seed)


def kappa_se(table: ArrayLike, weighting: Weighting = "none") -> float:
    """Large-sample SE of (weighted) kappa for intervals (Fleiss, Cohen and Everitt 1969, eq. 15)."""
    t = _table(table)
    n = float(t.sum())
    p = t / n
    w = agreement_weights(len(t), weighting)
    r, c = p.sum(1), p.sum(0)
    po, pe = (float(v) for v in _observed(p, w))
    k = (po - pe) / (1 - pe)
    mean = (w @ c)[:, None] + (r @ w)[None, :]
    spread = float(np.sum(p * (w - mean * (1 - k)) ** 2)) - (k - pe * (1 - k)) ** 2
    return sqrt(max(spread, 0.0) / n) / (1 - pe)


def kappa_null_se(table: ArrayLike) -> float:
    """SE of unweighted kappa under kappa = 0; for tests, never for intervals (Fleiss, Cohen and Everitt 1969)."""
    t = _table(table)
    n = float(t.sum())
    r, c = t.sum(1) / n, t.sum(0) / n
    pe = float(r @ c)
    return sqrt(max(pe + pe * pe - float(np.sum(r * c * (r + c))), 0.0) / n) / (1 - pe)


def kappa_max(table: ArrayLike) -> Estimate:
    """The largest kappa that these marginals allow; what is left is disagreement about how often, not about which."""
    t = _table(table)
    n = float(t.sum())
    if n <= 0:
        return Estimate.undefined("no_items", method="kappa max")
    r, c = t.sum(1) / n, t.sum(0) / n
    pe = float(r @ c)
    if 1 - pe <= 1e-12:
        return Estimate.undefined("one_class", n=round(n), method="kappa max")
    return _bare((float(np.minimum(r, c).sum()) - pe) / (1 - pe), n, "kappa max")


def pabak(table: ArrayLike, level: float = LEVEL) -> Estimate:
    """Prevalence- and bias-adjusted kappa of K labels, (K po - 1)/(K - 1); 2 po - 1 for two (Byrt et al. 1993)."""
    t = _table(table)
    k = len(t)
    po = raw_agreement(t, level)
    if po.value is None or po.low is None or po.high is None:
        return Estimate.undefined(po.reason, low=-1.0 / (k - 1), high=1.0, method="pabak")
    value, low, high = ((k * v - 1) / (k - 1) for v in (po.value, po.low, po.high))
    return Estimate(value, low, high, po.n, "pabak, wilson")


def prevalence_index(table: ArrayLike) -> Estimate:
    """(a - d)/n of a 2 x 2 table, in [-1, 1]: how lopsided the labels are."""
    (a, _), (_, d), n = *_two(table), float(_table(table).sum())
    return _bare((a - d) / n, n, "prevalence index") if n else Estimate.undefined("no_items", method="prevalence index")


def bias_index(table: ArrayLike) -> Estimate:
    """(b - c)/n of a 2 x 2 table, in [-1, 1]: how much more often the first rater says positive."""
    (_, b), (c, _), n = *_two(table), float(_table(table).sum())
    return _bare((b - c) / n, n, "bias index") if n else Estimate.undefined("no_items", method="bias index")


def specific_agreement(table: ArrayLike, level: float = LEVEL) -> tuple[Estimate, Estimate]:
    """Positive and negative agreement, 2a/(2a+b+c) and 2d/(2d+b+c), with Wilson's interval on the items involved."""
    (a, b), (c, d) = _two(table)
    out = []
    for same in (a, d):
        items = same + b + c
        if items <= 0:
            out.append(Estimate.undefined("label never used", low=0.0, high=1.0, method="specific agreement"))
            continue
        # f = 2s/(1+s) is monotone in s = same/items, a plain proportion
        s = wilson(same, items, level)
        value, low, high = (2 * float(v) / (1 + float(v)) for v in (s.value or 0.0, s.low or 0.0, s.high or 0.0))
        out.append(Estimate(value, low, high, round(items), "specific agreement, wilson"))
    return out[0], out[1]


def scott_pi(table: ArrayLike) -> Estimate:
    """Kappa with both raters' marginals pooled (Scott 1955)."""
    t = _table(table)
    n = float(t.sum())
    if n <= 0:
        return Estimate.undefined("no_items", method="scott pi")
    q = (t.sum(0) + t.sum(1)) / (2 * n)
    pe = float(q @ q)
    if 1 - pe <= 1e-12:
        return Estimate.undefined("one_class", n=round(n), method="scott pi")
    return _bare((float(np.trace(t)) / n - pe) / (1 - pe), n, "scott pi")


def gwet_ac1(table: ArrayLike, level: float = LEVEL) -> Estimate:
    """Gwet's AC1, stable where one label is rare; chance pe = sum q(1-q)/(K-1) (Gwet 2008)."""
    t = _table(table)
    n, k = float(t.sum()), len(t)
    if n <= 0:
        return Estimate.undefined("needs two raters on at least one item", low=-1.0, high=1.0, method="gwet ac1")
    po, pe = float(np.trace(t)) / n, _ac1_chance(t)
    value = (po - pe) / (1 - pe)
    if 1 - po <= 1e-12 or po <= 1e-12:
        low, high = wilson_bounds(po, n, z_of(level))
        ends = (low - pe) / (1 - pe), (high - pe) / (1 - pe)
        return bounded(value, *ends, round(n), f"gwet ac1 (K = {k}), wilson on agreement", span=(-1.0, 1.0))
    half = z_of(level) * gwet_ac1_se(t)
    return bounded(value, value - half, value + half, round(n), f"gwet ac1 (K = {k}), normal", span=(-1.0, 1.0))


def gwet_ac1_se(table: ArrayLike) -> float:
    """Large-sample SE of AC1 of two raters (Gwet 2008, eq. 24)."""
    t = _table(table)
    n, k = float(t.sum()), len(t)
    p = t / n
    q = (p.sum(0) + p.sum(1)) / 2
    po, pe = float(np.trace(p)), _ac1_chance(t)
    g = (po - pe) / (1 - pe)
    s1 = float(np.sum(np.diag(p) * (1 - q))) / (k - 1) - po * pe
    pair = 1 - (q[:, None] + q[None, :]) / 2
    s2 = float(np.sum(p * pair**2)) / (k - 1) ** 2 - pe * pe
    variance = (po * (1 - po) - 4 * (1 - g) * s1 + 4 * (1 - g) ** 2 * s2) / (n * (1 - pe) ** 2)
    return sqrt(max(variance, 0.0))


def _ac1_chance(t: Floats) -> float:
    q = (t.sum(0) + t.sum(1)) / (2 * t.sum())
    return float(np.sum(q * (1 - q))) / (len(t) - 1)


def _table(table: ArrayLike) -> Floats:
    t = np.asarray(table, dtype=np.float64)
    if t.ndim != 2 or t.shape[0] != t.shape[1] or len(t) < 2:
        raise DataError(f"an agreement table is square with at least two labels, got shape {t.shape}")
    if np.any(t < 0) or not np.all(np.isfinite(t)):
        raise DataError("an agreement table holds counts")
    return t


def _two(table: ArrayLike) -> tuple[tuple[float, float], tuple[float, float]]:
    t = _table(table)
    if len(t) != 2:
        raise DataError("this index is defined for two labels")
    return (float(t[0, 0]), float(t[0, 1])), (float(t[1, 0]), float(t[1, 1]))


def _bare(value: float, n: float, method: str) -> Estimate:
    """A descriptive index of the table itself: no sampling interval is claimed."""
    return Estimate(value, None, None, round(n), method)


def _observed(p: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Weighted observed and chance agreement of tables (..., K, K) of shares."""
    r, c = p.sum(-1), p.sum(-2)
    po = np.einsum("...ij,ij->...", p, w)
    pe = np.einsum("...i,ij,...j->...", r, w, c)
    return po, pe


def _bca(t: Floats, w: Floats, value: float, level: float, seed: int) -> Estimate:
    """Bias-corrected and accelerated bounds from resampled cell counts (Efron 1987); O(K^2) memory per draw."""
    n, k = round(float(t.sum())), len(t)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n, (t / t.sum()).ravel(), size=DRAWS).reshape(DRAWS, k, k) / n
    po, pe = _observed(drawn, w)
    good = 1 - pe > 1e-12
    replicas = (po[good] - pe[good]) / (1 - pe[good])
    flags = () if good.all() else (f"{int((~good).sum())} of {DRAWS} draws undefined",)
    method = f"bca bootstrap of cell counts ({DRAWS} draws, seed {seed})"
    below = float(np.mean(replicas < value) + 0.5 * np.mean(replicas == value))
    z0 = float(special.ndtri(min(max(below, 1 / DRAWS), 1 - 1 / DRAWS)))
    cells = np.argwhere(t >= 1)
    left = np.repeat(t[None], len(cells), axis=0)
    left[np.arange(len(cells)), cells[:, 0], cells[:, 1]] -= 1
    jo, je = _observed(left / left.sum((1, 2), keepdims=True), w)
    ok = 1 - je > 1e-12
    jack, times = (jo[ok] - je[ok]) / (1 - je[ok]), t[cells[:, 0], cells[:, 1]][ok]
    gap = np.average(jack, weights=times) - jack if times.size else np.zeros(1)
    power = float(np.sum(times * gap**2)) ** 1.5 if times.size else 0.0
    a = float(np.sum(times * gap**3)) / (6 * power) if power > 0 else 0.0
    ends = []
    for z in (-z_of(level), z_of(level)):
        shifted = z0 + z
        ends.append(float(special.ndtr(z0 + shifted / (1 - a * shifted))))
    low, high = np.quantile(replicas, ends)
    return bounded(value, float(low), float(high), n, method, span=(-1.0, 1.0), flags=flags)
