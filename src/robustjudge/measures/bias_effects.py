"""Effect sizes of judge biases from plain arrays: an effect with an interval, a test, and what is ruled out.

Paired inputs hold one entry per pair or Case; ``None`` is a verdict that could not be read: never a flip, never a
tie, dropped from the effect and counted in coverage.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures import power
from robustjudge.measures.base import LEVEL, Floats, bounded, floats, same_length, z_of
from robustjudge.measures.bootstrap import Groups, cluster_bootstrap
from robustjudge.measures.compare import McNemar, mcnemar, paired_table_difference
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.intervals import newcombe, wilson
from robustjudge.nouns import Estimate

Finding = Literal["bounded", "biased", "inconclusive"]


def decide(effect: Estimate, band: tuple[float, float]) -> Finding:
    """Interval inside the equivalence ``band``: bounded; wholly outside: biased; else inconclusive."""
    if effect.value is None or effect.low is None or effect.high is None:
        return "inconclusive"
    if band[0] <= effect.low and effect.high <= band[1]:
        return "bounded"
    return "biased" if effect.high < band[0] or effect.low > band[1] else "inconclusive"


@dataclass(frozen=True, slots=True)
class Excess:
    """Flips beyond retest noise.  ``worst`` counts every unread pair as a flip; ``drop_p`` tests whether edits and
    repeats were unreadable equally often (McNemar)."""

    effect: Estimate
    flip_edit: Estimate
    flip_repeat: Estimate
    coverage: Estimate
    worst: Estimate
    drop_p: float
    p: float


def excess_flips(
    baseline: Sequence[Hashable | None],
    edited: Sequence[Hashable | None],
    repeated: Sequence[Hashable | None],
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> Excess:
    """P(verdict differs | edit) - P(verdict differs | unchanged repeat) over Cases with all three verdicts read.

    With a matched ``neutral`` edit pass its verdicts as ``repeated``: the effect is then edit minus control.
    """
    n = same_length(baseline=baseline, edited=edited, repeated=repeated)
    groups = list(range(n)) if clusters is None else list(clusters)
    same_length(baseline=baseline, clusters=groups)
    read = [i for i in range(n) if baseline[i] is not None and edited[i] is not None and repeated[i] is not None]
    moved = np.asarray([baseline[i] != edited[i] for i in read], dtype=np.float64)
    noise = np.asarray([baseline[i] != repeated[i] for i in read], dtype=np.float64)
    kept = [groups[i] for i in read]
    worst_moved = np.asarray([edited[i] is None or baseline[i] is None or baseline[i] != edited[i] for i in range(n)])
    worst_noise = np.asarray(
        [repeated[i] is not None and baseline[i] is not None and baseline[i] != repeated[i] for i in range(n)]
    )
    lost_edit = [edited[i] is None for i in range(n)]
    lost_repeat = [repeated[i] is None for i in range(n)]
    drop = mcnemar(
        sum(a and not b for a, b in zip(lost_edit, lost_repeat)),
        sum(b and not a for a, b in zip(lost_edit, lost_repeat)),
    )
    test = mcnemar(int(np.sum((moved == 1) & (noise == 0))), int(np.sum((moved == 0) & (noise == 1))))
    span = (-1.0, 1.0)
    return Excess(
        cluster_bootstrap(moved - noise, kept, bounds=span, level=level),
        cluster_bootstrap(moved, kept, level=level),
        cluster_bootstrap(noise, kept, level=level),
        wilson(len(read), n, level),
        cluster_bootstrap(worst_moved.astype(float) - worst_noise.astype(float), groups, bounds=span, level=level),
        drop.exact_p,
        test.exact_p,
    )


# --------------------------------------------------------------------------- position


@dataclass(frozen=True, slots=True)
class Position:
    """Position bias over pairs judged in both orders.

    ``consistency``: same winner after un-swapping; ``first`` and ``second`` count leaning pairs; ``index`` is
    (F - S)/n in [-1, 1]; ``p`` the exact sign test; ``detectable`` the smallest |index| that the discordant pairs
    could have shown with 80 % power; ``shares`` are consistent, first, second, error over *all* pairs.
    """

    n: int
    unread: int
    consistency: Estimate
    first: int
    second: int
    index: Estimate
    p: float
    detectable: float | None
    shares: tuple[float, float, float, float] | None


def position(
    order_a: Sequence[int | None], order_b: Sequence[int | None], clusters: Groups = None, level: float = LEVEL
) -> Position:
    """Lean of each pair from the *slot* that won: +1 first, -1 second, 0 tie, None unread, in each of two orders.

    a + b = 0 is consistent (the other slot won after the swap, or two ties); > 0 leans first, so first + tie does.
    """
    n = same_length(order_a=order_a, order_b=order_b)
    for name, given in (("order_a", order_a), ("order_b", order_b)):
        bad = [i for i, v in enumerate(given) if v not in (1, 0, -1, None)]
        if bad:
            raise DataError(f"{name}: slot verdicts are +1, 0, -1 or None; row {bad[0]} is {given[bad[0]]!r}")
    read = [i for i in range(n) if order_a[i] is not None and order_b[i] is not None]
    lean = np.asarray([np.sign((order_a[i] or 0) + (order_b[i] or 0)) for i in read], dtype=np.float64)
    first, second, same = int(np.sum(lean > 0)), int(np.sum(lean < 0)), int(np.sum(lean == 0))
    groups = None if clusters is None else [clusters[i] for i in read]
    return Position(
        len(read),
        n - len(read),
        wilson(same, len(read), level, "no readable pair"),
        first,
        second,
        cluster_bootstrap(lean, groups, bounds=(-1.0, 1.0), level=level),
        mcnemar(first, second).exact_p,
        power.detectable_sign(first + second, len(read)),
        (same / n, first / n, second / n, (n - len(read)) / n) if n else None,
    )


def slot_verdict(winner: Hashable | None, first: Hashable, second: Hashable, tie: Hashable | None = None) -> int | None:
    """The slot (+1, -1, 0 for a tie, None unread) of a winner given which candidate stood in which slot."""
    if winner is None:
        return None
    if winner == first:
        return 1
    if winner == second:
        return -1
    if tie is not None and winner == tie:
        return 0
    raise DataError(f"winner {winner!r} is neither {first!r} nor {second!r}")


def slot_shares(slots: Sequence[int], k: int) -> tuple[tuple[Estimate, ...], float | None]:
    """N-way: share of wins of each of ``k`` slots with Wilson's interval, and the chi-square p against 1/k."""
    count = np.bincount(np.asarray(slots, dtype=np.int64), minlength=k)
    if count.size > k or not len(slots):
        if count.size > k:
            raise DataError(f"a slot number above {k - 1}")
        return tuple(wilson(0, 0) for _ in range(k)), None
    n = int(count.sum())
    return tuple(wilson(int(c), n) for c in count), float(stats.chisquare(count)[1])


# --------------------------------------------------------------------------- verbosity


@dataclass(frozen=True, slots=True)
class Slope:
    """A regression coefficient with its standard error and p value."""

    effect: Estimate
    se: float | None
    p: float | None


def _no_slope(reason: str, n: int, method: str) -> Slope:
    return Slope(Estimate.undefined(reason, n=n, method=method), None, None)


def error_on_length(human: ArrayLike, judge: ArrayLike, length: ArrayLike, level: float = LEVEL) -> Slope:
    """OLS slope of (judge - human) on length/100 with HC3 standard errors (MacKinnon and White 1985)."""
    h, j, x = floats(human, "human"), floats(judge, "judge"), floats(length, "length")
    n = same_length(human=h, judge=j, length=x)
    if n < 4 or float(np.ptp(x)) == 0:
        return _no_slope("lengths do not vary" if n >= 4 else "fewer than 4 items", n, "ols, hc3")
    design = np.column_stack((np.ones(n), x / 100))
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ (j - h)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual = (j - h - design @ beta) / np.maximum(1 - leverage, 1e-9)
    cov = inverse @ (design.T * residual**2) @ design @ inverse
    return _wald(float(beta[1]), sqrt(float(cov[1, 1])), n, "ols, hc3", level)


def verdict_on_length(human: ArrayLike, judge: ArrayLike, length: ArrayLike, level: float = LEVEL) -> Slope:
    """Logit of a binary judge verdict on the human label and length/100: the length coefficient."""
    from robustjudge.measures.scorecal import newton_logit

    h, j, x = floats(human, "human"), floats(judge, "judge"), floats(length, "length")
    n = same_length(human=h, judge=j, length=x)
    design = np.column_stack((np.ones(n), h, x / 100))
    method = "logit, wald"
    if n < 4 or j.min() == j.max() or np.linalg.matrix_rank(design) < 3:
        return _no_slope("one class, or a covariate does not vary", n, method)
    beta = newton_logit(design, j)
    if beta is None:
        return _no_slope("the classes are separated: no finite coefficient", n, method)
    p = special.expit(design @ beta)
    cov = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))
    return _wald(float(beta[2]), sqrt(float(cov[2, 2])), n, method, level)


def _wald(value: float, se: float, n: int, method: str, level: float) -> Slope:
    if se <= 1e-12:
        return Slope(Estimate(value, None, None, n, method, "no residual variation"), None, None)
    half = z_of(level) * se
    return Slope(Estimate(value, value - half, value + half, n, method), se, 2 * float(special.ndtr(-abs(value / se))))


@dataclass(frozen=True, slots=True)
class NetPreference:
    """How much more often the judge prefers the longer answer than people do, on the same pairs."""

    effect: Estimate
    judge: Estimate
    human: Estimate
    test: McNemar


def length_preference_net(
    judge_longer: ArrayLike, human_longer: ArrayLike, clusters: Groups = None, level: float = LEVEL
) -> NetPreference:
    """P(judge prefers longer) - P(human prefers longer); 0/1 per pair, paired interval, exact McNemar."""
    j, h = floats(judge_longer, "judge"), floats(human_longer, "human")
    same_length(judge=j, human=h)
    return NetPreference(
        cluster_bootstrap(j - h, clusters, bounds=(-1.0, 1.0), level=level),
        cluster_bootstrap(j, clusters, level=level),
        cluster_bootstrap(h, clusters, level=level),
        mcnemar(int(np.sum(j > h)), int(np.sum(h > j))),
    )


@dataclass(frozen=True, slots=True)
class LengthControlled:
    """A win rate at equal length; both intervals from resampling items through the whole fit."""

    rate: Estimate
    raw: Estimate
    length_coefficient: Estimate


def length_controlled_win_rate(
    win: ArrayLike,
    length_difference: ArrayLike,
    quality: ArrayLike | None = None,
    *,
    draws: int = 500,
    seed: int = 0,
    level: float = LEVEL,
) -> LengthControlled:
    """logit P(win) ~ 1 + tanh(dlen/sd) + quality; the rate is the mean prediction at dlen = 0 (sd: n-1 form).

    Without human ``quality`` the control also removes what length earns honestly: flagged ``no_quality_covariate``.
    Undefined when wins are separated by length.
    """
    from robustjudge.measures.scorecal import newton_logit

    y, d = floats(win, "win"), floats(length_difference, "length difference")
    n = same_length(win=y, length_difference=d)
    raw = cluster_bootstrap(y, level=level)
    method = f"length-controlled logit ({draws} draws, seed {seed})"
    sd = float(d.std(ddof=1)) if n > 1 else 0.0
    if n < 10 or sd == 0 or y.min() == y.max():
        nothing = Estimate.undefined("too few items, one outcome, or no variation in length", n=n, method=method)
        return LengthControlled(nothing, raw, nothing)
    t = np.tanh(d / sd)
    columns = [np.ones(n), t]
    if quality is not None:
        q = floats(quality, "quality")
        same_length(win=y, quality=q)
        columns.append(q)
    design = np.column_stack(columns)

    def fit(rows: np.ndarray) -> tuple[float, float] | None:
        x = design[rows]
        beta = newton_logit(x, y[rows]) if 0 < y[rows].mean() < 1 else None
        if beta is None:
            return None
        level_field = x.copy()
        level_field[:, 1] = 0.0
        return float(special.expit(level_field @ beta).mean()), float(beta[1])

    point = fit(np.arange(n))
    if point is None:
        nothing = Estimate.undefined("wins are separated by length: no finite fit", n=n, method=method)
        return LengthControlled(nothing, raw, nothing)
    rng = np.random.default_rng(seed)
    found = [f for f in (fit(rng.integers(0, n, n)) for _ in range(draws)) if f is not None]
    lost = draws - len(found)
    flags = (f"{lost} of {draws} draws undefined",) if lost else ()
    if quality is None:
        flags = (*flags, "no_quality_covariate")
    tails = ((1 - level) / 2, (1 + level) / 2)
    ends: Floats = np.quantile(np.asarray(found), tails, axis=0)
    coefficient = Estimate(
        point[1], min(float(ends[0, 1]), point[1]), max(float(ends[1, 1]), point[1]), n, method, "", flags
    )
    rate = bounded(point[0], float(ends[0, 0]), float(ends[1, 0]), n, method, flags=flags)
    return LengthControlled(rate, raw, coefficient)


# --------------------------------------------------------------------------- self-preference


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """Equal-opportunity self-preference with its interval and Fisher's p."""

    effect: Estimate
    own: Estimate
    other: Estimate
    fisher_p: float | None


def equal_opportunity(own_hits: int, own_n: int, other_hits: int, other_n: int, level: float = LEVEL) -> SelfPreference:
    """P(judge picks own | human picks own) - P(judge picks other | human picks other) (Wataoka et al. 2024)."""
    fisher = None
    if own_n > 0 and other_n > 0:
        fisher = float(stats.fisher_exact([[own_hits, own_n - own_hits], [other_hits, other_n - other_hits]])[1])
    return SelfPreference(
        newcombe(own_hits, own_n, other_hits, other_n, level),
        wilson(own_hits, own_n, level),
        wilson(other_hits, other_n, level),
        fisher,
    )


def own_preference(order_a: ArrayLike, order_b: ArrayLike, clusters: Groups = None, level: float = LEVEL) -> Estimate:
    """Mean over items of the probability of the own output, averaged over both orders; .5 is none.

    Items whose two orders fall on different sides of .5 are counted in a flag.
    """
    a, b = floats(order_a, "order a"), floats(order_b, "order b")
    same_length(order_a=a, order_b=b)
    e = cluster_bootstrap((a + b) / 2, clusters, level=level)
    unsure = int(np.sum((a - 0.5) * (b - 0.5) < 0))
    return Estimate(
        e.value, e.low, e.high, e.n, e.method, e.reason, (f"{unsure} items order-ambiguous",) if unsure else ()
    )


def difference_in_differences(
    own_by_1: ArrayLike,
    own_by_2: ArrayLike,
    other_by_1: ArrayLike,
    other_by_2: ArrayLike,
    clusters: Groups = None,
    width: float | None = None,
    level: float = LEVEL,
) -> Estimate:
    """(own by J1 - own by J2) - (other by J1 - other by J2) per item: quality and leniency cancel.

    ``width`` is the scale's range; the result then lies within +-2 width.
    """
    a, b, c, d = (floats(v) for v in (own_by_1, own_by_2, other_by_1, other_by_2))
    same_length(own_by_1=a, own_by_2=b, other_by_1=c, other_by_2=d)
    span = None if width is None else (-2 * width, 2 * width)
    return cluster_bootstrap((a - b) - (c - d), clusters, bounds=span, level=level)


# --------------------------------------------------------------------------- leniency, CALM


@dataclass(frozen=True, slots=True)
class Leniency:
    """Bias index (FP - FN)/n: positive means that the judge passes more than people do."""

    index: Estimate
    test: McNemar


def leniency(c: Confusion, level: float = LEVEL) -> Leniency:
    """P(judge positive) - P(human positive) on the same items, with the exact McNemar test of FP against FN."""
    fp, fn = round(c.fp), round(c.fn)
    return Leniency(paired_table_difference(round(c.tp), fp, fn, round(c.tn), level), mcnemar(fp, fn))


@dataclass(frozen=True, slots=True)
class Calm:
    """CALM rates: RR without CR cannot be read; ``effect`` = RR - CR, bias only where it is below 0 beyond noise."""

    robustness_rate: Estimate
    consistency_rate: Estimate
    effect: Estimate
    flips_perturbed: int
    flips_repeat: int


def calm_rates(
    original: Sequence[Hashable],
    perturbed: Sequence[Hashable],
    repeated: Sequence[Hashable],
    clusters: Groups = None,
    level: float = LEVEL,
) -> Calm:
    """RR = share unchanged under the perturbation, CR = share unchanged on repeating (Ye et al. 2024)."""
    same_length(original=original, perturbed=perturbed, repeated=repeated)
    kept = np.asarray([a == b for a, b in zip(original, perturbed)], dtype=np.float64)
    again = np.asarray([a == b for a, b in zip(original, repeated)], dtype=np.float64)
    return Calm(
        cluster_bootstrap(kept, clusters, level=level),
        cluster_bootstrap(again, clusters, level=level),
        cluster_bootstrap(kept - again, clusters, bounds=(-1.0, 1.0), level=level),
        int(np.sum(kept == 0)),
        int(np.sum(again == 0)),
    )


def calm_error_rate(changed: float, base: float) -> Estimate:
    """|1 - changed/base| of two mean scores (self-enhancement, refinement); formula second-hand, hence the prefix."""
    if base == 0:
        return Estimate.undefined("base score is 0", method="calm error rate")
    return Estimate(abs(1 - changed / base), None, None, 0, "calm error rate")
