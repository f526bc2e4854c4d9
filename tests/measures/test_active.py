"""Labels drawn with probabilities of their own: the weighted cells, and what they must agree with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import DataError
from robustjudge.measures.active import Drawn, characteristics, correct_active, effective, excess
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.designs import begg_greenes, correct_rate


def test_equal_probabilities_are_a_random_draw() -> None:
    y, f = np.repeat([1, 0, 1, 0], [40, 10, 8, 62]), np.repeat([1, 1, 0, 0], [40, 10, 8, 62])
    d = Drawn.of(y, f, np.full(120, 0.12))
    c = effective(d)
    assert (c.tp, c.fp, c.fn, c.tn) == pytest.approx((40, 10, 8, 62))
    plain = correct_rate("srs", Confusion(40, 10, 8, 62), 370, 880)
    ours = correct_active(d, 420, 1000)
    assert ours.corrected.value == pytest.approx(plain.corrected.value)
    assert ours.corrected.low == pytest.approx(plain.corrected.low) and ours.corrected.n == 120
    bg, w = begg_greenes(Confusion(40, 10, 8, 62), 420, 580), characteristics(d, 420, 580)
    assert w.tpr.value == pytest.approx(bg.tpr.value) and w.fpr.value == pytest.approx(bg.fpr.value)


def test_doubtful_items_drawn_more_often_are_weighed_back() -> None:
    """Nine in ten labels come from the tenth of items on which the judge errs half of the time."""
    rng = np.random.default_rng(3)
    n = 40_000
    hard = rng.random(n) < 0.1
    y = rng.random(n) < 0.3
    judge = y ^ (rng.random(n) < np.where(hard, 0.5, 0.02))
    p = np.where(hard, 0.45, 0.005)
    drawn = rng.random(n) < p
    d = Drawn.of(y[drawn], judge[drawn], p[drawn])
    got = correct_active(d, int(judge.sum()), n)
    low, high = got.corrected.low, got.corrected.high
    assert low is not None and high is not None and low < 0.3 < high and high - low < 0.2
    w = characteristics(d, int(judge.sum()), n - int(judge.sum()))
    truth = judge[y].mean()
    assert w.tpr.low is not None and w.tpr.high is not None and w.tpr.low < truth < w.tpr.high
    assert judge[drawn][y[drawn]].mean() < truth - 0.2, "unweighted, the labels belittle the judge"
    assert {name for name, _ in got.others} == {"ipw ppi", "labels only, weighted"}


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.01, 1)), max_size=30),
    st.integers(0, 50),
    st.integers(0, 50),
)
@settings(max_examples=60, deadline=None)
def test_every_draw_gives_an_interval_inside_or_a_reason(
    rows: list[tuple[bool, bool, float]], yes: int, no: int
) -> None:
    d = Drawn.of([float(a) for a, _, _ in rows], [float(b) for _, b, _ in rows], [p for _, _, p in rows])
    positive = yes + sum(b for _, b, _ in rows)
    n = positive + no + sum(not b for _, b, _ in rows)
    got = correct_active(d, positive, n)
    e = got.corrected
    assert (e.value is None) == bool(got.refusal) and (e.value is not None or e.reason)
    assert e.low is not None and e.high is not None and 0 <= e.low < e.high <= 1


def test_a_share_of_all_is_not_carried_beyond_one_by_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 60))
        d = Drawn.of(np.ones(n), np.ones(n), rng.uniform(0.01, 1, n))
        c = effective(d)
        assert c.fp == 0 or 0 < c.fp < 1e-9 * c.tp


def test_impossible_probabilities_are_refused() -> None:
    with pytest.raises(DataError, match="probability 0 can never be labelled"):
        Drawn.of([1, 0], [1, 0], [0.5, 0.0])
    with pytest.raises(DataError, match="one entry per item"):
        Drawn.of([1, 0], [1, 0], [0.5])


def test_excess_tells_weights_that_do_not_fit() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, size=5000)
    drawn = p[rng.random(5000) < p]
    assert abs(excess(drawn, 5000)) < 3
    assert excess(drawn, 6000) < -4 and excess(drawn, 4000) > 4
    assert excess([1.0, 1.0], 2) == 0 and excess([1.0, 1.0], 3) == float("-inf")
