"""Calibration of a judge's scores: do forecasts of .7 come true 7 times in 10, and a map that makes them."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, bounded, floats, same_length, z_of
from robustjudge.measures.bootstrap import Groups, cluster_bootstrap
from robustjudge.measures.intervals import wilson_bounds
from robustjudge.nouns import Estimate

ISOTONIC_FROM = 200
"""Labels from which the isotonic map is preferred to the two-parameter logistic one."""


def _checked(y: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats]:
    labels, forecast = floats(y, "labels"), floats(p, "forecasts")
    same_length(labels=labels, forecasts=forecast)
    if labels.size and not np.all(np.isin(labels, (0.0, 1.0))):
        raise DataError("labels are 0 or 1")
    if forecast.size and (forecast.min() < 0 or forecast.max() > 1):
        raise DataError("forecasts lie in [0, 1]")
    return labels, forecast


def brier(y: ArrayLike, p: ArrayLike, clusters: Groups = None, level: float = LEVEL) -> Estimate:
    """Mean squared error of forecasts, in [0, 1], lower is better."""
    labels, forecast = _checked(y, p)
    return cluster_bootstrap((forecast - labels) ** 2, clusters, level=level)


@dataclass(frozen=True, slots=True)
class BrierParts:
    """reliability - resolution + uncertainty = Brier score, forecasts grouped by equal value (Murphy 1973)."""

    reliability: float
    resolution: float
    uncertainty: float


def brier_parts(y: ArrayLike, p: ArrayLike) -> BrierParts | None:
    """The decomposition; None without items."""
    labels, forecast = _checked(y, p)
    if not labels.size:
        return None
    value, at, count = np.unique(forecast, return_inverse=True, return_counts=True)
    share, base = np.bincount(at, labels) / count, float(labels.mean())
    n = labels.size
    return BrierParts(
        float(np.sum(count * (value - share) ** 2)) / n,
        float(np.sum(count * (share - base) ** 2)) / n,
        base * (1 - base),
    )


def brier_skill(y: ArrayLike, p: ArrayLike) -> Estimate:
    """1 - Brier/uncertainty: 0 is the constant base-rate forecast, 1 perfect; undefined with one class."""
    labels, forecast = _checked(y, p)
    base = float(labels.mean()) if labels.size else 0.0
    if base in (0.0, 1.0):
        return Estimate.undefined("one_class" if labels.size else "no_items", n=labels.size, method="brier skill")
    score = float(np.mean((forecast - labels) ** 2))
    return Estimate(1 - score / (base * (1 - base)), None, None, labels.size, "brier skill")


def log_loss(y: ArrayLike, p: ArrayLike, clusters: Groups = None, level: float = LEVEL) -> Estimate:
    """Mean negative log-likelihood in nats; undefined where a certain forecast was wrong (it would be infinite)."""
    labels, forecast = _checked(y, p)
    given = np.where(labels == 1, forecast, 1 - forecast)
    if np.any(given <= 0):
        return Estimate.undefined("a forecast of 0 or 1 was wrong: the loss is infinite", n=labels.size)
    return cluster_bootstrap(-np.log(given), clusters, bounds=None, level=level)


def auroc(y: ArrayLike, p: ArrayLike, level: float = LEVEL) -> Estimate:
    """P(forecast of a positive > that of a negative) + half the ties; DeLong's variance on the logit scale."""
    labels, forecast = floats(y, "labels"), floats(p, "scores")
    same_length(labels=labels, scores=forecast)
    up, down = forecast[labels == 1], forecast[labels == 0]
    if not up.size or not down.size:
        return Estimate.undefined("no_positives" if not up.size else "no_negatives", n=labels.size, low=0.0, high=1.0)
    ranks = stats.rankdata(np.concatenate((up, down)))
    m, n = up.size, down.size
    # placements: share of the other class below each score
    v1 = (ranks[:m] - stats.rankdata(up)) / n
    v0 = 1 - (ranks[m:] - stats.rankdata(down)) / m
    a = float(v1.mean())
    variance = (float(v1.var(ddof=1)) / m if m > 1 else 0.25) + (float(v0.var(ddof=1)) / n if n > 1 else 0.25)
    if a * (1 - a) <= 1e-12 or variance <= 1e-15:
        low, high = wilson_bounds(round(a) if a * (1 - a) <= 1e-12 else a, min(m, n), z_of(level))
        return bounded(a, low, high, m + n, "auroc, boundary rule")
    half = z_of(level) * sqrt(variance) / (a * (1 - a))
    logit = log(a / (1 - a))
    ends = (1 / (1 + exp(-(logit - half))), 1 / (1 + exp(-min(logit + half, 700.0))))
    return bounded(a, *ends, m + n, "auroc, delong on logit")


def average_precision(y: ArrayLike, p: ArrayLike) -> Estimate:
    """Mean precision at each positive, ties sharing one threshold; chance level is the prevalence."""
    labels, score = floats(y, "labels"), floats(p, "scores")
    same_length(labels=labels, scores=score)
    if not np.any(labels == 1):
        return Estimate.undefined("no_positives", n=labels.size, low=0.0, high=1.0, method="average precision")
    order = np.argsort(-score, kind="stable")
    hits, ranked = np.cumsum(labels[order]), score[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), labels.size - 1)
    recall = np.concatenate(([0.0], hits[last] / hits[-1]))
    value = float(np.sum(np.diff(recall) * hits[last] / (last + 1)))
    return Estimate(value, None, None, labels.size, "average precision")


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability curve, (low, high]; the observed share with Wilson's interval."""

    low: float
    high: float
    forecast: float
    observed: Estimate


def reliability_curve(y: ArrayLike, p: ArrayLike, bins: int = 10, level: float = LEVEL) -> tuple[Bin, ...]:
    """Equal-width, right-closed bins that hold items (the first also holds 0)."""
    labels, forecast = _checked(y, p)
    at = np.clip(np.ceil(np.round(forecast * bins, 9)).astype(int) - 1, 0, bins - 1)
    out = []
    for b in range(bins):
        mine = at == b
        if np.any(mine):
            x, n = float(labels[mine].sum()), int(mine.sum())
            low, high = wilson_bounds(x / n, n, z_of(level))
            out.append(
                Bin(b / bins, (b + 1) / bins, float(forecast[mine].mean()), bounded(x / n, low, high, n, "wilson"))
            )
    return tuple(out)


def ece(y: ArrayLike, p: ArrayLike, bins: int = 10) -> Estimate:
    """Expected calibration error over equal-width, right-closed bins; biased upwards when bins hold few items."""
    curve = reliability_curve(y, p, bins)
    n = sum(b.observed.n for b in curve)
    name = f"ece ({bins} equal-width right-closed bins)"
    if not n:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=name)
    value = sum(b.observed.n * abs(float(b.observed) - b.forecast) for b in curve) / n
    flags = ("biased_up_small_n",) if n < 50 * bins else ()
    return Estimate(value, None, None, n, name, flags=flags)


def mce(y: ArrayLike, p: ArrayLike, bins: int = 10) -> Estimate:
    """The largest gap of any bin."""
    curve = reliability_curve(y, p, bins)
    name = f"mce ({bins} equal-width right-closed bins)"
    if not curve:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method=name)
    worst = max(abs(float(b.observed) - b.forecast) for b in curve)
    return Estimate(worst, None, None, sum(b.observed.n for b in curve), name)


# --------------------------------------------------------------------------- maps


def pool_adjacent_violators(y: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """The closest non-decreasing sequence in weighted least squares."""
    values = floats(y, "values")
    w = np.ones_like(values) if weights is None else floats(weights, "weights")
    same_length(values=values, weights=w)
    blocks: list[list[float]] = []  # mean, weight, length
    for v, u in zip(values.tolist(), w.tolist()):
        blocks.append([v, u, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            m, u2, k = blocks.pop()
            last = blocks[-1]
            total = last[1] + u2
            last[0] = (last[0] * last[1] + m * u2) / total if total > 0 else (last[0] + m) / 2
            last[1], last[2] = total, last[2] + k
    return np.repeat([b[0] for b in blocks], [int(b[2]) for b in blocks]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A monotone map through knots: linear between them, constant outside."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    n: int

    def __call__(self, score: ArrayLike) -> Floats:
        return np.asarray(np.interp(np.asarray(score, dtype=np.float64), self.x, self.y), dtype=np.float64)

    def as_dict(self) -> dict[str, object]:
        return {"kind": "isotonic", "x": list(self.x), "y": list(self.y), "n": self.n}


@dataclass(frozen=True, slots=True)
class Logistic:
    """logit p' = intercept + slope logit p."""

    intercept: float
    slope: float
    n: int

    def __call__(self, forecast: ArrayLike) -> Floats:
        return np.asarray(special.expit(self.intercept + self.slope * _logit(forecast)), dtype=np.float64)

    def as_dict(self) -> dict[str, object]:
        return {"kind": "logistic", "intercept": self.intercept, "slope": self.slope, "n": self.n}


def fit_isotonic(score: ArrayLike, y: ArrayLike) -> Isotonic | None:
    """Isotonic regression of y on score; tied scores are pooled *before* fitting.  None without items."""
    s, labels = floats(score, "scores"), floats(y, "labels")
    same_length(scores=s, labels=labels)
    if not s.size:
        return None
    x, at, count = np.unique(s, return_inverse=True, return_counts=True)
    fitted = pool_adjacent_violators(np.bincount(at, labels) / count, count)
    return Isotonic(tuple(x.tolist()), tuple(fitted.tolist()), s.size)


def _logit(p: ArrayLike) -> Floats:
    return np.asarray(special.logit(np.clip(np.asarray(p, dtype=np.float64), 1e-6, 1 - 1e-6)), dtype=np.float64)


def fit_logistic(p: ArrayLike, y: ArrayLike, fixed_slope: float | None = None) -> Logistic | None:
    """Maximum-likelihood recalibration on logit p; ``fixed_slope=1`` gives calibration in the large.

    None with one class, or when forecasts separate the classes perfectly (the slope has no finite estimate).
    """
    labels, forecast = _checked(y, p)
    x = _logit(forecast)
    if not labels.size or labels.min() == labels.max():
        return None
    free = fixed_slope is None and float(np.ptp(x)) > 0
    design = np.column_stack((np.ones_like(x), x)) if free else np.ones((x.size, 1))
    offset = np.zeros_like(x) if free else (fixed_slope if fixed_slope is not None else 0.0) * x
    beta = newton_logit(design, labels, offset)
    if beta is None:
        return None
    return Logistic(float(beta[0]), float(beta[1]) if free else (fixed_slope or 0.0), labels.size)


def newton_logit(design: Floats, y: Floats, offset: Floats | None = None) -> Floats | None:
    """Maximum-likelihood logistic coefficients by Newton's method; None where they are not finite (separation)."""
    beta = np.zeros(design.shape[1])
    shift = np.zeros(y.size) if offset is None else offset
    for _ in range(60):
        p = special.expit(design @ beta + shift)
        w = p * (1 - p)
        try:
            step = np.linalg.solve(design.T @ (design * w[:, None]), design.T @ (y - p))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(step)):
            return None
        size = float(np.max(np.abs(step)))
        beta = beta + step * min(1.0, 5.0 / size if size > 0 else 1.0)
        if np.max(np.abs(beta)) > 1e3:
            return None
        if size < 1e-10:
            return np.asarray(beta, dtype=np.float64)
    return None


def fit_map(score: ArrayLike, y: ArrayLike) -> Isotonic | Logistic | None:
    """Isotonic from about 200 labels on, logistic below; evaluate the map on *other* labels than these."""
    n = np.asarray(y).size
    return fit_isotonic(score, y) if n >= ISOTONIC_FROM else fit_logistic(score, y)
