"""The optimism gap: exact points, intervals that cover, maxima taken anew, and edges that stay honest."""

from __future__ import annotations

import numpy as np
import pytest

from robustjudge.errors import DataError
from robustjudge.measures.optimism import objective_rate, optimism_gap


def test_the_objective_is_the_worst_family_or_the_worse_half() -> None:
    rates = [[1.0, 0.0, 0.5], [1.0, 0.0, 0.0]]
    assert objective_rate(rates).value == 1.0
    assert objective_rate(rates, "cvar").value == pytest.approx((1.0 + 0.25) / 2)
    assert objective_rate([]).value is None
    with pytest.raises(DataError):
        objective_rate([[1.2]])


def test_the_gap_is_test_minus_training() -> None:
    gap = optimism_gap([[0.0]] * 5 + [[1.0]] * 5, [[1.0]] * 6 + [[0.0]] * 4)
    assert gap.value == pytest.approx(0.1) and gap.low is not None and gap.high is not None
    assert gap.low < 0 < gap.high and gap.n == 20
    assert optimism_gap([], [[1.0]]).value is None


def test_no_variation_still_has_an_interval() -> None:
    gap = optimism_gap([[0.0]] * 8, [[0.0]] * 8)
    assert gap.value == 0.0 and gap.low is not None and gap.low < -0.1 and gap.high is not None and gap.high > 0.1


def test_the_interval_covers_where_there_is_no_optimism() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(150):
        train, test = (rng.binomial(1, 0.4, size=(24, 1)).astype(float) for _ in range(2))
        gap = optimism_gap(train.tolist(), test.tolist())
        covered += (gap.low or -1.0) <= 0 <= (gap.high or 1.0)
    assert covered >= 0.91 * 150
