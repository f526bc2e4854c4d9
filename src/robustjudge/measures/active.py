"""Labels drawn with a probability of their own each (active draws): what they say of all items, judge cell by judge cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, bounded, floats, same_length, z_of
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.designs import Characteristics, CorrectedRate, begg_greenes
from robustjudge.measures.intervals import wilson, wilson_bounds
from robustjudge.measures.rates import ipw_ppi, post_stratified
from robustjudge.nouns import Estimate


@dataclass(frozen=True, slots=True)
class Drawn:
    """The labelled items: ``y`` 1 where people say positive, ``judge`` 1 where the judge does, ``probability`` with
    which the item was drawn, logged before it was.  Raises :class:`DataError` where one is not in (0, 1]."""

    y: Floats
    judge: Floats
    probability: Floats

    @classmethod
    def of(cls, y: ArrayLike, judge: ArrayLike, probability: ArrayLike) -> Drawn:
        """From any sequences of one length."""
        made = cls(floats(y, "labels"), floats(judge, "judge"), floats(probability, "probability"))
        same_length(y=made.y, judge=made.judge, probability=made.probability)
        if made.y.size and not (made.probability.min() > 0 and made.probability.max() <= 1):
            raise DataError("inclusion probabilities lie in (0, 1]; an item of probability 0 can never be labelled")
        return made


def effective(d: Drawn) -> Confusion:
    """The confusion matrix that is worth as much as the weighted labels.

    Within each judge cell the share of positives is Hajek's, sum(w y)/sum(w) with w = 1/probability, at the smaller of
    two effective sizes: p(1-p) over the linearised variance, and Kish's (sum w)^2/sum(w^2), which also holds where
    nothing varies.
    """
    cells = []
    for said in (1.0, 0.0):
        mine = d.judge == said
        share, size = _hajek(d.y[mine], 1 / d.probability[mine])
        cells += [size * share, size * (1 - share)]
    tp, fp, fn, tn = cells
    return Confusion(tp, fp, fn, tn)


def _hajek(y: Floats, w: Floats) -> tuple[float, float]:
    """(weighted share, effective size)."""
    if not y.size:
        return 0.0, 0.0
    total = float(w.sum())
    p = min(1.0, max(0.0, float(w @ y) / total))  # rounding may carry a share of all beyond 1
    kish = total**2 / float(w @ w)
    variance = float(w**2 @ (y - p) ** 2) / total**2
    return p, min(kish, p * (1 - p) / variance) if variance > 0 else kish


def characteristics(d: Drawn, judge_positive: int, judge_negative: int, level: float = LEVEL) -> Characteristics:
    """TPR, FPR, prevalence and kappa over all items, of which the judge called so many positive and negative."""
    w = begg_greenes(effective(d), judge_positive, judge_negative, level)
    named = (_named(e, d) for e in (w.tpr, w.fpr, w.prevalence, w.kappa))
    return Characteristics(*named)


def correct_active(d: Drawn, judge_positive: int, n: int, level: float = LEVEL) -> CorrectedRate:
    """The rate of positives over all ``n`` items with a read verdict (the labelled ones among them), ``judge_positive``
    of which the judge called positive.

    Post-stratification on the verdict with weighted shares; inverse-probability PPI (Zrnic and Candes 2024) and the
    weighted rate of the labels alone stand beside it.  Coverage: ``benchmarks/coverage_rates.py``.
    """
    c = effective(d)
    e = _named(post_stratified(c.tp, c.fp, c.fn, c.tn, judge_positive, n, level), d)
    said = np.repeat([1.0, 0.0], [judge_positive, n - judge_positive])
    p, size = _hajek(d.y, 1 / d.probability)
    low, high = wilson_bounds(p, size, z_of(level)) if size else (0.0, 1.0)
    alone = bounded(p, low, high, d.y.size, f"inverse-probability weights, wilson (n_eff {size:.1f})")
    others = [("ipw ppi", ipw_ppi(d.y, d.judge, d.probability, said, level=level))] if d.y.size <= n else []
    if d.y.size:
        others.append(("labels only, weighted", alone))
    refusal = "" if e.value is not None else f"{e.reason}: its share of the rate is unknown"
    labels = wilson(float(d.y.sum()), d.y.size, level)
    notes = ("the unweighted rate among labels is not valid under this design; shown for comparison",)
    return CorrectedRate(
        "active", "weighted cells", e, wilson(judge_positive, n, level), labels, tuple(others), refusal, notes
    )


def _named(e: Estimate, d: Drawn) -> Estimate:
    return replace(e, n=d.y.size, method=f"inverse-probability weights in judge cells, {e.method}")


def excess(probability: ArrayLike, items: int) -> float:
    """How many standard deviations the sum of 1/probability lies from the number of items it stands for, each item
    drawn on its own (Poisson sampling); 0 where every probability is 1 and the sum is right."""
    p = floats(probability, "probability")
    off = float(np.sum(1 / p)) - items
    sd = sqrt(float(np.sum((1 - p) / p**2)))
    return off / sd if sd > 0 else (0.0 if abs(off) < 0.5 else float(np.copysign(np.inf, off)))
