"""Agreement of many raters with gaps: Fleiss, Krippendorff's alpha and Gwet's coefficients from counts per item.

Input is the items x labels matrix of how many raters gave each label (:func:`count_matrix` builds it from long rows),
so that a transposed rater x item table cannot be taken for one.  A missing rating is missing, never a label.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, Ints, bounded, rows, same_length, z_of
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.intervals import wilson_bounds
from robustjudge.nouns import Estimate

Metric = Literal["nominal", "ordinal", "interval", "ratio"]
Chance = Literal["marginal", "free"]
Convention = Literal["pooled", "item_mean"]
Parts: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]
DRAWS = 2000
_CELLS = 2_000_000
NO_PAIR = "needs two raters on at least one item"


def count_matrix(
    items: Sequence[Hashable], labels: Sequence[Hashable | None], declared: Sequence[Hashable]
) -> tuple[Floats, tuple[Hashable, ...]]:
    """Items x labels counts and the item order, one row per rating; ``None`` is missing, an undeclared label an error."""
    same_length(items=items, labels=labels)
    place = {(type(v), v): i for i, v in enumerate(declared)}
    order: dict[Hashable, int] = {}
    where = np.asarray([order.setdefault(i, len(order)) for i in items], dtype=np.int64)
    what = np.asarray([-1 if v is None else place.get((type(v), v), -2) for v in labels], dtype=np.int64)
    bad = np.flatnonzero(what == -2)
    if bad.size:
        told = ", ".join(sorted({repr(labels[int(i)]) for i in bad})[:5])
        raise DataError(f"{told} not among the declared labels; row(s) {rows(bad)}")
    k, seen = len(declared), what >= 0
    flat = np.bincount(where[seen] * k + what[seen], minlength=len(order) * k)
    return np.asarray(flat, dtype=np.float64).reshape(len(order), k), tuple(order)


def pairwise_agreement(counts: ArrayLike, convention: Convention = "pooled", level: float = LEVEL) -> Estimate:
    """Share of rater pairs that agree, over all pairs or as the mean over items; cluster interval by item."""
    same, pairs = _pairs(_counts(counts))
    if same.size == 0:
        return Estimate.undefined(NO_PAIR, low=0.0, high=1.0, method="pairwise agreement")
    if convention == "item_mean":
        return cluster_bootstrap(same / pairs, level=level)
    return cluster_bootstrap(same, weights=pairs, level=level)


def fleiss_kappa(
    counts: ArrayLike,
    convention: Convention = "pooled",
    chance: Chance = "marginal",
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Fleiss' kappa; both conventions for unequal numbers of raters exist in print and differ, so it is named.

    ``chance="free"`` puts pe = 1/K (Randolph; Brennan and Prediger).  Interval: items resampled.
    """
    c = _counts(counts)
    name = f"fleiss ({convention}{', free-marginal' if chance == 'free' else ''})"
    if not np.any(c.sum(1) >= 2):
        return Estimate.undefined(NO_PAIR, low=-1.0, high=1.0, method=name)

    def parts(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Observed and chance agreement where item ``rows`` occur ``weights`` (..., rows) times."""
        paired = rows.sum(1) >= 2
        (agree, possible), w = _pairs(rows), weights[..., paired]
        if convention == "pooled":
            po = (w @ agree) / (w @ possible)
        else:
            po = (w @ (agree / possible)) / w.sum(-1)
        share = weights @ rows
        share = share / share.sum(-1, keepdims=True)
        return po, np.full(po.shape, 1 / c.shape[1]) if chance == "free" else (share**2).sum(-1)

    return _resampled(c, parts, name, level, seed)


def krippendorff_alpha(
    counts: ArrayLike,
    metric: Metric = "nominal",
    values: Sequence[float] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Alpha = 1 - Do/De over pairable values (Krippendorff 2011); undefined where De = 0.

    ``values`` are the numbers of the labels for the interval and ratio metrics (default 1, 2, ..).
    """
    c = _counts(counts)
    c = c[c.sum(1) >= 2]
    name = f"krippendorff alpha ({metric})"
    if not len(c):
        return Estimate.undefined(NO_PAIR, method=name)
    v = np.arange(1, c.shape[1] + 1, dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    if v.size != c.shape[1]:
        raise DataError(f"{v.size} label values for {c.shape[1]} labels")
    k = c.shape[1]

    def parts(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
        per_item = np.einsum("ij,ik->ijk", rows, rows) - np.einsum("ij,jk->ijk", rows, np.eye(k))
        per_item = (per_item / (rows.sum(1) - 1)[:, None, None]).reshape(len(rows), k * k)
        n = weights @ rows
        total = n.sum(-1)
        o = (weights @ per_item).reshape(*weights.shape[:-1], k, k)
        d = _distance(metric, n, v)
        do = (o * d).sum((-1, -2)) / total
        de = np.einsum("...i,...j,...ij->...", n, n, np.broadcast_to(d, o.shape)) / (total * (total - 1))
        return 1 - do, 1 - de  # so that (po - pe)/(1 - pe) is 1 - Do/De

    return _resampled(c, parts, name, level, seed)


def gwet_ac(counts: ArrayLike, weights: ArrayLike | None = None, level: float = LEVEL) -> Estimate:
    """Gwet's AC1 (identity weights) or AC2 with gaps; t interval on items, cut at 1 (Gwet 2014, ch. 5)."""
    return _gwet(_counts(counts), weights, "gwet ac", level)


def brennan_prediger(counts: ArrayLike, weights: ArrayLike | None = None, level: float = LEVEL) -> Estimate:
    """The Brennan-Prediger coefficient with gaps: chance is 1/K for each label (Gwet 2014, ch. 4)."""
    return _gwet(_counts(counts), weights, "brennan-prediger", level)


def alpha_gwet(counts: ArrayLike, level: float = LEVEL) -> Estimate:
    """Nominal alpha with Gwet's linearised SE and t interval, term by term as irrCAC has it (Gwet 2014, ch. 2)."""
    c = _counts(counts)
    c = c[c.sum(1) >= 2]
    n, name = len(c), "krippendorff alpha, gwet t"
    if n < 2:
        return Estimate.undefined(NO_PAIR, n=n, method=name)
    r, mean = c.sum(1), float(c.sum()) / n
    eps = 1 / (n * mean)
    pi = c.sum(0) / (n * mean)
    pa_i = (c * (c - 1)).sum(1) / (mean * (r - 1))
    pa0 = float(pa_i.mean())
    pa, pe = (1 - eps) * pa0 + eps, float(pi @ pi)
    if 1 - pe <= 1e-12:
        return Estimate.undefined("one_class", n=n, method=name)
    a, prime = (pa - pe) / (1 - pe), (pa0 - pe) / (1 - pe)
    gap = (r - mean) / mean
    a_i = (pa_i - pa * gap - pe) / (1 - pe)
    pe_i = (c @ pi) / mean - pe * gap
    parts = a_i - 2 * (1 - prime) * (pe_i - pe) / (1 - pe)
    return _t_interval(a, parts, n, name, level, pa, pe, centre=prime)


def ordinal_weights(k: int) -> Floats:
    """Gwet's ordinal agreement weights, 1 - C(|i-j|+1, 2)/C(K, 2)."""
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return np.asarray(1 - (gap + 1) * gap / (k * (k - 1)), dtype=np.float64)


def _gwet(c: Floats, weights: ArrayLike | None, name: str, level: float) -> Estimate:
    c = c[c.sum(1) >= 1]
    n, k = c.shape
    w = np.eye(k) if weights is None else np.asarray(weights, dtype=np.float64)
    r = c.sum(1)
    paired = r >= 2
    n2 = int(paired.sum())
    name = f"{name} (K = {k}), t"
    if n2 == 0 or n < 2:
        return Estimate.undefined(NO_PAIR, n=n, low=-1.0, high=1.0, method=name)
    pa_i = np.zeros(n)
    pa_i[paired] = (c * (c @ w - 1)).sum(1)[paired] / (r * (r - 1))[paired]
    pa = float(pa_i.sum()) / n2
    share = c / r[:, None]
    pi = share.mean(0)
    if name.startswith("gwet"):
        factor = float(w.sum()) / (k * (k - 1))
        pe = factor * float(np.sum(pi * (1 - pi)))
        pe_i = factor * (share @ (1 - pi))
    else:
        pe = float(w.sum()) / k**2
        pe_i = np.full(n, pe)
    a = (pa - pe) / (1 - pe)
    a_i = np.where(paired, (n / n2) * (pa_i - pe) / (1 - pe), 0.0)
    return _t_interval(a, a_i - 2 * (1 - a) * (pe_i - pe) / (1 - pe), n, name, level, pa, pe)


def _t_interval(
    a: float, parts: Floats, n: int, name: str, level: float, pa: float, pe: float, centre: float | None = None
) -> Estimate:
    se = float(np.sqrt(np.sum((parts - (a if centre is None else centre)) ** 2) / (n * (n - 1))))
    if pa >= 1 - 1e-12 or se <= 1e-12:
        low, high = wilson_bounds(pa, n, z_of(level))
        return bounded(a, (low - pe) / (1 - pe), (high - pe) / (1 - pe), n, f"{name}, boundary rule", span=(-1.0, 1.0))
    half = float(special.stdtrit(n - 1, 0.5 + level / 2)) * se
    return bounded(a, a - half, a + half, n, name, span=(-1.0, 1.0))


def _counts(counts: ArrayLike) -> Floats:
    c = np.asarray(counts, dtype=np.float64)
    if c.ndim != 2 or c.shape[1] < 1 or np.any(c < 0) or not np.all(np.isfinite(c)):
        raise DataError(f"expected an items x labels matrix of counts, got shape {c.shape}")
    return c


def _pooled(c: Floats) -> tuple[Floats, Ints]:
    """The different rows in order, and how often each occurs: as np.unique by rows, but by one number a row."""
    base, k = int(c.max(initial=0)) + 1, c.shape[1]
    if base**k >= 2**53 or np.any(c != np.floor(c)):
        distinct, times = np.unique(c, axis=0, return_counts=True)
        return distinct, times
    _, first, times = np.unique(c @ float(base) ** np.arange(k - 1, -1, -1), return_index=True, return_counts=True)
    return c[first], times


def _pairs(c: Floats) -> tuple[Floats, Floats]:
    """Agreeing and possible ordered rater pairs of each item with two or more ratings."""
    c = c[c.sum(1) >= 2]
    r = c.sum(1)
    return np.asarray((c * (c - 1)).sum(1)), np.asarray(r * (r - 1))


def _distance(metric: Metric, n: Floats, v: Floats) -> Floats:
    """Squared distances (..., K, K) of Krippendorff's metrics; the ordinal one depends on the marginals ``n``."""
    k = v.size
    if metric == "nominal":
        return np.asarray(1.0 - np.eye(k))
    if metric == "interval":
        return np.asarray(np.subtract.outer(v, v) ** 2)
    if metric == "ratio":
        total = np.add.outer(v, v)
        return np.asarray((np.subtract.outer(v, v) / np.where(total == 0, 1, total)) ** 2)
    middle = np.cumsum(n, axis=-1) - n / 2
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)


def _resampled(c: Floats, parts: Parts, name: str, level: float, seed: int) -> Estimate:
    """(po - pe)/(1 - pe) of all items, with bounds from resampling items; equal items are pooled first."""
    n = len(c)
    distinct, times = _pooled(c)
    po, pe = (float(x) for x in parts(distinct, times.astype(np.float64)))
    if 1 - pe <= 1e-12:
        return Estimate.undefined("one_class", n=n, method=name)
    value = (po - pe) / (1 - pe)
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // max(len(distinct), c.shape[1] ** 2))
    found, lost = [], 0
    for start in range(0, DRAWS, step):
        drawn = rng.multinomial(n, times / n, size=min(step, DRAWS - start)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            dpo, dpe = parts(distinct, drawn)
        good = (1 - dpe > 1e-12) & np.isfinite(dpo)
        lost += int((~good).sum())
        found.append((dpo[good] - dpe[good]) / (1 - dpe[good]))
    replicas = np.concatenate(found)
    flags = (f"{lost} of {DRAWS} draws undefined",) if lost else ()
    if replicas.size == 0 or float(np.ptp(replicas)) <= 1e-12:
        low, high = wilson_bounds(min(max(po, 0.0), 1.0), n, z_of(level))
        ends = (low - pe) / (1 - pe), (high - pe) / (1 - pe)
        return bounded(value, *ends, n, f"{name}, boundary rule", span=(-np.inf, 1.0), flags=flags)
    t = float(special.stdtrit(n - 1, 0.5 + level / 2))
    tail = float(special.ndtr(-np.sqrt(n / (n - 1)) * t))
    low, high = np.quantile(replicas, (tail, 1 - tail))
    method = f"{name}, items resampled ({DRAWS} draws, seed {seed})"
    return bounded(value, float(low), float(high), n, method, span=(-np.inf, 1.0), flags=flags)
