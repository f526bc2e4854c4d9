"""How many labels: sample sizes for a width, power for a difference, what these n could detect at all."""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, ceil, sqrt

from scipy import special, stats

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, z_of
from robustjudge.measures.intervals import wilson_bounds

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Size:
    """A sample size before and after rounding up; 1e-9 of slack keeps float noise from adding an item."""

    raw: float

    @property
    def n(self) -> int:
        return ceil(self.raw - 1e-9)


def _half(d: float) -> None:
    if not 0 < d < 1:
        raise DataError(f"a half-width lies in (0, 1), got {d}")


def proportion(p: float, d: float, level: float = LEVEL) -> Size:
    """Labels for a rate near ``p`` within +-``d`` (Wald planning formula)."""
    _half(d)
    return Size(z_of(level) ** 2 * p * (1 - p) / d**2)


def proportion_imperfect_judge(p: float, d: float, se: float, sp: float, level: float = LEVEL) -> Size:
    """Judge verdicts for a corrected rate within +-``d`` through error rates taken as known."""
    _half(d)
    j = se + sp - 1
    if j <= 0:
        raise DataError("the judge is not better than chance (J <= 0): no number of verdicts settles the rate")
    seen = p * se + (1 - p) * (1 - sp)
    return Size(z_of(level) ** 2 * seen * (1 - seen) / (d * j) ** 2)


def wilson_halfwidth(p: float, d: float, level: float = LEVEL) -> int:
    """Smallest n at which Wilson's half-width at ``p`` is <= ``d``."""
    _half(d)
    z = z_of(level)
    low, high = 1, 2
    while _wilson_half(p, high, z) > d:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if _wilson_half(p, middle, z) <= d:
            high = middle
        else:
            low = middle + 1
    return low


def _wilson_half(p: float, n: int, z: float) -> float:
    return z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))


def tpr_on_rare_class(tpr: float, d: float, prevalence: float, level: float = LEVEL) -> tuple[int, int]:
    """(positives, items in all) for a TPR within +-``d`` where positives have this ``prevalence``."""
    if not 0 < prevalence <= 1:
        raise DataError("the prevalence lies in (0, 1]")
    positives = proportion(tpr, d, level).n
    return positives, ceil(positives / prevalence - 1e-9)


def two_proportions(p1: float, p2: float, alpha: float = 0.05, power: float = POWER) -> tuple[float, Size]:
    """Cohen's h and the size of each of two independent groups (arcsine approximation)."""
    h = 2 * asin(sqrt(p1)) - 2 * asin(sqrt(p2))
    if h == 0:
        raise DataError("the two rates are equal: no sample size tells them apart")
    z = z_of(1 - alpha) + float(special.ndtri(power))
    return abs(h), Size(2 * (z / h) ** 2)


def detectable_difference(p: float, n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """The smallest change of a rate from ``p`` that two groups of ``n`` detect; found on the arcsine scale."""
    if n <= 0:
        return 1.0
    h = (z_of(1 - alpha) + float(special.ndtri(power))) * sqrt(2 / n)
    phi = 2 * asin(sqrt(p))
    ends = [p - float(_unarc(phi - h)), float(_unarc(phi + h)) - p]
    return max(e for e in ends if e >= 0)


def _unarc(phi: float) -> float:
    from math import pi, sin

    return sin(min(max(phi, 0.0), pi) / 2) ** 2


def mcnemar_pairs(discordant: float, difference: float, alpha: float = 0.05, power: float = POWER) -> Size:
    """Pairs to detect ``difference`` when a share ``discordant`` of pairs differ (Connor 1987)."""
    if not 0 < abs(difference) <= discordant <= 1:
        raise DataError("the difference is at most the discordant share, and neither is 0")
    za, zb = z_of(1 - alpha), float(special.ndtri(power))
    return Size((za * sqrt(discordant) + zb * sqrt(discordant - difference**2)) ** 2 / difference**2)


def paired_mean(
    omega2: float,
    delta: float,
    sigma2_a: float = 0.0,
    sigma2_b: float = 0.0,
    repeats_a: int = 1,
    repeats_b: int = 1,
    alpha: float = 0.05,
    power: float = POWER,
) -> Size:
    """Items to detect a paired mean difference ``delta``: ``omega2`` is the variance of item differences, ``sigma2``
    the variance within an item's repeats (Miller 2024, eq. 9)."""
    if delta == 0:
        raise DataError("a difference of 0 cannot be detected")
    z = z_of(1 - alpha) + float(special.ndtri(power))
    return Size(z**2 * (omega2 + sigma2_a / repeats_a + sigma2_b / repeats_b) / delta**2)


def detectable_mean(se: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Minimum detectable effect of a mean with standard error ``se``."""
    return (z_of(1 - alpha) + float(special.ndtri(power))) * se


def detectable_sign(discordant: int, n: int, alpha: float = 0.05, power: float = POWER) -> float | None:
    """Smallest |F - S|/n that the exact sign test sees with this power at ``discordant`` of ``n`` pairs; None if the
    discordant pairs cannot reach significance at all."""
    if discordant <= 0 or n <= 0:
        return None
    critical = -1
    for k in range(discordant // 2 + 1):
        if 2 * float(stats.binom.cdf(k, discordant, 0.5)) <= alpha:
            critical = k
    if critical < 0:
        return None
    low, high = 0.5, 1.0
    for _ in range(50):
        q = (low + high) / 2
        if float(stats.binom.sf(discordant - critical - 1, discordant, q)) >= power:
            high = q
        else:
            low = q
    return (2 * high - 1) * discordant / n


def exact_power(n: int, p0: float, p1: float, alpha: float = 0.05) -> tuple[int | None, float]:
    """(critical count, power) of the one-sided exact test of p >= p0 against ``p1`` < ``p0``: reject at X <= c."""
    c = int(stats.binom.ppf(alpha, n, p0))
    while c >= 0 and float(stats.binom.cdf(c, n, p0)) > alpha:
        c -= 1
    return (c, float(stats.binom.cdf(c, n, p1))) if c >= 0 else (None, 0.0)


def allocate_labels(m: int, judge_positive_rate: float, se: float, sp: float, pilot: int) -> tuple[int, int]:
    """(positives, negatives) of ``m`` labels that narrow a Rogan-Gladen rate most (Lee et al. 2025, section 4)."""
    if not 0 < judge_positive_rate < 1:
        raise DataError("the judge-positive rate lies strictly between 0 and 1")
    k = (pilot * (1 - sp) + 1) / (pilot * (1 - se) + 1)
    positives = m / (1 + (1 / judge_positive_rate - 1) * sqrt(k))
    negatives = round(m - positives)
    return m - negatives, negatives


def labels_needed(
    tpr: float, positives: int, prevalence: float, d: float, level: float = LEVEL, name: str = "TPR"
) -> str:
    """The sentence "you need k more positives (about m more items) for TPR +- d", or that the width is reached."""
    target = max(wilson_halfwidth(tpr, d, level), 30)
    low, high = wilson_bounds(tpr, positives, z_of(level)) if positives else (0.0, 1.0)
    if positives >= target:
        return f"{name} is known to +-{(high - low) / 2:.2f} already"
    more = target - positives
    about = f" (about {ceil(more / prevalence)} more items)" if prevalence > 0 else ""
    return f"you need {more} more {'positives' if name == 'TPR' else 'negatives'}{about} for {name} +-{d:g}"
