"""A/A runs at count level: edit and twin drawn from one distribution raise an alarm no more often than stated, and a
planted effect lies in its interval as often as stated.  Figures over 2,000 runs: benchmarks/bias_false_alarms.py."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from robustjudge.bias.effects import edit_effect
from robustjudge.measures.bias_effects import decide

RUNS = 200


def rows(values: Any, kind: str) -> dict[Any, dict[str, Any]]:
    """Rows that say ``values``: unit scores, or worths of pairs (0, .5, 1)."""
    letters = {0.0: "LL", 0.5: "WL", 1.0: "WW"}
    return {
        i: {
            "cluster": f"c{i}", "protocol": kind, "attacked_status": "ok", "clean_status": "ok", "clean_unit": 0.5,
            "attacked_unit": float(v), "attacked_outcomes": letters.get(float(v), ""), "clean_outcomes": "WL",
        }
        for i, v in enumerate(values)
    }  # fmt: skip


def draw(rng: np.random.Generator, kind: str, n: int, shift: float) -> Any:
    if kind == "pairwise":
        return rng.choice([0.0, 0.5, 1.0], n, p=[0.3 - shift, 0.4, 0.3 + shift])
    return np.clip(np.round(rng.normal(0.4 + shift, 0.15, n) * 9) / 9, 0, 1)


def simulate(kind: str, n: int, shift: float, runs: int, seed: int = 0) -> tuple[float, float, float]:
    """(share of p < .05, share called biased, share of intervals that hold the shift)."""
    rng = np.random.default_rng(seed)
    low_p = biased = held = 0
    for _ in range(runs):
        e = edit_effect(rows(draw(rng, kind, n, shift), kind), rows(draw(rng, kind, n, 0.0), kind), {})
        assert e.p is not None and e.effect.low is not None and e.effect.high is not None
        low_p += e.p < 0.05
        biased += decide(e.effect, (-0.1, 0.1)) == "biased"
        held += e.effect.low <= shift <= e.effect.high
    return low_p / runs, biased / runs, held / runs


@pytest.mark.parametrize("kind", ["pairwise", "pointwise"])
def test_false_alarms_stay_at_the_stated_rate(kind: str) -> None:
    low_p, biased, held = simulate(kind, 60, 0.0, RUNS)
    slack = 3 * sqrt(0.05 * 0.95 / RUNS)
    assert low_p <= 0.05 + slack and biased <= 0.025 and held >= 0.95 - slack


def test_planted_effect_is_covered() -> None:
    _, biased, held = simulate("pairwise", 60, 0.25, RUNS)
    assert held >= 0.95 - 3 * sqrt(0.05 * 0.95 / RUNS) and biased > 0.5
