"""The gate's bounds: exact values, coverage over seeded replications, and the regression rule against its simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from robustjudge.gate.bounds import detectable_rate, drop_bounds, exact, more_cases, rate, zero_power_rate
from robustjudge.gate.policy import BaselinePolicy, Policy
from robustjudge.gate.selftest import Release, block_rate, detectable_drop, preview, simulated
from robustjudge.measures.bootstrap import cluster_bootstrap

REGRESSION = Policy(baseline=BaselinePolicy("regression", 0.02, 0.10, 0.92, 0.88))
REPLICATIONS = 2000


def test_zero_of_sixty_is_at_most_4_9_percent() -> None:
    b = rate([0.0] * 60, range(60))
    assert b.estimate.high == pytest.approx(1 - 0.05 ** (1 / 60))
    assert f"{100 * (b.estimate.high or 0):.1f}" == "4.9"
    assert b.estimate.low == 0.0


def test_independent_cases_get_clopper_and_pearson() -> None:
    b = rate([1.0] * 3 + [0.0] * 47, range(50))
    assert b.estimate.low == pytest.approx(stats.beta.ppf(0.05, 3, 48))
    assert b.estimate.high == pytest.approx(stats.beta.ppf(0.95, 4, 47))
    assert b.p_above(0.02) == pytest.approx(stats.binom.sf(2, 50, 0.02))


def test_repeated_trials_of_a_case_are_not_counted_twice() -> None:
    once = rate([1.0] * 5 + [0.0] * 55, range(60))
    copied = rate(np.repeat([1.0] * 5 + [0.0] * 55, 4), np.repeat(np.arange(60), 4).tolist())
    assert copied.estimate.high is not None and once.estimate.high is not None
    assert copied.estimate.high >= once.estimate.high - 1e-9
    assert rate([0.0] * 240, np.repeat(np.arange(60), 4).tolist()).estimate.high == pytest.approx(1 - 0.05 ** (1 / 60))


def test_nothing_has_no_rate() -> None:
    b = rate([], [])
    assert b.value is None and b.p_above(0.05) == 1.0


@pytest.mark.parametrize("p", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("n", [60, 200])
def test_independent_bounds_cover(p: float, n: int) -> None:
    """Exact intervals may lie above 98 %; nothing lies under 93 %."""
    x = np.random.default_rng(7).binomial(n, p, REPLICATIONS)
    bounds = {int(k): exact(int(k), n, 0.95) for k in np.unique(x)}
    low = np.mean([bounds[int(k)][0] <= p for k in x])
    high = np.mean([p <= bounds[int(k)][1] for k in x])
    error = float(np.sqrt(0.95 * 0.05 / REPLICATIONS))
    print(f"n {n} p {p}: lower {low:.3f}, upper {high:.3f}, Monte-Carlo error {error:.4f}")
    assert min(low, high) >= 0.93


@pytest.mark.parametrize(("p", "rho"), [(0.05, 0.5), (0.1, 0.3), (0.1, 0.9), (0.3, 0.5)])
def test_clustered_bounds_cover(p: float, rho: float) -> None:
    """Four trials a case, beta-binomial; both one-sided bounds cover 93 % or more of 2,000 seeded runs."""
    g, m = 80, 4
    rng = np.random.default_rng(11)
    a = p * (1 - rho) / rho
    shares = rng.beta(a, (1 - p) * (1 - rho) / rho, size=(REPLICATIONS, g))
    hits = rng.binomial(m, shares)
    low = high = 0
    clusters = np.repeat(np.arange(g), m)
    for row in hits:
        failed = (np.arange(m)[None, :] < row[:, None]).astype(float).reshape(-1)
        b = rate(failed, clusters)  # type: ignore[arg-type]
        low += (b.estimate.low or 0.0) <= p
        high += p <= (b.estimate.high or 1.0)
    error = float(np.sqrt(0.95 * 0.05 / REPLICATIONS))
    print(f"p {p} rho {rho}: lower {low / REPLICATIONS:.3f}, upper {high / REPLICATIONS:.3f}, error {error:.4f}")
    assert low / REPLICATIONS >= 0.93 and high / REPLICATIONS >= 0.93


def test_more_cases_settle_what_they_promise() -> None:
    b = rate([1.0] * 1 + [0.0] * 59, range(60))
    more = more_cases(b, 0.05)
    assert more is not None and more > 0
    n = 60 + more
    assert exact(n / 60, n, 0.95)[1] <= 0.05 + 1e-9
    assert exact((n - 1) / 60, n - 1, 0.95)[1] > 0.05
    assert more_cases(rate([1.0] * 3 + [0.0] * 57, range(60)), 0.05) is None


@pytest.mark.parametrize(("losses", "gains", "n"), [(8, 2, 40), (0, 0, 60), (30, 14, 200), (5, 0, 60), (60, 0, 60)])
def test_counts_give_the_bounds_of_the_paired_rule(losses: int, gains: int, n: int) -> None:
    d = [1.0] * losses + [-1.0] * gains + [0.0] * (n - losses - gains)
    e = cluster_bootstrap(d, bounds=(-1.0, 1.0), level=0.90)
    low, high = drop_bounds(losses, gains, n)
    assert (float(low), float(high)) == pytest.approx((e.low, e.high), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "drop", "least", "most"),
    [
        (200, 0.10, 0.57, 0.65),
        (60, 0.10, 0.24, 0.32),
        (200, 0.0, 0.0, 0.03),
        (60, 0.0, 0.0, 0.03),
        (500, 0.10, 0.90, 0.96),
    ],
)
def test_the_regression_rule_blocks_as_often_as_stated(n: int, drop: float, least: float, most: float) -> None:
    """Base 90 %, sensitivity .92, specificity .88, 2,000 seeded releases; the printed power agrees with the simulation."""
    release = Release(n, 0.9, drop, 0.92, 0.88)
    share, error = simulated(release, REGRESSION, REPLICATIONS, seed=3)
    printed = block_rate(release, REGRESSION)
    print(f"n {n} drop {drop}: blocked {share:.4f} +- {error:.4f}, printed {printed:.4f}")
    assert least <= share <= most
    assert abs(share - printed) <= 3 * max(error, 0.001)


def test_pairs_are_drawn_as_the_release_says() -> None:
    """The observed cells come from true states and independent errors of the judge, drawn one by one."""
    r = Release(1, 0.9, 0.10, 0.92, 0.88)
    rng = np.random.default_rng(5)
    u = rng.random(400_000)
    base, candidate = u < r.base, u < r.base - r.drop
    fp = 1 - r.specificity
    seen = [rng.random(u.size) < np.where(t, r.sensitivity, fp) for t in (base, candidate)]
    loss, gain = r.cells()
    assert np.mean(seen[0] & ~seen[1]) == pytest.approx(loss, abs=0.003)
    assert np.mean(~seen[0] & seen[1]) == pytest.approx(gain, abs=0.003)


def test_the_preview_grows_more_powerful_with_n() -> None:
    rows = preview(REGRESSION, (60, 200))
    assert rows[0]["blocked"]["0.1"] < rows[1]["blocked"]["0.1"]
    drop = detectable_drop(Release(200, 0.9, 0.0, 0.92, 0.88), REGRESSION)
    assert drop is not None and 0.10 < drop < 0.15
    assert block_rate(Release(200, 0.9, drop, 0.92, 0.88), REGRESSION) >= 0.8


def test_what_a_gate_can_see() -> None:
    assert 1 - (1 - zero_power_rate(60)) ** 60 == pytest.approx(0.8)
    p = detectable_rate(60, 0.05)
    assert p is not None
    least = next(k for k in range(61) if exact(k, 60, 0.95)[0] > 0.05)
    assert stats.binom.sf(least - 1, 60, p) == pytest.approx(0.8)
