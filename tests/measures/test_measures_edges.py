"""Edges of the measures: undefined instead of invented, intervals in range and never of zero width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import DataError
from robustjudge.measures import (
    agreement,
    alttest,
    bias_effects,
    compare,
    confusion,
    designs,
    drift,
    intervals,
    ordinal,
    power,
    raters,
    rates,
    scorecal,
    sequential,
    transfer,
)
from robustjudge.measures.confusion import Confusion
from robustjudge.nouns import Estimate

COUNT = st.integers(0, 60)


def sound(e: Estimate, low: float = 0.0, high: float = 1.0) -> None:
    """An estimate in range with width, or undefined with a reason."""
    if e.value is None:
        assert e.reason
        return
    assert e.low is not None and e.high is not None
    assert low - 1e-12 <= e.low <= e.value <= e.high <= high + 1e-12
    assert e.high > e.low


@settings(max_examples=80, deadline=None)
@given(COUNT, COUNT, COUNT, COUNT)
def test_every_rate_is_sound(tp: int, fp: int, fn: int, tn: int) -> None:
    c = Confusion(tp, fp, fn, tn)
    found = confusion.rates(c)
    for name in ("tpr", "fnr", "tnr", "fpr", "ppv", "npv", "prevalence", "judge_positive_rate", "accuracy", "f1"):
        sound(found[name])
    sound(found["balanced_accuracy"])
    for name in ("youden_j", "mcc"):
        sound(found[name], -1.0)
    for name in ("lr_plus", "lr_minus", "dor"):
        sound(found[name], 0.0, float("inf"))
    sound(agreement.kappa(c.table), -1.0)
    sound(agreement.gwet_ac1(c.table), -1.0)
    sound(bias_effects.leniency(c).index, -1.0)


@settings(max_examples=80, deadline=None)
@given(COUNT, COUNT, COUNT, COUNT, st.integers(0, 200), st.integers(0, 200))
def test_every_correction_is_sound(tp: int, fp: int, fn: int, tn: int, yes: int, no: int) -> None:
    c = Confusion(tp, fp, fn, tn)
    sound(rates.rogan_gladen(yes, yes + no, tp, c.positives, tn, c.negatives).estimate)
    sound(rates.post_stratified(tp, fp, fn, tn, yes, yes + no))
    for e in (
        designs.begg_greenes(c, yes, no).tpr,
        designs.begg_greenes(c, yes, no).fpr,
        designs.begg_greenes(c, yes, no).prevalence,
    ):
        sound(e)
    for design in designs.DESIGNS:
        r = designs.correct_rate(design, c, yes, yes + no)
        sound(r.corrected)
        if design in ("unknown", "stratified", "active"):
            assert r.corrected.value is None and r.refusal


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_scores_are_sound(rows: list[tuple[float, bool]]) -> None:
    p, y = [v for v, _ in rows], [float(t) for _, t in rows]
    sound(scorecal.brier(y, p))
    sound(scorecal.auroc(y, p))
    fitted = scorecal.fit_isotonic(p, y)
    assert fitted is not None
    assert np.all(np.diff(fitted(sorted(p))) >= -1e-12)
    assert fitted(p).mean() == pytest.approx(np.mean(y))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=25))
def test_many_raters_are_sound(counts: list[list[int]]) -> None:
    for e in (
        raters.fleiss_kappa(counts),
        raters.fleiss_kappa(counts, "item_mean"),
        raters.krippendorff_alpha(counts),
        raters.krippendorff_alpha(counts, "ordinal"),
    ):
        if e.value is not None:
            assert e.low is not None and e.high is not None and e.low <= e.value <= e.high <= 1 and e.high > e.low
        else:
            assert e.reason
    sound(raters.gwet_ac(counts), -1.0)


def test_alpha_against_the_reference_package() -> None:
    krippendorff = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(3)
    for metric in ("nominal", "ordinal", "interval", "ratio"):
        counts = rng.integers(0, 3, (20, 4))
        counts[0] = (1, 1, 0, 0)
        want = krippendorff.alpha(value_counts=counts, level_of_measurement=metric, value_domain=[1, 2, 3, 4])
        assert float(raters.krippendorff_alpha(counts, metric)) == pytest.approx(want)  # type: ignore[arg-type]


def test_kappa_edges() -> None:
    one = agreement.kappa([[10, 0], [0, 0]])
    assert one.value is None and one.reason == "one_class"
    constant = agreement.kappa([[0, 5], [0, 95]])
    assert constant.value == 0.0 and constant.high is not None and constant.high > 0
    perfect = agreement.kappa([[30, 0], [0, 30]])
    assert perfect.value == 1.0 and perfect.high == 1.0 and perfect.low is not None and 0.8 < perfect.low < 0.95
    empty = agreement.kappa([[0, 0], [0, 0]])
    assert empty.value is None and "two raters" in empty.reason
    paradox = agreement.kappa([[90, 4], [4, 2]])
    assert float(paradox) == pytest.approx(0.2908, abs=1e-4)


def test_kappa_near_one_is_covered() -> None:
    """True kappa .98 at n = 60, where a percentile bootstrap covers half the time."""
    rng, hit = np.random.default_rng(0), 0
    p = np.array([0.495, 0.005, 0.005, 0.495])
    for _ in range(200):
        e = agreement.kappa(rng.multinomial(60, p).reshape(2, 2))
        assert e.low is not None and e.high is not None
        hit += e.low <= 0.98 <= e.high
    assert hit / 200 >= 0.95


def test_missing_ratings_are_not_a_class() -> None:
    items = [0, 1, 2] * 3
    labels = [1, 1, 2, 1, 1, None, None, 1, 2]
    counts, order = raters.count_matrix(items, labels, (1, 2))
    assert order == (0, 1, 2)
    assert float(raters.krippendorff_alpha(counts)) == pytest.approx(1.0)
    with pytest.raises(DataError, match=r"'x' not among.*row\(s\) 1"):
        raters.count_matrix([0, 1], [1, "x"], (1, 2))
    lone = raters.fleiss_kappa([[1, 0], [0, 1]])
    assert lone.value is None and lone.reason == "needs two raters on at least one item"


def test_rogan_gladen_outside_the_model() -> None:
    r = rates.rogan_gladen(90, 100, 75, 100, 80, 100)
    assert r.raw == pytest.approx(1.2727, abs=1e-4)
    assert r.estimate.value == 1.0 and r.estimate.flags == ("outside_model",)
    assert float(rates.rogan_gladen(30, 100, 80, 100, 90, 100).estimate) == pytest.approx(0.2857, abs=1e-4)


def test_ppi_guards() -> None:
    exact = rates.ppi_mean([1.0, 0.0] * 20, [1.0, 0.0] * 20, [1.0] * 30 + [0.0] * 70, lam=1.0)
    assert "wilson on labels" in exact.method
    sound(exact)
    useless = rates.ppi_mean([1.0, 0.0] * 20, [1.0] * 40, [1.0] * 100)
    assert "wilson on labels" in useless.method and float(useless) == 0.5
    weighted = rates.ipw_ppi([1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    sound(weighted)
    with pytest.raises(DataError, match="probability"):
        rates.ipw_ppi([1.0, 0.0], [1.0, 0.0], [0.0, 0.5], [1.0, 0.0])


def test_a_false_claim_of_random_labels_is_caught() -> None:
    balanced = Confusion(90, 10, 10, 90)
    r = designs.correct_rate("srs", balanced, 150, 1000)
    assert r.corrected.value is None and "Fisher" in r.refusal
    ok = designs.correct_rate("class_balanced", balanced, 260, 1000)
    assert ok.estimator == "rogan-gladen" and float(ok.corrected) == pytest.approx(0.2)
    chance = designs.correct_rate("class_balanced", Confusion(50, 50, 50, 50), 260, 1000)
    assert chance.corrected.value is None and "not better than chance" in chance.refusal


def test_stratified_and_mixture() -> None:
    wide, finite = designs.stratified_mean([100, 900], [10, 5], [50, 50])
    assert float(wide) == pytest.approx(0.1 * 0.2 + 0.9 * 0.1)
    assert finite.high is not None and wide.high is not None and finite.high < wide.high
    sound(designs.stratified_mean([100, 900], [0, 0], [50, 50])[0])
    assert designs.kish([1, 1, 2]) == pytest.approx(16 / 6)
    mixed = designs.mixture_range(intervals.wilson(10, 100), intervals.wilson(60, 100), 0.5)
    assert float(mixed) == pytest.approx(0.35)
    sound(mixed)


def test_transfer_on_rates_that_differ_agree_or_are_thin() -> None:
    a, b = Confusion(90, 10, 10, 90), Confusion(60, 10, 40, 90)
    assert transfer.transfer_test({"a": a, "b": b}).status == "does_not_transfer"
    assert transfer.transfer_test({"a": a, "b": a, "c": a}).status == "transfers"
    thin = transfer.transfer_test({"a": a, "b": Confusion(5, 1, 1, 5)})
    assert thin.status == "untested" and "80 % power" in thin.sentence
    assert transfer.transfer_test({"a": a}).status == "untested"


def test_alt_test_edges() -> None:
    items = [f"i{k}" for k in range(40)]
    same = {r: dict.fromkeys(items, "x") for r in "abc"}
    r = alttest.alt_test(same, dict.fromkeys(items, "x"))
    assert r.passed and all(x.by_sign for x in r.raters) and float(r.winning_rate) == 1.0
    few = alttest.alt_test({k: dict.fromkeys(items[:5], "x") for k in "ab"}, dict.fromkeys(items, "x"))
    assert few.passed is None and few.winning_rate.value is None and few.skipped == (("a", 5), ("b", 5))
    with pytest.raises(DataError, match="numbers"):
        alttest.alt_test(same, dict.fromkeys(items, "x"), scoring="neg_rmse")


def test_planted_biases_are_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    quality = rng.random(300) < 0.5
    lean = rng.random(300) < 0.4
    first = [1 if s or q else -1 for s, q in zip(lean, quality)]
    second = [1 if s or not q else -1 for s, q in zip(lean, quality)]
    p = bias_effects.position(first, second)
    assert p.p < 1e-6 and p.index.low is not None and p.index.low < 0.4 < (p.index.high or 0)
    assert bias_effects.decide(p.index, (-0.06, 0.06)) == "biased"
    noisy = [[str(v) for v in np.where(rng.random(400) < 0.1, 1, 0)] for _ in range(3)]
    e = bias_effects.excess_flips(*noisy)
    assert e.effect.low is not None and e.effect.high is not None and e.effect.low <= 0 <= e.effect.high
    assert bias_effects.decide(e.effect, (-0.2, 0.2)) == "bounded"
    gone = bias_effects.position([None, None], [1, -1])
    assert gone.consistency.value is None and gone.index.value is None and gone.unread == 2
    assert bias_effects.decide(gone.index, (-0.1, 0.1)) == "inconclusive"
    mixed = bias_effects.position([1, 1, 0], [0, -1, 0])
    assert (mixed.first, mixed.second, float(mixed.consistency)) == (1, 0, pytest.approx(2 / 3))


def test_unread_arms_are_counted_and_tested() -> None:
    base = ["A"] * 40
    e = bias_effects.excess_flips(base, [None] * 12 + ["A"] * 28, base)
    assert float(e.coverage) == pytest.approx(0.7) and e.drop_p < 0.001
    assert float(e.effect) == 0.0 and float(e.worst) == pytest.approx(0.3)


def test_length_controlled_rate_removes_a_pure_length_effect() -> None:
    rng = np.random.default_rng(3)
    d = rng.normal(100, 150, 600)
    win = (rng.random(600) < 1 / (1 + np.exp(-2 * np.tanh(d / d.std(ddof=1))))).astype(float)
    r = bias_effects.length_controlled_win_rate(win, d, draws=200)
    assert float(r.raw) > 0.6
    assert r.rate.low is not None and r.rate.high is not None and r.rate.low < 0.5 < r.rate.high
    assert "no_quality_covariate" in r.rate.flags and float(r.length_coefficient) == pytest.approx(2, abs=0.6)
    apart = bias_effects.length_controlled_win_rate([0.0] * 10 + [1.0] * 10, list(range(20)))
    assert apart.rate.value is None


def test_drift_edges() -> None:
    assert drift.psi([10, 0], [5, 5]).value is None
    assert drift.psi([10, 0], [5, 5], smoothing=0.5).value is not None
    d = drift.anchor_drift(["y"] * 50 + ["n"] * 50, ["y"] * 45 + ["n"] * 55, ["y"] * 30 + ["n"] * 70, "y", "n")
    assert float(d.flip_rate) == pytest.approx(0.15) and float(d.tpr_change) == pytest.approx(-0.3)
    assert d.mcnemar.exact_p < 0.001
    calm = [5, 6, 4, 5, 5, 6, 4, 5]
    worse = [*calm, 12, 14, 13, 15]
    for chart in (drift.cusum, drift.ewma, drift.e_process):
        assert chart(calm, [100] * 8, 0.05).alarm is None
        alarm = chart(worse, [100] * 12, 0.05).alarm
        assert alarm is not None and alarm >= 8
    assert "judge moved" in drift.attribute(True, True, True)
    assert "not comparable" in drift.attribute(False, False, False)


def test_e_process_false_alarms() -> None:
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(400):
        chart = drift.e_process(rng.binomial(50, 0.1, 30), [50] * 30, 0.1)
        alarms += chart.alarm is not None
    assert alarms / 400 <= 0.05


def test_sequential_sequences_hold_at_all_times() -> None:
    rng, missed = np.random.default_rng(2), 0
    for _ in range(150):
        x = rng.random(80) < 0.3
        s = np.cumsum(x)
        found = (sequential.beta_binomial(int(s[k]), k + 1) for k in range(0, 80, 4))
        missed += any(not (e.low or 0.0) <= 0.3 <= (e.high or 1.0) for e in found)
    assert missed / 150 <= 0.05


def test_power_refuses_the_impossible() -> None:
    with pytest.raises(DataError, match="J <= 0"):
        power.proportion_imperfect_judge(0.2, 0.05, 0.5, 0.5)
    with pytest.raises(DataError):
        power.two_proportions(0.5, 0.5)
    assert power.detectable_sign(0, 100) is None and power.detectable_sign(3, 100) is None
    critical, strength = power.exact_power(60, 0.9, 0.7)
    assert critical is not None and strength > 0.9
    assert "more positives" in power.labels_needed(0.9, 15, 0.05, 0.1)


def test_correlations_and_icc_edges() -> None:
    flat = ordinal.spearman([1, 2, 3, 4], [3, 3, 3, 3])
    assert flat.value is None and "constant" in flat.reason
    perfect = ordinal.spearman([1, 2, 3, 4, 5], [2, 3, 4, 5, 6])
    assert perfect.value == 1 and perfect.low is not None and perfect.low < 1
    scores = ordinal.ordinal_agreement([1, 2, 3, 4, 5], [3, 3, 3, 3, 3], (1, 2, 3, 4, 5))
    assert float(scores["qwk"]) == pytest.approx(0.0) and scores["spearman"].value is None
    with pytest.raises(DataError, match="not on the declared scale"):
        ordinal.ordinal_agreement([1, 6], [1, 2], (1, 2, 3, 4, 5))
    same = ordinal.icc([[1, 1], [2, 2], [3, 3]])
    assert float(same.icc2) == 1.0 and same.icc2.low is not None and same.icc2.low < 1
    assert ordinal.icc([[1, 1], [1, 1]]).icc2.value is None


def test_labels_are_compared_with_their_type() -> None:
    with pytest.raises(DataError, match="'2'"):
        confusion.confusion([1, 2], ["1", "2"], 1, 2)
    c = confusion.confusion([1, 2, 1], [1, None, 2], 1, 2)
    assert (c.tp, c.fn, c.unread_negative) == (1, 1, 1) and float(confusion.coverage(c)) == pytest.approx(2 / 3)


def test_tied_scores_are_pooled_before_the_isotonic_fit() -> None:
    fitted = scorecal.fit_isotonic([3, 3, 3, 3], [1, 2, 4, 5])
    assert fitted is not None and fitted([3.0])[0] == pytest.approx(3.0)
    assert scorecal.fit_logistic([0.1, 0.9], [0, 1]) is None
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-(0.5 + 0.7 * np.log(p / (1 - p)))))
    m = scorecal.fit_logistic(p, y.astype(float))
    assert m is not None and m.intercept == pytest.approx(0.5, abs=0.12) and m.slope == pytest.approx(0.7, abs=0.12)


def test_paired_difference_without_change() -> None:
    r = compare.paired_difference([0.0] * 30, bounds=(-1, 1))
    assert r.t is None and r.wilcoxon_p is None
    sound(r.mean, -1.0)
    sound(compare.miettinen_nurminen(0, 20, 0, 20), -1.0)
    sound(compare.miettinen_nurminen(20, 20, 0, 20), -1.0)
