"""Correcting a judge's observed rate: Rogan-Gladen, prediction-powered inference, post-stratification.

Which of them is valid depends on how the labelled items were chosen: :mod:`robustjudge.measures.designs` picks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from robustjudge.errors import DataError
from robustjudge.measures import posterior
from robustjudge.measures.base import LEVEL, bounded, floats, same_length, z_of
from robustjudge.measures.intervals import INTERVALS, wilson
from robustjudge.nouns import Estimate

USELESS = "judge_not_better_than_chance"


@dataclass(frozen=True, slots=True)
class RoganGladen:
    """A rate corrected for known or estimated error rates.

    ``raw`` is the formula's value before it is cut to [0, 1]; ``delta_se`` the first-order standard error of it.
    """

    estimate: Estimate
    raw: float | None
    delta_se: float | None
    youden_j: float | None


def rogan_gladen(
    judge_positive: float, n: float, tp: float, n_pos: float, tn: float, n_neg: float, level: float = LEVEL
) -> RoganGladen:
    """theta = (p + Sp - 1)/J from ``judge_positive`` of ``n`` unlabelled items and a separate labelled set.

    Interval of Lang and Reiczigel (2014): adds 1 success and 1 failure to each error rate and z^2/2 to p, all three
    errors carried.  Undefined where a class is empty or J <= 0; a raw value outside [0, 1] is cut and flagged
    ``outside_model``.  The labelled items must not be among the ``n``.
    """
    method = "rogan-gladen, lang-reiczigel"
    if n <= 0 or n_pos <= 0 or n_neg <= 0:
        reason = "no_items" if n <= 0 else "no_positives" if n_pos <= 0 else "no_negatives"
        return RoganGladen(Estimate.undefined(reason, n=round(n), low=0.0, high=1.0, method=method), None, None, None)
    if not (0 <= judge_positive <= n and 0 <= tp <= n_pos and 0 <= tn <= n_neg):
        raise DataError("events exceed their trials")
    p, se, sp = judge_positive / n, tp / n_pos, tn / n_neg
    j = se + sp - 1
    if j <= 1e-12:
        nothing = Estimate.undefined(USELESS, n=round(n), low=0.0, high=1.0, method=method)
        return RoganGladen(nothing, None, None, j)
    z = z_of(level)
    raw = (p + sp - 1) / j
    delta = sqrt(_delta(p, se, sp, raw, n, n_pos, n_neg)) / j
    m, a, b = n + z * z, n_pos + 2, n_neg + 2
    p2, se2, sp2 = (n * p + z * z / 2) / m, (tp + 1) / a, (tn + 1) / b
    j2 = se2 + sp2 - 1
    flags = () if 0 <= raw <= 1 else ("outside_model",)
    value = min(max(raw, 0.0), 1.0)
    if j2 <= 1e-12:  # so few labels that the added ones undo the judge's edge: nothing is known of theta
        return RoganGladen(Estimate(value, 0.0, 1.0, round(n), method, "", (*flags, "j_near_zero")), raw, delta, j)
    t2 = (p2 + sp2 - 1) / j2
    shift = 2 * z * z * (t2 * se2 * (1 - se2) / a - (1 - t2) * sp2 * (1 - sp2) / b)
    half = z * sqrt(_delta(p2, se2, sp2, t2, m, a, b)) / j2
    low, high = _inside(t2 + shift - half, t2 + shift + half)
    return RoganGladen(bounded(value, low, high, round(n), method, flags=flags), raw, delta, j)


def _inside(low: float, high: float) -> tuple[float, float]:
    """An interval wholly outside [0, 1] keeps its width at the nearer end: only that much is known."""
    if high <= 0:
        return 0.0, min(high - low, 1.0)
    return (max(1 - (high - low), 0.0), 1.0) if low >= 1 else (low, high)


def _delta(p: float, se: float, sp: float, theta: float, n: float, a: float, b: float) -> float:
    return p * (1 - p) / n + theta**2 * se * (1 - se) / a + (1 - theta) ** 2 * sp * (1 - sp) / b


def rogan_gladen_known(
    judge_positive: float, n: float, se: float, sp: float, interval: str = "wilson", level: float = LEVEL
) -> RoganGladen:
    """The same with error rates taken as known: the binomial interval of p, transformed."""
    j = se + sp - 1
    method = f"rogan-gladen, known error rates, {interval}"
    if n <= 0 or j <= 1e-12:
        reason = "no_items" if n <= 0 else USELESS
        return RoganGladen(Estimate.undefined(reason, n=round(n), low=0.0, high=1.0, method=method), None, None, j)
    p = INTERVALS[interval](judge_positive, n, level)
    raw, low, high = ((float(v) + sp - 1) / j for v in (p, p.low or 0.0, p.high or 0.0))
    flags = () if 0 <= raw <= 1 else ("outside_model",)
    se_delta = sqrt(float(p) * (1 - float(p)) / n) / j
    low, high = _inside(low, high)
    return RoganGladen(bounded(raw, low, high, round(n), method, flags=flags), raw, se_delta, j)


def mean_interval(y: ArrayLike, level: float = LEVEL) -> Estimate:
    """The mean of labels with the textbook normal interval; shown for comparison only."""
    x = floats(y, "labels")
    if x.size == 0:
        return Estimate.undefined("no_items", method="normal")
    half = z_of(level) * float(x.std()) / sqrt(x.size)
    return Estimate(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, x.size, "normal")


def ppi_mean(
    y: ArrayLike,
    judge_labelled: ArrayLike,
    judge_unlabelled: ArrayLike,
    lam: float | None = None,
    *,
    small_sample: bool = True,
    level: float = LEVEL,
) -> Estimate:
    """Prediction-powered mean of y in [0, 1] (Angelopoulos et al. 2023a, b): lam mean(f_U) + mean(y - lam f_L).

    ``lam`` None takes the variance-minimising one, cut to [0, 1] (PPI++); 0 is labels only and then Wilson's interval
    is given.  ``small_sample``: t quantiles below 50 labels.  If all y - lam f are equal: Wilson's on the labels.
    """
    y, f, u = floats(y, "labels"), floats(judge_labelled, "judge"), floats(judge_unlabelled, "judge unlabelled")
    n, m = same_length(y=y, judge=f), u.size
    if n < 2 or m == 0:
        return Estimate.undefined("fewer than 2 labels" if n < 2 else "no unlabelled items", n=n, low=0.0, high=1.0)
    tuned = lam is None
    if lam is None:
        both = np.concatenate((f, u))
        spread = float(np.sum((both - both.mean()) ** 2)) / (n + m - 1)
        lam = float(np.mean((y - y.mean()) * (f - f.mean()))) / ((1 + n / m) * spread) if spread > 0 else 0.0
        lam = min(max(lam, 0.0), 1.0)
    rest = y - lam * f
    value = lam * float(u.mean()) + float(rest.mean())
    name = f"ppi{'++' if tuned else ''} (lambda {lam:.3f})"
    if (tuned and lam == 0.0) or float(np.ptp(rest)) <= 1e-12:
        labels = wilson(float(y.sum()), n, level)
        return bounded(float(y.mean()), labels.low or 0.0, labels.high or 0.0, n, f"{name}, wilson on labels")
    se = sqrt(lam * lam * float(u.var()) / m + float(rest.var()) / n)
    t = small_sample and n < 50
    q = float(special.stdtrit(n - 1, 0.5 + level / 2)) if t else z_of(level)
    return bounded(value, value - q * se, value + q * se, n, f"{name}, {'t' if t else 'normal'}")


def post_stratified(
    tp: float, fp: float, fn: float, tn: float, judge_positive: float, n: float, level: float = LEVEL
) -> Estimate:
    """Rate of human positives among ``n`` items, ``judge_positive`` of which the judge called positive.

    The labelled items (``tp .. tn``) are a random part of the n within each judge cell: w1 p1 + w0 p0 with a posterior
    for each; never leaves [0, 1].  The judge's rate w has Jeffreys' prior, the human shares p_k the neutral
    Beta(1/3, 1/3): with Jeffreys' there the interval of a near-perfect judge covered 98.4 % and of one drawn by its own
    verdicts 91 %, where it promised 95 % (``benchmarks/coverage_rates.py``).
    """
    method = f"post-stratified, neutral prior ({posterior.DRAWS} draws)"
    labelled = round(tp + fp + fn + tn)
    if n <= 0 or labelled <= 0:
        return Estimate.undefined("no_items" if n <= 0 else "no_labels", n=labelled, low=0.0, high=1.0, method=method)
    w = judge_positive / n
    p1 = posterior.beta_draws(tp, tp + fp, seed=1, prior=posterior.NEUTRAL)
    p0 = posterior.beta_draws(fn, fn + tn, seed=2, prior=posterior.NEUTRAL)
    share = posterior.beta_draws(judge_positive, n, seed=3)
    low, high = posterior.quantiles(share * p1 + (1 - share) * p0, level)
    if (w > 0 and tp + fp <= 0) or (w < 1 and fn + tn <= 0):
        return Estimate.undefined("no labels in a judge cell", n=labelled, low=low, high=high, method=method)
    value = (w * tp / (tp + fp) if w > 0 else 0.0) + ((1 - w) * fn / (fn + tn) if w < 1 else 0.0)
    return bounded(value, low, high, labelled, method)


def ipw_ppi(
    y: ArrayLike,
    judge_labelled: ArrayLike,
    probability: ArrayLike,
    judge_all: ArrayLike,
    lam: float = 1.0,
    level: float = LEVEL,
) -> Estimate:
    """Mean of y over all items when item i was labelled with its own logged ``probability`` (active inference,
    Zrnic and Candes 2024): mean over items of lam f + labelled (y - lam f)/probability."""
    y, f, pi = floats(y, "labels"), floats(judge_labelled, "judge"), floats(probability, "probability")
    same_length(y=y, judge=f, probability=pi)
    everything = floats(judge_all, "judge of all items")
    n, m = everything.size, y.size
    if m < 2:
        return Estimate.undefined("fewer than 2 labels", n=m, low=0.0, high=1.0, method="ipw ppi")
    if pi.min() <= 0 or pi.max() > 1:
        raise DataError("inclusion probabilities lie in (0, 1]; an item of probability 0 can never be labelled")
    if m > n:
        raise DataError("the labelled items must be among all items")
    base = lam * everything
    extra = (y - lam * f) / pi
    value = float(base.sum() + extra.sum()) / n
    # sum over items of (base_i + labelled_i extra_i)^2 without joining the two tables
    squares = float(np.sum(base**2) + 2 * np.sum(lam * f * extra) + np.sum(extra**2))
    variance = max(squares / n - value**2, 0.0) / n
    if variance <= 1e-15:
        labels = wilson(float(y.sum()), m, level)
        return bounded(value, labels.low or 0.0, labels.high or 0.0, m, "ipw ppi, wilson on labels")
    q = float(special.stdtrit(m - 1, 0.5 + level / 2)) if m < 50 else z_of(level)
    half = q * sqrt(variance)
    return bounded(value, value - half, value + half, m, "ipw ppi, linearised")
