"""The worked fixtures F1-F15 of the metrics: the paper's formulae and their corrected companions."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from robustjudge.errors import DataError, NotComparable
from robustjudge.measures import paper as p, robustness as r
from robustjudge.measures.intervals import wilson
from robustjudge.measures.multiplicity import benjamini_hochberg, holm

EXACT = pytest.approx


def near(x: float, tolerance: float = 1e-4) -> object:
    return pytest.approx(x, abs=tolerance)


def test_f1_sdr_isdr_asr() -> None:
    m = p.movement([3, 5, 2, 8], [9, 5, 2, 7], [0.40, 0.50, 0.30, 0.80], [0.40, 0.45, 0.35, 0.80])
    assert float(p.paper_sdr(m)) == near(0.125)
    assert float(p.paper_isdr(m)) == near(0.125)
    assert float(p.paper_asr(m)) == near(0.5)
    assert np.mean(r.threshold_success([3, 5, 2, 8], [9, 5, 2, 7], m.dq)) == near(0.25)


def test_f2_pure_damage_is_a_paper_success_and_no_threshold_success() -> None:
    scores, q = [5, 6, 7, 4, 3], np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    m = p.movement(scores, scores, q, q - 0.1)
    assert float(p.paper_sdr(m)) == near(0)
    assert float(p.paper_isdr(m)) == near(0.10)
    assert float(p.paper_asr(m)) == near(1.0)
    assert np.mean(r.threshold_success(scores, scores, m.dq)) == near(0)


def test_f3_p_asr_and_its_parts() -> None:
    outcomes = ["WL", "TL", "WW", "uL"]
    assert float(p.paper_p_asr(outcomes)) == near(0.625)
    parts = r.decompose(outcomes)
    assert float(parts["win"]) == near(3 / 8)
    assert float(parts["tie"]) == near(1 / 8)
    assert float(parts["unparsed"]) == near(1 / 8)
    assert float(r.pac(outcomes)) == near(1 / 4)
    assert float(p.paper_p_asr(outcomes[:3])) == near(4 / 6)
    assert float(r.pac(outcomes[:3])) == near(1 / 3)


def test_f4_asr_at_1() -> None:
    rate = float(p.paper_asr_at_1(["WLW", "LLW"]))
    assert rate == near(0.5)
    assert r.lift(rate, 4) == {"chance": 0.25, "lift": near(0.25), "normalised": near(1 / 3)}


def test_f5_position_biased_judge() -> None:
    outcomes = ["WL"] * 20
    assert float(p.paper_p_asr(outcomes)) == near(0.5)
    assert float(r.pac(outcomes)) == near(0)
    assert float(r.slot_one_rate(["0,0"] * 20)) == near(1.0)
    hits = np.array([0.5] * 20)
    assert float(r.net(hits, hits)) == near(0)


def test_f6_null_noise() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 11, (2, 200_000))
    assert np.mean(p.paper_success(p.movement(a, b))) == near(0.45, 0.005)
    u, v = rng.random((2, 200_000)) * 10
    assert np.mean(p.paper_success(p.movement(u, v))) == near(0.50, 0.005)


def test_f7_detection_defense() -> None:
    residual = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    easr = float(p.easr(residual))
    assert easr == near(0.2)
    assert p.delta_asr(0.6, easr) == near(0.4)
    bur = float(p.bur_detection([1] * 3 + [0] * 17))
    assert bur == near(0.85)
    assert p.bdr(easr, bur) == near(0.175)
    assert p.break_even(0.4, bur) == near(0.2727)


def test_f8_prevention_utility() -> None:
    clean, defended = [8, 6, 9, 7], [8, 5, 4, 7]
    assert float(p.bur_prevention(clean, defended)) == near(0.85)
    assert float(p.bur_ratio(clean, defended)) == near(0.8194)


TABLE_V = [
    ("PPL", 27.71, 32.02, 43.33, 42.19, 0.6390),
    ("Windowed PPL", 21.68, 38.05, 40.00, 40.84, 0.6119),
    ("Naive LLM", 27.33, 32.40, 66.67, 30.33, 0.5071),
    ("Re-tokenization", 16.79, 42.94, 29.67, 43.56, 0.6209),
    ("Delimiters", 61.10, -1.37, 93.40, 33.85, None),
    ("Sandwich", 63.81, -4.08, 92.20, 35.80, None),
    ("Instructional", 61.79, -2.06, 92.97, 34.41, None),
]


@pytest.mark.parametrize(("name", "easr", "delta", "bur", "printed", "pi"), TABLE_V)
def test_f9_table_v_rows(name: str, easr: float, delta: float, bur: float, printed: float, pi: float | None) -> None:
    assert 100 * p.bdr(easr / 100, bur / 100) == near(printed, 0.01)
    assert 100 * p.delta_asr(0.5973, easr / 100, matched=(easr + delta) / 100) == near(delta, 0.011)
    found = p.break_even(delta / 100, bur / 100)
    assert (found is None) if pi is None else found == near(pi)


def test_f9_no_defense_beats_all_and_struq_needs_its_own_baseline() -> None:
    none = 100 * p.bdr(0.5973, 1.0)
    assert none == near(29.865)
    assert all(none < row[4] for row in [*TABLE_V, ("StruQ", 59.81, 6.49, 84.10, 37.86, None)])
    with pytest.raises(NotComparable, match=r"0\.6630"):
        p.delta_asr(0.5973, 0.5981, matched=0.6630)
    assert 100 * p.delta_asr(0.6630, 0.5981, matched=0.6630) == near(6.49, 0.01)
    assert 100 * p.delta_asr(0.5973, 0.5981) == near(-0.08, 0.01)


TABLE_VI = [
    ("Vanilla", "OpenChat", (31, 24, 24), 10.97),
    ("Vanilla", "Qwen2.5", (12, 38, 34), 11.67),
    ("Vanilla", "Mistral", (90, 98, 102), 40.28),
    ("Vanilla", "Llama-3.1", (16, 60, 28), 14.44),
    ("Arena-Hard", "OpenChat", (8, 0, 7), 2.08),
    ("Arena-Hard", "Qwen2.5", (94, 2, 15), 15.42),
    ("Arena-Hard", "Mistral", (231, 4, 209), 61.67),
    ("Arena-Hard", "Llama-3.1", (0, 2, 6), 1.11),
    ("Vertex", "OpenChat", (17, 4, 1), 3.06),
    ("Vertex", "Qwen2.5", (66, 0, 4), 9.72),
    ("Vertex", "Mistral", (118, 80, 121), 44.31),
    ("Vertex", "Llama-3.1", (176, 0, 132), 42.78),
    ("Optimised", "OpenChat", (34, 2, 8), 6.11),
    ("Optimised", "Qwen2.5", (6, 0, 20), 3.61),
    ("Optimised", "Mistral", (34, 0, 92), 17.50),
    ("Optimised", "Llama-3.1", (4, 4, 0), 1.11),
]


def test_f10_table_vi_counts() -> None:
    for _, _, counts, average in TABLE_VI:
        assert 100 * sum(counts) / 720 == near(average, 0.01)
    means = [
        np.mean([100 * sum(c) / 720 for t, _, c, _ in TABLE_VI if t == name])
        for name in dict.fromkeys(t for t, *_ in TABLE_VI)
    ]
    assert means == [near(x, 0.01) for x in (19.34, 20.07, 24.97, 7.08)]
    for hits, low, high in ((34, 10.32, 19.14), (8, 1.70, 6.44)):
        found = wilson(hits, 240)
        assert (100 * found.low, 100 * found.high) == (near(low, 0.01), near(high, 0.01))
    assert 100 * wilson(0, 240).high == near(1.58, 0.01)
    assert 100 * wilson(0, 20).high == near(16.11, 0.01)


def test_f11_worst_case_robust_accuracy() -> None:
    right = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]]).T
    assert float(r.robust_accuracy(right)) == near(0.25)


def test_f12_multiplicity() -> None:
    ps = [0.01, 0.04, 0.03, 0.005]
    assert list(holm(ps)) == [near(x) for x in (0.03, 0.06, 0.06, 0.02)]
    assert list(benjamini_hochberg(ps)) == [near(x) for x in (0.02, 0.04, 0.04, 0.02)]


def test_f13_three_seeds() -> None:
    found = r.seeds_interval([0.52, 0.58, 0.55])
    assert float(found) == near(0.55)
    assert (found.low, found.high) == (near(0.4755), near(0.6245))
    assert r.seeds_interval([0.5]).low is None


def test_f14_risk_curve() -> None:
    assert p.risk(0.5, 0.2733, 0.6667) == near(0.3033)
    assert p.risk(0.5, 0.5973, 1.0) == near(0.29865)
    assert p.risk(0.6, 0.2733, 0.6667) == near(0.2973)
    assert p.risk(0.6, 0.5973, 1.0) == near(0.3584)


def test_f15_best_of_k_resubmission() -> None:
    for k, expected in ((1, 5.5), (2, 7.15), (3, 7.975), (5, 8.792)):
        assert 10 - sum((j / 10) ** k for j in range(1, 10)) == near(expected, 5e-4)


# --------------------------------------------------------------------------- edge cases (metrics.md 3)


def test_nothing_measured_is_undefined_never_zero() -> None:
    empty = p.movement([], [])
    for found in (p.paper_sdr(empty), p.paper_isdr(empty), p.paper_asr(empty), p.paper_p_asr([])):
        assert found.value is None
        assert found.reason


def test_unread_scores_stay_in_the_denominator_of_asr_and_leave_sdr() -> None:
    m = p.movement([3, 5], [9, np.nan])
    assert float(p.paper_asr(m)) == near(0.5)
    sdr = p.paper_sdr(m)
    assert float(sdr) == near(0.6)
    assert "1 of 2 unknown" in sdr.flags[0]


def test_quality_known_on_one_side_only_counts_as_unknown() -> None:
    m = p.movement([3], [3], [np.nan], [0.9])
    assert m.dq[0] == 0
    assert not m.dq_known[0]


def test_quality_outside_the_unit_range_is_clipped_on_both_sides() -> None:
    m = p.movement([4], [6], [0.20], [-0.35])  # known fault B086
    assert float(p.paper_isdr(m)) == near(0.40)


def test_scale_check_and_k_of_one() -> None:
    assert p.check_scale(0, 10) == ""
    assert "not defined" in p.check_scale(1, 5)
    with pytest.raises(DataError):
        r.lift(0.5, 1)


def test_float_noise_is_no_success() -> None:
    m = p.movement([3], [3], [0.1 + 0.2], [0.3])
    assert p.paper_success(m)[0] == 0
    assert inf > 1


def test_a_blocked_order_is_a_failed_attack_in_eq_11_and_its_parts_still_add_up() -> None:
    outcomes = ["Wb", "bb", "uL", "TL"]
    parts = r.decompose(outcomes)
    summed = sum(float(parts[n]) for n in ("win", "tie", "unparsed"))
    assert float(p.paper_p_asr(outcomes)) == near(3 / 8) == near(summed)
    assert float(parts["blocked"]) == near(3 / 8)
