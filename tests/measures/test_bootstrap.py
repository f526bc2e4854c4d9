"""The cluster bootstrap: Wilson for one row per case, sqrt(2) wider for copies, never of zero width."""

from __future__ import annotations

import time
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import DataError
from robustjudge.measures.bootstrap import cluster_bootstrap, paired_bootstrap
from robustjudge.measures.intervals import wilson


@pytest.mark.parametrize("x", [0, 1, 3, 30, 59, 60])
def test_one_row_per_case_is_wilson(x: int) -> None:
    got = cluster_bootstrap([1.0] * x + [0.0] * (60 - x))
    want = wilson(x, 60)
    assert (got.low, got.value, got.high) == pytest.approx((want.low, want.value, want.high), abs=1e-12)


@pytest.mark.parametrize("x", [0, 3, 30, 60])
def test_two_copies_of_each_row_change_nothing(x: int) -> None:
    y = np.repeat([1.0] * x + [0.0] * (60 - x), 2)
    got = cluster_bootstrap(y, np.repeat(np.arange(60), 2))
    naive = wilson(2 * x, 120)
    want = wilson(x, 60)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)
    if x == 30:
        assert (got.high - got.low) / (naive.high - naive.low) == pytest.approx(sqrt(2), rel=0.02)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("orders", [1, 2])
def test_coverage_of_a_rate(p: float, orders: int) -> None:
    covered, half = 0, 0.0
    for seed in range(300):
        y = np.random.default_rng(seed).random(60 * orders) < p
        e = cluster_bootstrap(y, np.repeat(np.arange(60), orders))
        assert e.low is not None and e.high is not None
        covered += e.low <= p <= e.high
        half += (e.high - e.low) / 600
    truth = wilson(p * 60 * orders, 60 * orders)
    assert truth.low is not None and truth.high is not None
    assert 0.92 <= covered / 300 <= 0.98
    assert half == pytest.approx((truth.high - truth.low) / 2, rel=0.15)


@pytest.mark.parametrize(("gain", "loss"), [(0.1, 0.1), (0.3, 0.05), (0.45, 0.45)])
def test_coverage_of_a_difference(gain: float, loss: float) -> None:
    covered = 0
    for seed in range(300):
        d = np.random.default_rng(seed).choice([1.0, -1.0, 0.0], 60, p=[gain, loss, 1 - gain - loss])
        e = cluster_bootstrap(d, bounds=(-1, 1))
        assert e.low is not None and e.high is not None
        covered += e.low <= gain - loss <= e.high
    assert covered / 300 >= 0.93


def test_ratio_and_general_mean_are_resampled() -> None:
    rng = np.random.default_rng(0)
    den = rng.integers(1, 5, 200).astype(float)
    num = den * 2.0 + rng.normal(size=200)
    e = cluster_bootstrap(num, weights=den, bounds=None, seed=3)
    assert e.low is not None and e.high is not None and e.value is not None
    residual = num - e.value * den
    se = sqrt(float(np.sum(residual**2))) / den.sum()
    assert (e.high - e.low) / 2 == pytest.approx(1.97 * se, rel=0.06)
    assert e == cluster_bootstrap(num, weights=den, bounds=None, seed=3)
    assert e != cluster_bootstrap(num, weights=den, bounds=None, seed=4)
    assert "2000 draws, seed 3" in e.method


def test_boundary_rule_has_width_and_stays_in_range() -> None:
    none = paired_bootstrap([0.0] * 40, [0.0] * 40)
    assert none.value == 0.0
    assert none.low == pytest.approx(-wilson(0, 40).high) and none.high == pytest.approx(wilson(0, 40).high)
    half = cluster_bootstrap([1.0, 0.0] * 40, np.repeat(np.arange(40), 2))
    assert half.low is not None and half.high is not None and half.low < 0.5 < half.high
    scores = cluster_bootstrap([3.0] * 20, bounds=None)
    assert scores.value == 3.0 and scores.low is None and scores.reason
    limited = cluster_bootstrap([3.0] * 20, bounds=(1, 10))
    assert limited.low is not None and 1 <= limited.low < 3.0
    assert "boundary rule" in limited.method


def test_statistic_of_ones_own_by_cluster() -> None:
    y = np.arange(30.0)
    e = cluster_bootstrap(y, statistic=lambda v: float(np.median(v)), bounds=None, draws=400)
    assert e.value == 14.5 and e.low is not None and e.high is not None and e.low < 14.5 < e.high
    lost = cluster_bootstrap(
        [0.0] * 28 + [1.0] * 2, statistic=lambda v: float(v[v > 0].mean()) if (v > 0).any() else float("nan"), draws=200
    )
    assert any("draws undefined" in f for f in lost.flags)


def test_bad_input_is_named() -> None:
    assert cluster_bootstrap([]).value is None
    with pytest.raises(DataError, match="row"):
        cluster_bootstrap([0.0, float("nan")])
    with pytest.raises(DataError, match="range"):
        cluster_bootstrap([0.0, -1.0])
    with pytest.raises(DataError, match="3 values"):
        cluster_bootstrap([0.0, 1.0, 1.0], ["a", "b"])
    with pytest.raises(DataError, match="second has 1"):
        paired_bootstrap([1.0, 0.0], [1.0])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=1, max_size=60), st.randoms())
def test_rates_stay_in_order_and_ignore_row_order(rows: list[tuple[int, int]], rng: object) -> None:
    e = cluster_bootstrap([float(v) for v, _ in rows], [c for _, c in rows])
    assert e.low is not None and e.high is not None and e.value is not None
    assert 0 <= e.low <= e.value <= e.high <= 1 and e.high > e.low
    turned = list(reversed(rows))
    other = cluster_bootstrap([float(v) for v, _ in turned], [f"c{c}" for _, c in turned])
    assert (e.value, e.low, e.high) == pytest.approx((other.value, other.low, other.high))


def test_fast_on_ten_thousand_clusters() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    start = time.process_time()
    cluster_bootstrap(x, np.repeat(np.arange(10_000), 2), bounds=None)
    assert time.process_time() - start < 3.0
