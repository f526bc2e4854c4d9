"""Rates of a binary judge against a reference, from four counts and a third column for verdicts that were not read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from robustjudge.errors import DataError
from robustjudge.measures import posterior
from robustjudge.measures.base import LEVEL, Floats, bounded, rows, same_length
from robustjudge.measures.intervals import newcombe, wilson
from robustjudge.nouns import Estimate


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of reference (positive, negative) x judge (positive, negative); ``unread_*`` are verdicts of no value."""

    tp: float
    fp: float
    fn: float
    tn: float
    unread_positive: float = 0
    unread_negative: float = 0

    def __post_init__(self) -> None:
        if min(self.tp, self.fp, self.fn, self.tn, self.unread_positive, self.unread_negative) < 0:
            raise DataError("a confusion matrix holds counts; none may be negative")

    @property
    def positives(self) -> float:
        return self.tp + self.fn

    @property
    def negatives(self) -> float:
        return self.fp + self.tn

    @property
    def n(self) -> float:
        return self.positives + self.negatives

    @property
    def table(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Rows = reference, columns = judge, positive first."""
        return (self.tp, self.fn), (self.fp, self.tn)

    def unread_as_errors(self) -> Confusion:
        """The same with every unread verdict counted against the judge."""
        return Confusion(self.tp, self.fp + self.unread_negative, self.fn + self.unread_positive, self.tn)


def confusion(
    reference: Sequence[Hashable], judge: Sequence[Hashable | None], positive: Hashable, negative: Hashable
) -> Confusion:
    """Count ``judge`` against ``reference``; ``None`` in ``judge`` is an unread verdict.

    Labels are compared with the two declared ones (value *and* type: ``"1"`` is not ``1``, ``True`` is not ``1``);
    any other label is an error that names its rows.
    """
    same_length(reference=reference, judge=judge)
    known = {(type(positive), positive): 1, (type(negative), negative): 0}
    if len(known) != 2:
        raise DataError("positive and negative are the same label")
    r = np.asarray([known.get((type(v), v), -1) for v in reference], dtype=np.int8)
    j = np.asarray([2 if v is None else known.get((type(v), v), -1) for v in judge], dtype=np.int8)
    for name, coded, given in (("reference", r, reference), ("judge", j, judge)):
        bad = np.flatnonzero(coded < 0)
        if bad.size:
            told = sorted({repr(given[int(i)]) for i in bad})[:5]
            raise DataError(
                f"{name}: {', '.join(told)} not among the labels {positive!r}, {negative!r}; row(s) {rows(bad)}"
            )
    count = np.bincount(r.astype(np.int64) * 3 + j, minlength=6)
    tp, fp, fn, tn, lost_pos, lost_neg = (int(count[i]) for i in (4, 1, 3, 0, 5, 2))
    return Confusion(tp, fp, fn, tn, lost_pos, lost_neg)


def rates(c: Confusion, level: float = LEVEL) -> dict[str, Estimate]:
    """Every rate of calibration by confusion matrix, by name.

    TPR and FPR intervals rest on the reference classes, PPV and NPV on what the judge said; ratios without a closed
    form (F1, MCC, likelihood and odds ratios) take Jeffreys posterior quantiles.
    """
    p, q, n = c.positives, c.negatives, c.n
    out = {
        "tpr": wilson(c.tp, p, level, "no_positives"),
        "fnr": wilson(c.fn, p, level, "no_positives"),
        "tnr": wilson(c.tn, q, level, "no_negatives"),
        "fpr": wilson(c.fp, q, level, "no_negatives"),
        "ppv": wilson(c.tp, c.tp + c.fp, level, "judge_never_positive"),
        "npv": wilson(c.tn, c.tn + c.fn, level, "judge_never_negative"),
        "prevalence": wilson(p, n, level),
        "judge_positive_rate": wilson(c.tp + c.fp, n, level),
        "accuracy": wilson(c.tp + c.tn, n, level),
    }
    j = youden_j(c, level)
    out["youden_j"] = j
    out["balanced_accuracy"] = _shifted(j)
    out |= _ratios(c, level)
    out["nnd"] = _reciprocal(j)
    return out


def coverage(c: Confusion, level: float = LEVEL) -> Estimate:
    """Share of verdicts that could be read."""
    return wilson(c.n, c.n + c.unread_positive + c.unread_negative, level)


def youden_j(c: Confusion, level: float = LEVEL) -> Estimate:
    """TPR + TNR - 1 = TPR - FPR in [-1, 1], with Newcombe's interval; undefined when a class is empty."""
    if c.positives <= 0 or c.negatives <= 0:
        return Estimate.undefined(_empty(c), n=round(c.n), low=-1.0, high=1.0, method="newcombe")
    return newcombe(c.tp, c.positives, c.fp, c.negatives, level)


def transported_ppv(tpr: float, fpr: float, prevalence: float) -> Estimate:
    """PPV where the prevalence is another: TPR pi / (TPR pi + FPR (1 - pi)); a transformation without an interval."""
    top = tpr * prevalence
    bottom = top + fpr * (1 - prevalence)
    if bottom <= 0:
        return Estimate.undefined("judge_never_positive", low=0.0, high=1.0, method="bayes")
    return Estimate(top / bottom, 0.0, 1.0, 0, "bayes (inputs taken as known)")


def _empty(c: Confusion) -> str:
    return "no_positives" if c.positives <= 0 else "no_negatives"


def _shifted(j: Estimate) -> Estimate:
    if j.value is None or j.low is None or j.high is None:
        return Estimate.undefined(j.reason, n=j.n, low=0.0, high=1.0, method=j.method)
    return Estimate((j.value + 1) / 2, (j.low + 1) / 2, (j.high + 1) / 2, j.n, j.method)


def _reciprocal(j: Estimate) -> Estimate:
    """Number needed to diagnose, 1/J, in [1, infinity)."""
    if j.value is None or j.low is None or j.high is None:
        return Estimate.undefined(j.reason, n=j.n, method=j.method)
    if j.value <= 0:
        return Estimate.undefined("judge_not_better_than_chance", n=j.n, method=j.method)
    high = 1 / j.low if j.low > 0 else None
    return Estimate(1 / j.value, 1 / j.high, high, j.n, j.method, "" if high else "no upper bound: J may be 0")


def _ratios(c: Confusion, level: float) -> dict[str, Estimate]:
    """F1, MCC, likelihood ratios, and diagnostic odds ratio, by posterior quantiles."""
    p, q, n = c.positives, c.negatives, round(c.n)
    method = f"jeffreys posterior ({posterior.DRAWS} draws)"

    def of(value: float | None, reason: str, drawn: Floats, span: tuple[float, float]) -> Estimate:
        if value is None:
            return Estimate.undefined(reason, n=n, low=span[0], high=span[1] if span[1] < inf else None, method=method)
        return bounded(value, *posterior.quantiles(drawn, level), n, method, span=span)

    se, sp = posterior.beta_draws(c.tp, p, seed=1), posterior.beta_draws(c.tn, q, seed=2)
    tp, fp, fn, tn = posterior.dirichlet_draws((c.tp, c.fp, c.fn, c.tn), seed=3).T
    f1 = 2 * c.tp / (2 * c.tp + c.fp + c.fn) if c.tp + c.fp + c.fn > 0 else None
    factors = (c.tp + c.fp) * p * q * (c.tn + c.fn)
    mcc = (c.tp * c.tn - c.fp * c.fn) / sqrt(factors) if factors > 0 else None
    both = p > 0 and q > 0
    why = "zero_denominator" if both else _empty(c)
    plus = (c.tp / p) / (c.fp / q) if both and c.fp > 0 else None
    minus = (c.fn / p) / (c.tn / q) if both and c.tn > 0 else None
    dor = c.tp * c.tn / (c.fp * c.fn) if both and c.fp > 0 and c.fn > 0 else None
    phi = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return {
        "f1": of(f1, "zero_denominator", 2 * tp / (2 * tp + fp + fn), (0.0, 1.0)),
        "mcc": of(mcc, "one_class", phi, (-1.0, 1.0)),
        "lr_plus": of(plus, why, se / (1 - sp), (0.0, inf)),
        "lr_minus": of(minus, why, (1 - se) / sp, (0.0, inf)),
        "dor": of(dor, why, se * sp / ((1 - se) * (1 - sp)), (0.0, inf)),
    }
