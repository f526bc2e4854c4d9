"""The label design chooses the estimator: a correction is valid only for the way the labelled items were drawn."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from robustjudge.errors import DataError
from robustjudge.measures import posterior
from robustjudge.measures.base import LEVEL, Floats, bounded, z_of
from robustjudge.measures.confusion import Confusion, youden_j
from robustjudge.measures.intervals import wilson, wilson_bounds
from robustjudge.measures.rates import USELESS, post_stratified, ppi_mean, rogan_gladen
from robustjudge.nouns import Estimate

Design = Literal["srs", "class_balanced", "judge_chosen", "stratified", "active", "unknown"]
DESIGNS: tuple[Design, ...] = ("srs", "class_balanced", "judge_chosen", "stratified", "active", "unknown")


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A judge's rate corrected as the design allows, beside what it is to be compared with.

    ``corrected`` is undefined with ``refusal`` in words where no estimator is valid.  ``raw`` is the judge's own rate,
    ``labels_only`` the rate among labels, ``others`` further estimators by name, ``notes`` what a reader must know.
    """

    design: Design
    estimator: str
    corrected: Estimate
    raw: Estimate
    labels_only: Estimate
    others: tuple[tuple[str, Estimate], ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


def correct_rate(
    design: Design, labelled: Confusion, judge_positive: int, n: int, level: float = LEVEL
) -> CorrectedRate:
    """Correct ``judge_positive`` of ``n`` *unlabelled* items by the counts of the labelled ones.

    ``srs`` takes the post-stratified estimator, ``class_balanced`` Rogan-Gladen, ``judge_chosen`` Begg-Greenes cell
    weights (which is post-stratification on the judge's label); a stratified or active draw needs its probabilities
    (:func:`correct_stratified`, :func:`robustjudge.measures.rates.ipw_ppi`); an unknown one is refused.
    """
    c = labelled
    raw = wilson(judge_positive, n, level)
    labels = wilson(c.positives, c.n, level)
    refusal, notes = "", list[str]()
    if design not in DESIGNS:
        raise DataError(f"unknown label design {design!r}; one of {', '.join(DESIGNS)}")
    if design == "unknown":
        refusal = "the labelled items were chosen in an unknown way, so their rates describe this subset only"
    elif design in ("stratified", "active"):
        refusal = f"a {design} draw is corrected with its inclusion probabilities, which the four counts do not hold"
    elif design == "srs" and (p := srs_check(c, judge_positive, n)) < 0.01:
        refusal = (
            "the labelled items are said to be a random sample, but the judge calls them positive at another rate than "
            f"the rest (Fisher p = {p:.2g}); state the real design or draw again"
        )
    if refusal:
        reason = (
            "design_unknown" if design == "unknown" else "design_check_failed" if design == "srs" else "needs_weights"
        )
        return CorrectedRate(
            design,
            "",
            Estimate.undefined(reason, n=round(c.n), low=0.0, high=1.0, method="refused"),
            raw,
            labels,
            refusal=refusal,
        )
    rg = rogan_gladen(judge_positive, n, c.tp, c.positives, c.tn, c.negatives, level).estimate
    if design == "class_balanced":
        refusal = no_correction(c)
        if refusal and rg.value is not None:
            rg = Estimate.undefined(USELESS, n=rg.n, low=0.0, high=1.0, method=rg.method)
        return CorrectedRate(design, "rogan-gladen", rg, raw, labels, refusal=refusal, notes=(_only("labels-only"),))
    # the labelled items belong to the population: their judge labels are known as well
    all_positive, everything = judge_positive + c.tp + c.fp, n + c.n
    post = post_stratified(c.tp, c.fp, c.fn, c.tn, all_positive, everything, level)
    if design == "judge_chosen":
        return CorrectedRate(design, "begg-greenes", post, raw, labels, notes=(_only("labels-only"),))
    y = np.repeat([1.0, 0.0, 1.0, 0.0], [round(c.tp), round(c.fp), round(c.fn), round(c.tn)])
    f = np.repeat([1.0, 1.0, 0.0, 0.0], [round(c.tp), round(c.fp), round(c.fn), round(c.tn)])
    u = np.repeat([1.0, 0.0], [judge_positive, n - judge_positive])
    others = (("ppi++", ppi_mean(y, f, u, level=level)), ("rogan-gladen", rg))
    if _width(post) >= _width(labels):
        notes.append("the judge buys nothing here: the corrected interval is no narrower than labels alone")
    return CorrectedRate(design, "post-stratified", post, raw, labels, others, notes=tuple(notes))


def correct_stratified(
    sizes: ArrayLike, events: ArrayLike, labelled: ArrayLike, judge_positive: int, n: int, level: float = LEVEL
) -> CorrectedRate:
    """The rate over all items of a draw at random within strata of known ``sizes``: ``events`` positives among
    ``labelled`` people's labels in each, weighted back; ``judge_positive`` of ``n`` verdicts on all items is the raw rate.
    Bounds from Jeffreys posteriors of each stratum's share, or where a stratum has fewer than ten
    labels from :func:`stratified_mean`, whose Wilson intervals cover 93 % at rare rates; its second interval, for
    exactly these items, is among ``others``."""
    big, x, m = (np.asarray(v, dtype=np.float64) for v in (sizes, events, labelled))
    larger, these = stratified_mean(big, x, m, level)
    if larger.value is not None and m.min() >= 10:
        drawn = (posterior.beta_draws(a, b, seed=k) for k, (a, b) in enumerate(zip(x, m), 1))
        low, high = posterior.quantiles(np.asarray(sum(w * d for w, d in zip(big / big.sum(), drawn))), level)
        method = f"stratified, jeffreys ({posterior.DRAWS} draws)"
        larger = bounded(larger.value, low, high, larger.n, method)
    unweighted = wilson(float(x.sum()), float(m.sum()), level)
    raw = wilson(judge_positive, n, level)
    refusal = "" if larger.value is not None else f"{larger.reason}: its share of the rate is unknown"
    others = (("stratified, these items only", these),)
    notes = (_only("the unweighted rate among labels"),)
    return CorrectedRate("stratified", "stratified", larger, raw, unweighted, others, refusal, notes)


PROOF = 0.99
"""How sure the labels must be that a judge tells more than chance before its verdicts are divided by J."""


def no_correction(c: Confusion) -> str:
    """Why a rate cannot be corrected by these error rates, in words; empty where it can.

    The formula divides by J: where J's interval at :data:`PROOF` holds 0, the labels do not show that the judge tells
    anything, and no rate follows from its verdicts.  A judge at chance passes by luck in 1 of 200 calibrations.
    """
    j = youden_j(c, PROOF)
    if j.value is None:
        return _words(j.reason)
    if j.low is not None and j.low > 0:
        return ""
    if j.value <= 0:
        return _words(USELESS)
    return (
        f"the judge cannot be told from chance on the labelled items (J {j.value:.3f}, 99 % interval"
        f" [{j.low or 0:.3f}, {j.high or 0:.3f}]):"
        " no rate can be corrected with it; label more items"
    )


def srs_check(c: Confusion, judge_positive: int, n: int) -> float:
    """Fisher's p that labelled and unlabelled items have one judge-positive rate; 1 when either side is empty."""
    if c.n <= 0 or n <= 0:
        return 1.0
    table = [[round(c.tp + c.fp), round(c.fn + c.tn)], [judge_positive, n - judge_positive]]
    return float(stats.fisher_exact(table)[1])


def _only(name: str) -> str:
    return f"{name} is not valid under this design; shown for comparison"


def _words(reason: str) -> str:
    told = {
        USELESS: "the judge is not better than chance on the labelled items (J <= 0): no rate can be corrected with it",
        "no_positives": "no labelled positive: the judge's TPR is unknown",
        "no_negatives": "no labelled negative: the judge's FPR is unknown",
    }
    return told.get(reason, reason)


def _width(e: Estimate) -> float:
    return 1.0 if e.low is None or e.high is None else e.high - e.low


@dataclass(frozen=True, slots=True)
class Characteristics:
    """TPR, FPR, prevalence and kappa of a judge over the whole population, from weighted labels."""

    tpr: Estimate
    fpr: Estimate
    prevalence: Estimate
    kappa: Estimate


def begg_greenes(c: Confusion, judge_positive: int, judge_negative: int, level: float = LEVEL) -> Characteristics:
    """Characteristics when labels were drawn by what the judge said (verification bias; Begg and Greenes 1983).

    Each judge cell is weighted by (total in cell)/(labelled in cell); bounds from Jeffreys posteriors of the human
    share in each cell and of the judge's rate.
    """
    n, method = judge_positive + judge_negative, f"begg-greenes, jeffreys ({posterior.DRAWS} draws)"
    if n <= 0 or (judge_positive > 0 and c.tp + c.fp <= 0) or (judge_negative > 0 and c.fn + c.tn <= 0):
        nothing = Estimate.undefined("no labels in a judge cell", n=round(c.n), low=0.0, high=1.0, method=method)
        return Characteristics(*(nothing,) * 4)
    w = judge_positive / n
    p1 = c.tp / (c.tp + c.fp) if c.tp + c.fp else 0.0
    p0 = c.fn / (c.fn + c.tn) if c.fn + c.tn else 0.0
    d1 = posterior.beta_draws(c.tp, c.tp + c.fp, seed=1)
    d0 = posterior.beta_draws(c.fn, c.fn + c.tn, seed=2)
    dw = posterior.beta_draws(judge_positive, n, seed=3)
    point = _cells(np.asarray([w]), np.asarray([p1]), np.asarray([p0]))
    drawn = _cells(dw, d1, d0)
    out = []
    for value, draws, reason, span in zip(point, drawn, ("no_positives", "no_negatives", "", "one_class"), _SPANS):
        v = float(value[0])
        low, high = posterior.quantiles(draws, level)
        if not np.isfinite(v):
            out.append(Estimate.undefined(reason, n=round(c.n), low=span[0], high=span[1], method=method))
        else:
            out.append(bounded(v, low, high, round(c.n), method, span=span))
    return Characteristics(*out)


_SPANS = ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (-1.0, 1.0))


def _cells(w: Floats, p1: Floats, p0: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """TPR, FPR, prevalence and kappa from the judge's rate and the human share in each judge cell."""
    tp, fp, fn, tn = w * p1, w * (1 - p1), (1 - w) * p0, (1 - w) * (1 - p0)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)
        return tp / (tp + fn), fp / (fp + tn), tp + fn, (tp + tn - chance) / (1 - chance)


def stratified_rates(
    sizes: ArrayLike, tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike, level: float = LEVEL
) -> Characteristics:
    """Characteristics from labels drawn at random within strata of known ``sizes`` (weights N_h/n_h).

    Bounds: Wilson's at the effective sample size of the linearised stratified variance; kappa's from Dirichlet draws
    within strata.
    """
    big = np.asarray(sizes, dtype=np.float64)
    cells = np.column_stack([np.asarray(a, dtype=np.float64) for a in (tp, fn, fp, tn)])
    small = cells.sum(1)
    if big.shape != small.shape or np.any(small > big):
        raise DataError("each stratum needs its size, at least as large as its number of labels")
    if np.any((small == 0) & (big > 0)):
        nothing = Estimate.undefined("a stratum without labels", n=int(small.sum()), low=0.0, high=1.0)
        return Characteristics(*(nothing,) * 4)
    kept = small > 0
    big, cells, small = big[kept], cells[kept], small[kept]
    weight = big / small
    total = (weight[:, None] * cells).sum(0)
    share = total / total.sum()
    rng = np.random.default_rng(4)
    mass = big / big.sum()
    drawn = sum(m * rng.dirichlet(c + 0.25, size=5000) for m, c in zip(mass, cells))
    drawn = np.asarray(drawn)

    def kappa_of(s: Floats) -> Floats:
        a, b, c, d = (s[..., i] for i in range(4))
        chance = (a + b) * (a + c) + (c + d) * (b + d)
        return np.asarray((a + d - chance) / (1 - chance))

    name = "inverse-probability weights"
    chance = float((share[0] + share[1]) * (share[0] + share[2]) + (share[2] + share[3]) * (share[1] + share[3]))
    if 1 - chance <= 1e-12:
        k = Estimate.undefined("one_class", n=int(small.sum()), low=-1.0, high=1.0, method=name)
    else:
        low, high = posterior.quantiles(kappa_of(drawn), level)
        k = bounded(float(kappa_of(share)), low, high, int(small.sum()), f"{name}, dirichlet draws", span=(-1.0, 1.0))
    return Characteristics(
        _ratio(cells, weight, (1, 0, 0, 0), (1, 1, 0, 0), "no_positives", level),
        _ratio(cells, weight, (0, 0, 1, 0), (0, 0, 1, 1), "no_negatives", level),
        _ratio(cells, weight, (1, 1, 0, 0), (1, 1, 1, 1), "no_items", level),
        k,
    )


def _ratio(
    cells: Floats, weight: Floats, top: tuple[int, ...], bottom: tuple[int, ...], reason: str, level: float
) -> Estimate:
    """A weighted share with Wilson's bounds at p(1-p)/variance; where nothing varies, at Kish's effective n."""
    a, b = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    counted = cells @ b
    d = float(weight @ counted)
    if d <= 0:
        return Estimate.undefined(reason, low=0.0, high=1.0, method="inverse-probability weights")
    p = float(weight @ (cells @ a)) / d
    kish = d**2 / float(weight**2 @ counted)
    m = cells.sum(1)
    e = a - p * b
    mean = cells @ e / m
    inner = (cells @ (e * e)) / m - mean**2
    variance = float(np.sum(weight**2 * m * m / np.maximum(m - 1, 1) * inner)) / d**2
    n_eff = p * (1 - p) / variance if variance > 0 and 0 < p < 1 else kish
    low, high = wilson_bounds(p, n_eff, z_of(level))
    return bounded(
        p, low, high, round(float(counted.sum())), f"inverse-probability weights, wilson (n_eff {n_eff:.1f})"
    )


def stratified_mean(
    sizes: ArrayLike, events: ArrayLike, labelled: ArrayLike, level: float = LEVEL
) -> tuple[Estimate, Estimate]:
    """A rate sum W_h p_h over strata: (as a draw from a larger population, for exactly these items).

    The second carries the finite-population factor 1 - n_h/N_h; each variance is
    sum W_h^2 (1-f_h) p_h(1-p_h)/(n_h-1), turned into Wilson's bounds at its effective sample size.
    """
    big, x, m = (np.asarray(v, dtype=np.float64) for v in (sizes, events, labelled))
    if np.any(m < 1):
        nothing = Estimate.undefined("a stratum without labels", n=int(m.sum()), low=0.0, high=1.0)
        return nothing, nothing
    share, p = big / big.sum(), x / m
    value = float(share @ p)
    kish = big.sum() ** 2 / float(np.sum(big**2 / m))
    out = []
    for factor, name in ((np.ones_like(big), "stratified"), (1 - m / big, "stratified, finite population")):
        variance = float(np.sum(share**2 * factor * p * (1 - p) / np.maximum(m - 1, 1)))
        n_eff = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else kish
        low, high = wilson_bounds(value, n_eff, z_of(level))
        out.append(bounded(value, low, high, int(m.sum()), f"{name}, wilson (n_eff {n_eff:.1f})"))
    return out[0], out[1]


def kish(weights: ArrayLike) -> float:
    """Effective sample size of unequal weights, (sum w)^2/sum w^2."""
    w = np.asarray(weights, dtype=np.float64)
    return float(w.sum() ** 2 / np.sum(w**2)) if w.size else 0.0


def mixture_range(corrected_clean: Estimate, corrected_attacked: Estimate, share: float) -> Estimate:
    """The true rate when a ``share`` of submissions attack: the mixture of both corrected rates, bounds combined."""
    if not 0 <= share <= 1:
        raise DataError("a share lies in [0, 1]")
    a, b = corrected_clean, corrected_attacked
    ends = (a.low, a.high, b.low, b.high)
    if a.value is None or b.value is None or any(e is None for e in ends):
        return Estimate.undefined(a.reason or b.reason or "an input is undefined", low=0.0, high=1.0, method="mixture")
    value = (1 - share) * a.value + share * b.value
    down = sqrt(((1 - share) * (a.value - (a.low or 0.0))) ** 2 + (share * (b.value - (b.low or 0.0))) ** 2)
    up = sqrt(((1 - share) * ((a.high or 0.0) - a.value)) ** 2 + (share * ((b.high or 0.0) - b.value)) ** 2)
    return bounded(value, value - down, value + up, a.n + b.n, "mixture, square-and-add")
