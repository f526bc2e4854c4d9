"""Drift: the same frozen anchors judged again, and what a change of the live rate may be blamed on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures.agreement import cross_table, kappa
from robustjudge.measures.base import LEVEL, Floats, floats, same_length
from robustjudge.measures.compare import McNemar, mcnemar
from robustjudge.measures.intervals import newcombe, wilson
from robustjudge.nouns import Estimate


@dataclass(frozen=True, slots=True)
class AnchorDrift:
    """Old against new verdicts on one frozen anchor set.

    ``tpr_change`` and ``fpr_change`` are new minus old (Newcombe, as if independent: conservative for paired items).
    """

    n: int
    flip_rate: Estimate
    kappa: Estimate
    mcnemar: McNemar
    tpr_change: Estimate
    fpr_change: Estimate


def anchor_drift(
    reference: Sequence[Hashable],
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    positive: Hashable,
    negative: Hashable,
    level: float = LEVEL,
) -> AnchorDrift:
    """Compare two judgements of the same anchors; labels as in :func:`confusion.confusion`."""
    same_length(reference=reference, old=old, new=new)
    table = cross_table(old, new, (positive, negative))
    cross_table(reference, old, (positive, negative))
    truth = np.asarray([v == positive for v in reference], dtype=bool)
    was = np.asarray([v == positive for v in old], dtype=bool)
    now = np.asarray([v == positive for v in new], dtype=bool)
    n, p, q = truth.size, int(truth.sum()), int((~truth).sum())
    return AnchorDrift(
        n,
        wilson(int(np.sum(was != now)), n, level),
        kappa(table, level=level),
        mcnemar(int(table[0, 1]), int(table[1, 0])),
        newcombe(int(np.sum(now & truth)), p, int(np.sum(was & truth)), p, level),
        newcombe(int(np.sum(now & ~truth)), q, int(np.sum(was & ~truth)), q, level),
    )


def attribute(anchors_same: bool, anchors_moved: bool, rate_moved: bool, detectable: float | None = None) -> str:
    """Who moved: the judge, the system, or nobody as far as these n can tell."""
    if not anchors_same:
        return "not comparable: the anchor file changed"
    if anchors_moved:
        return "the judge moved: its verdicts on unchanged anchors changed"
    if rate_moved:
        return "the system or the population moved: the anchors are stable and the live rate is not"
    could = f"; a change of {detectable:.2f} would have been seen" if detectable is not None else ""
    return f"no evidence of change{could}"


@dataclass(frozen=True, slots=True)
class TwoWindows:
    """One rate in two windows: pooled z test, Fisher's exact test, sample odds ratio, Newcombe difference."""

    difference: Estimate
    z: float | None
    p: float | None
    fisher_p: float | None
    odds_ratio: float | None


def two_windows(x1: int, n1: int, x2: int, n2: int, level: float = LEVEL) -> TwoWindows:
    """Compare x1/n1 with x2/n2 (first minus second)."""
    difference = newcombe(x1, n1, x2, n2, level)
    if n1 <= 0 or n2 <= 0:
        return TwoWindows(difference, None, None, None, None)
    pooled = (x1 + x2) / (n1 + n2)
    se = sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    z = (x1 / n1 - x2 / n2) / se if se > 0 else None
    fisher = float(stats.fisher_exact([[x1, n1 - x1], [x2, n2 - x2]])[1])
    bottom = (n1 - x1) * x2
    p = 2 * float(special.ndtr(-abs(z))) if z is not None else None
    return TwoWindows(difference, z, p, fisher, x1 * (n2 - x2) / bottom if bottom else None)


def _shares(expected: ArrayLike, actual: ArrayLike) -> tuple[Floats, Floats]:
    e, a = floats(expected, "expected"), floats(actual, "actual")
    same_length(expected=e, actual=a)
    if e.size and (e.min() < 0 or a.min() < 0):
        raise DataError("bins hold counts; none may be negative")
    return e, a


def psi(expected: ArrayLike, actual: ArrayLike, smoothing: float = 0.0) -> Estimate:
    """Population stability index of binned counts, sum (a - e) ln(a/e); 0 is no change.

    An empty bin makes it undefined unless ``smoothing`` counts are added to every bin (stated in ``method``).
    """
    e, a = _shares(expected, actual)
    name = f"psi (+{smoothing:g} per bin)" if smoothing else "psi"
    e, a = e + smoothing, a + smoothing
    if not e.size or e.sum() <= 0 or a.sum() <= 0:
        return Estimate.undefined("no_items", method=name)
    if np.any(e <= 0) or np.any(a <= 0):
        return Estimate.undefined("empty bin: merge bins or state a smoothing", n=round(float(a.sum())), method=name)
    e, a = e / e.sum(), a / a.sum()
    return Estimate(float(np.sum((a - e) * np.log(a / e))), None, None, round(float(np.sum(actual))), name)


def js_divergence(expected: ArrayLike, actual: ArrayLike) -> Estimate:
    """Jensen-Shannon divergence of binned counts in nats, in [0, ln 2]; defined with empty bins."""
    e, a = _shares(expected, actual)
    if not e.size or e.sum() <= 0 or a.sum() <= 0:
        return Estimate.undefined("no_items", method="js divergence")
    e, a = e / e.sum(), a / a.sum()
    m = (e + a) / 2
    value = float(np.sum(special.rel_entr(e, m) + special.rel_entr(a, m))) / 2
    return Estimate(value, None, None, round(float(np.sum(actual))), "js divergence")


@dataclass(frozen=True, slots=True)
class Shift:
    """Two samples of scores: Kolmogorov-Smirnov, Mann-Whitney and the Wasserstein distance in score units."""

    ks: float
    ks_p: float
    mann_whitney_p: float
    wasserstein: float


def shift(old: ArrayLike, new: ArrayLike) -> Shift | None:
    """Compare two score samples; None when either is empty."""
    x, y = floats(old, "old"), floats(new, "new")
    if not x.size or not y.size:
        return None
    ks = stats.ks_2samp(x, y)
    u = stats.mannwhitneyu(x, y, alternative="two-sided")
    return Shift(float(ks.statistic), float(ks.pvalue), float(u.pvalue), float(stats.wasserstein_distance(x, y)))


# --------------------------------------------------------------------------- slow decay over many runs


@dataclass(frozen=True, slots=True)
class Chart:
    """A control chart: the statistic after each run, its limit, and the first run that crossed it (or None)."""

    values: tuple[float, ...]
    limit: float
    alarm: int | None
    method: str


def ewma(errors: ArrayLike, sizes: ArrayLike, target: float, run_length: float = 370.0, weight: float = 0.2) -> Chart:
    """EWMA of standardised error shares per run (|value| > limit alarms).

    ``target`` is the in-control error rate; the limit gives one false alarm in about ``run_length``
    runs, by the normal quantile of the statistic with its exact variance (neighbouring runs are dependent: conservative).
    """
    z = _standard(errors, sizes, target)
    limit = -float(special.ndtri(0.5 / run_length))
    s, spread, out = 0.0, 0.0, []
    for v in z.tolist():
        s = (1 - weight) * s + weight * v
        spread = (1 - weight) ** 2 * spread + weight**2
        out.append(s / sqrt(spread))
    return Chart(
        tuple(out), limit, _first(out, limit, both=True), f"ewma (weight {weight:g}, about 1 in {run_length:g})"
    )


def cusum(errors: ArrayLike, sizes: ArrayLike, target: float, run_length: float = 370.0, drift: float = 0.5) -> Chart:
    """One-sided CUSUM of rising errors: S = max(0, S + z - drift).

    The limit solves Siegmund's approximation of the in-control average run length (Siegmund 1985).
    """
    z = _standard(errors, sizes, target)
    low, high = 0.1, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        b = middle + 1.166
        length = (np.exp(2 * drift * b) - 2 * drift * b - 1) / (2 * drift**2)
        low, high = (middle, high) if length < run_length else (low, middle)
    s, out = 0.0, []
    for v in z.tolist():
        s = max(0.0, s + v - drift)
        out.append(s)
    return Chart(tuple(out), high, _first(out, high), f"cusum (drift {drift:g}, average run length {run_length:g})")


def _standard(errors: ArrayLike, sizes: ArrayLike, target: float) -> Floats:
    x, n = floats(errors, "errors"), floats(sizes, "sizes")
    same_length(errors=x, sizes=n)
    if not 0 < target < 1 or (n.size and n.min() <= 0):
        raise DataError("the in-control rate lies strictly between 0 and 1, and every run has items")
    return np.asarray((x - n * target) / np.sqrt(n * target * (1 - target)), dtype=np.float64)


def _first(values: Sequence[float], limit: float, both: bool = False) -> int | None:
    return next((i for i, v in enumerate(values) if v > limit or (both and v < -limit)), None)


def e_process(errors: ArrayLike, sizes: ArrayLike, target: float, alpha: float = 0.05) -> Chart:
    """Evidence that the error rate exceeds ``target``, valid at every run at once: log of the mixture likelihood ratio
    with a Beta prior above the target; the false-alarm rate over *all* runs is at most ``alpha`` (Ville)."""
    x, n = floats(errors, "errors"), floats(sizes, "sizes")
    same_length(errors=x, sizes=n)
    if not 0 < target < 1:
        raise DataError("the in-control rate lies strictly between 0 and 1")
    xs, ns = np.cumsum(x), np.cumsum(n)
    # uniform prior on (target, 1): marginal likelihood = B(x+1, n-x+1) P(Beta > target)/(1 - target)
    out: list[float] = []
    for s, m in zip(xs.tolist(), ns.tolist()):
        tail = float(special.betaincc(s + 1, m - s + 1, target))
        if tail <= 0:
            out.append(-float("inf") if not out else min(out[-1], 0.0))
            continue
        mix = float(special.betaln(s + 1, m - s + 1)) + log(tail) - log(1 - target)
        out.append(mix - s * log(target) - (m - s) * log(1 - target))
    return Chart(tuple(out), log(1 / alpha), _first(out, log(1 / alpha)), f"e-process, anytime-valid (alpha {alpha:g})")


def retest_excess(flips: int, n: int, noise_flips: int, noise_n: int, level: float = LEVEL) -> Estimate:
    """Anchor flips over what byte-identical repeats in the same run flip anyway."""
    return newcombe(flips, n, noise_flips, noise_n, level)


def detectable_flips(n: int, level: float = LEVEL) -> float:
    """The flip rate that would leave no flip among ``n`` anchors with probability below 1 - level."""
    return float(wilson(0, n, level).high or 1.0) if n else 1.0
