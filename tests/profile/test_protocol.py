"""The protocol end to end: certified when it should be, and each refusal at its own step with its own words."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from robustjudge.door import digest
from robustjudge.errors import DataError, NotComparable
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.designs import correct_rate
from robustjudge.profile import Study, calibrate, diff, load_profile, page, reconcile, save_profile, verify
from robustjudge.profile.build import binary_statistics
from robustjudge.profile.compare import correct_with
from robustjudge.profile.longform import LabelRow
from robustjudge.profile.protocol import CalibrationPolicy

STUDY = Study(
    rubric="The reply carries out the request in full.",
    labels=("SUCCESS", "FAILURE"),
    judge_id="toy",
    design="srs",
    population="planted items",
    created="2026-01-01T00:00:00Z",
)


def planted(
    n: int = 400,
    tpr: float = 0.9,
    fpr: float = 0.1,
    noise: float = 0.03,
    seed: int = 1,
    unread: float = 0.0,
    raters: int = 2,
    strata: bool = False,
) -> list[LabelRow]:
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        truth = rng.random() < 0.5
        stratum = ("red", "blue")[i % 2] if strata else ""
        for r in range(raters):
            said = truth ^ (rng.random() < noise)
            label = "SUCCESS" if said else "FAILURE"
            rows.append(LabelRow(len(rows), f"i{i}", f"h{r}", "human", label, stratum=stratum))
        verdict = rng.random() < (tpr if truth else fpr)
        status = "refused" if rng.random() < unread else "ok"
        label = None if status != "ok" else "SUCCESS" if verdict else "FAILURE"
        rows.append(LabelRow(len(rows), f"i{i}", "judge:toy", "judge", label, status=status, stratum=stratum))
    return rows


def test_a_good_judge_is_certified() -> None:
    run = calibrate(planted(), STUDY)
    p = run.profile
    assert (run.outcome, run.step, run.exit_code) == ("certified", 0, 0), run.reason
    assert p.tpr.low is not None and p.tpr.high is not None and p.tpr.low < 0.9 < p.tpr.high + 0.03
    assert p.humans["raters"] == 2 and float(p.humans["agreement"]["kappa"]) > 0.8
    assert p.humans["ties"] == len(run.disagreements)
    assert p.judge_id == "toy" and p.population["design"] == "srs"


@pytest.mark.parametrize(
    ("change", "step", "outcome", "words"),
    [
        ({"rubric": "  "}, 1, "refused", "rubric is empty"),
        ({"rubric_sha256": digest("another")}, 1, "refused", "rubric changed"),
        ({"design": ""}, 2, "refused", "state the design"),
        ({"design": "stratified"}, 2, "refused", "inclusion_prob"),
        ({"design": "unknown"}, 8, "inconclusive", "this subset only"),
        ({"labels": ("SUCCESS", "NO")}, 7, "refused", "'FAILURE' (line 6), not declared"),
        ({"policy": CalibrationPolicy(half_width=0.01)}, 8, "inconclusive", "more positives"),
        ({"policy": CalibrationPolicy(tpr=0.99)}, 8, "refused", "misses the policy"),
    ],
)
def test_refusals(change: dict[str, object], step: int, outcome: str, words: str) -> None:
    run = calibrate(planted(), replace(STUDY, **change))  # type: ignore[arg-type]
    assert (run.step, run.outcome) == (step, outcome), run.reason
    assert words in run.reason


def test_weak_humans_stop_with_fix_the_rubric_first() -> None:
    run = calibrate(planted(noise=0.4), STUDY)
    assert run.step == 4 and "fix the rubric first" in run.reason
    assert run.profile.tpr.value is None and run.disagreements and run.exit_code == 1


def test_one_rater_is_refused() -> None:
    run = calibrate(planted(raters=1), STUDY)
    assert run.step == 3 and "needs two raters on at least one item" in run.reason


def test_unread_verdicts_lower_coverage() -> None:
    run = calibrate(planted(unread=0.3), STUDY)
    assert run.step == 6 and "coverage" in run.reason
    assert run.profile.confusion["unread"]["refused"] > 50 and run.profile.tpr.value is not None


def test_a_random_and_an_inverted_judge() -> None:
    chance = calibrate(planted(n=300, tpr=0.47, fpr=0.5, seed=5), STUDY)
    assert chance.outcome == "refused" and "judge_not_better_than_chance" in chance.reason
    inverted = calibrate(planted(tpr=0.1, fpr=0.9), STUDY)
    assert inverted.step == 7 and "inverted" in inverted.reason


def test_mixed_label_types_are_named_with_their_lines() -> None:
    rows = planted()
    rows[4] = replace(rows[4], label_type="number", line=77)
    run = calibrate(rows, STUDY)
    assert run.step == 7 and "1 number from line 77" in run.reason and "text from line 0" in run.reason


def test_a_transposed_table_is_named_and_a_crowd_is_not() -> None:
    turned = [replace(r, item_id=r.rater_id, rater_id=r.item_id) for r in planted(n=30) if r.rater_kind == "human"]
    run = calibrate(turned, STUDY)
    assert run.step == 3 and "30 raters labelled 2 items: items and raters look exchanged" in run.reason
    assert "kappa" not in run.profile.humans.get("agreement", {})
    crowd = [
        replace(r, rater_id=f"w{int(r.item_id[1:]) * 2 + int(r.rater_id[1:])}")
        for r in planted(n=30)
        if r.rater_kind == "human"
    ]
    assert "exchanged" not in calibrate(crowd, STUDY).reason
    judges = [replace(r, rater_id=r.item_id, item_id=r.rater_id) for r in planted(n=30, raters=0)]
    with pytest.raises(DataError, match="are item_id and rater_id exchanged"):
        calibrate(judges, STUDY)


def test_constant_raters_missing_labels_and_unread_verdicts_are_named() -> None:
    rows = [replace(r, label="SUCCESS") if r.rater_id == "h1" else r for r in planted(n=60, unread=0.2)]
    rows[0] = replace(rows[0], label=None)
    run = calibrate(rows, replace(STUDY, policy=CalibrationPolicy(human_kappa=-1)))
    named = {c.name: c.detail for c in run.profile.checks}
    assert named["constant_labels"] == "h1 says 'SUCCESS' of all 60 items"
    assert named["missing_labels"] == "1 items lack a label: items i0"
    assert run.step == 6 and "(refused)" in run.reason and "; not read: i" in run.reason


def test_a_stratum_without_labels_leaves_no_rate_of_the_whole() -> None:
    rows = [
        replace(r, label=None, status="ok") if r.stratum == "b" and r.rater_kind == "human" else r
        for r in stratified_rows()
    ]
    run = calibrate([r for r in rows if r.label is not None], replace(STUDY, design="stratified"))
    assert run.outcome == "inconclusive" and "TPR is undefined (a stratum without labels)" in run.reason
    assert run.profile.tpr.value is None and run.corrected is not None and run.corrected.corrected.value is None


def test_duplicates_are_an_error_before_any_number() -> None:
    rows = planted(n=5)
    with pytest.raises(DataError, match="lines 0 and 99"):
        calibrate([*rows, replace(rows[0], line=99)], STUDY)


def test_leaked_items_are_excluded_and_listed() -> None:
    run = calibrate(planted(), replace(STUDY, tuned_on=("i3", "i4")))
    check = {c.name: c for c in run.profile.checks}["leak"]
    assert check.result == "fail" and "i3, i4" in check.detail
    assert run.profile.humans["n_items"] == 398


def test_reconciled_labels_are_suspected() -> None:
    run = calibrate(planted(noise=0.0), STUDY)
    assert {c.name: c.result for c in run.profile.checks}["reconciled_labels"] == "fail"


def test_adjudication_overrides_but_agreement_stays_raw() -> None:
    rows = planted(n=200, noise=0.1)
    raw = calibrate(rows, STUDY)
    fixed = [LabelRow(9000 + k, d.item, "boss", "adjudicated", "SUCCESS") for k, d in enumerate(raw.disagreements)]
    run = calibrate([*rows, *fixed], STUDY)
    assert run.profile.humans["ties"] == 0 and raw.profile.humans["ties"] > 0
    assert run.profile.humans["agreement"]["kappa"] == raw.profile.humans["agreement"]["kappa"]


def test_strata_that_differ_do_not_transfer() -> None:
    red, blue = planted(300, tpr=0.95, fpr=0.05, seed=2), planted(300, tpr=0.6, fpr=0.05, seed=3)
    rows = [replace(r, stratum="red") for r in red]
    rows += [replace(r, stratum="blue", item_id=f"b{r.item_id}", line=r.line + 5000) for r in blue]
    run = calibrate(rows, STUDY)
    assert run.profile.transfer["status"] == "does_not_transfer" and "TPR" in run.profile.transfer["sentence"]
    estimate, why = correct_with(run.profile, 100, 300)
    assert estimate.value is None and "does not transfer" in why


def test_unlabelled_items_give_a_corrected_rate() -> None:
    rows = planted()
    extra = [r for r in planted(2000, seed=9) if r.rater_kind == "judge"]
    rows += [replace(r, item_id=f"u{r.item_id}", line=r.line + 9000) for r in extra]
    run = calibrate(rows, STUDY)
    assert run.corrected is not None and run.corrected.estimator == "post-stratified"
    e = run.corrected.corrected
    assert e.low is not None and e.high is not None and e.low < 0.5 < e.high


def test_a_stratified_draw_is_weighed_back() -> None:
    """Half of the labels come from one tenth of the items, nearly all of them positive: unweighted they mislead."""
    rng = random.Random(5)
    rows = []
    for i in range(1000):
        stratum, labelled = ("dense", i < 60) if i < 100 else ("thin", i < 160)
        truth = rng.random() < (0.9 if stratum == "dense" else 0.2)
        label = ("FAILURE", "SUCCESS")[truth]
        for who in ("h0", "h1") if labelled else ():
            p = 0.6 if stratum == "dense" else 60 / 900
            rows.append(LabelRow(len(rows), f"i{i}", who, "human", label, stratum=stratum, inclusion_prob=p))
        rows.append(LabelRow(len(rows), f"i{i}", "judge:toy", "judge", label, stratum=stratum))
    run = calibrate(rows, replace(STUDY, design="stratified"))
    assert run.corrected is not None and run.corrected.estimator == "stratified" and not run.corrected.refusal
    e, alone = run.corrected.corrected, run.corrected.labels_only
    assert e.low is not None and e.high is not None and alone.low is not None
    assert e.low < 0.27 < e.high < alone.low
    bare = [r for r in rows if r.stratum != "thin" or r.rater_kind == "judge"]
    refused = calibrate(bare, replace(STUDY, design="stratified")).corrected
    assert refused is not None and refused.corrected.value is None and "without labels" in refused.refusal


def test_an_active_draw_is_weighed_back_by_its_logged_probabilities() -> None:
    """Items on which the judge errs are drawn ten times as often: unweighted, it seems a coin."""
    rng = random.Random(8)
    rows = []
    for i in range(4000):
        hard, truth = rng.random() < 0.15, rng.random() < 0.3
        said = truth ^ (rng.random() < (0.5 if hard else 0.02))
        p = 0.4 if hard else 0.04
        rows.append(LabelRow(len(rows), f"i{i}", "judge:toy", "judge", ("FAILURE", "SUCCESS")[said]))
        for who in ("h0", "h1") if rng.random() < p else ():
            label = ("FAILURE", "SUCCESS")[truth]
            rows.append(LabelRow(len(rows), f"i{i}", who, "human", label, inclusion_prob=p))
    run = calibrate(rows, replace(STUDY, design="active"))
    assert run.corrected is not None and run.corrected.estimator == "weighted cells" and not run.corrected.refusal
    e, tpr = run.corrected.corrected, run.profile.tpr
    assert e.low is not None and e.high is not None and e.low < 0.3 < e.high
    assert tpr.value is not None and tpr.value > 0.85 and "inverse-probability" in tpr.method
    assert {c.name: c.result for c in run.profile.checks}["weights"] == "pass"
    half = [replace(r, inclusion_prob=r.inclusion_prob / 2) if r.inclusion_prob else r for r in rows]
    wrong = calibrate(half, replace(STUDY, design="active"))
    assert wrong.step == 2 and "the file lists 4000 items" in wrong.reason and "standard deviations" in wrong.reason


def stratified_rows(missing: int = 0, probability: float = 0.1) -> list[LabelRow]:
    """Two strata of 200 items, 40 and 20 of them drawn; the first ``missing`` of the second have no label."""
    rows = []
    for i in range(400):
        stratum, drawn, p = ("a", i < 40, 0.2) if i < 200 else ("b", i < 220, probability)
        label = "SUCCESS" if i % 2 else "FAILURE"
        for who in ("h0", "h1") if drawn else ():
            said = None if 200 <= i < 200 + missing else label
            rows.append(LabelRow(len(rows), f"i{i}", who, "human", said, stratum=stratum, inclusion_prob=p))
        rows.append(LabelRow(len(rows), f"i{i}", "judge:toy", "judge", label, stratum=stratum))
    return rows


def test_weights_that_do_not_sum_are_named_before_any_number() -> None:
    fits = calibrate(stratified_rows(), replace(STUDY, design="stratified"))
    assert {c.name: c.result for c in fits.profile.checks}["weights"] == "pass"
    wrong = calibrate(stratified_rows(probability=0.2), replace(STUDY, design="stratified"))
    assert (wrong.step, wrong.corrected) == (2, None) and wrong.profile.tpr.value is None
    assert "stratum 'b': the weights of 20 drawn items sum to 100.0, the file lists 200" in wrong.reason
    assert "items i200, i201" in wrong.reason
    unequal = calibrate(stratified_rows(), replace(STUDY, design="srs"))
    assert unequal.step == 2 and "state the real design" in unequal.reason
    blank = [replace(r, stratum="") if r.stratum == "b" and r.rater_kind == "judge" else r for r in stratified_rows()]
    loose = calibrate(
        [r for r in blank if r.item_id not in {f"i{k}" for k in range(200, 220)}], replace(STUDY, design="stratified")
    )
    assert loose.step == 2 and "items without a stratum" in loose.reason


def test_a_frame_whose_strata_are_not_told_is_summed_as_a_whole() -> None:
    """The labelling page exports the stratum of the drawn items; the judge's rows of the others carry none."""
    rows = [replace(r, stratum="") if r.rater_kind == "judge" else r for r in stratified_rows()]
    fits = calibrate(rows, replace(STUDY, design="stratified"))
    assert {c.name: c.result for c in fits.profile.checks}["weights"] == "pass" and fits.step != 2
    wrong = [replace(r, stratum="") if r.rater_kind == "judge" else r for r in stratified_rows(probability=0.2)]
    told = calibrate(wrong, replace(STUDY, design="stratified"))
    assert told.step == 2 and "all items: the weights of 60 drawn items sum to 300.0, the file lists 400" in told.reason


def test_drawn_items_without_a_label_still_stand_for_their_share() -> None:
    """Half of the labels of one stratum are missing: its weight in the rate stays."""
    run = calibrate(stratified_rows(missing=10), replace(STUDY, design="stratified"))
    assert run.corrected is not None and run.corrected.corrected.value == pytest.approx(0.5)
    rows = [replace(r, label="SUCCESS") if r.label and r.stratum == "b" else r for r in stratified_rows(missing=10)]
    lean = calibrate(rows, replace(STUDY, design="stratified")).corrected
    assert lean is not None and lean.corrected.value == pytest.approx(0.75), "(100 of 200 + 200 of 200) / 400"


def test_a_judge_not_told_from_chance_corrects_nothing() -> None:
    weak = correct_rate("class_balanced", Confusion(52, 48, 48, 52), 500, 1000)
    assert weak.corrected.value is None and "cannot be told from chance" in weak.refusal
    assert correct_rate("class_balanced", Confusion(50, 50, 50, 50), 500, 1000).refusal.startswith(
        "the judge is not better"
    )
    assert correct_rate("class_balanced", Confusion(80, 20, 20, 80), 500, 1000).corrected.value is not None
    alone = correct_rate("srs", Confusion(52, 48, 48, 52), 500, 1000)
    assert alone.corrected.value is not None and not alone.refusal


def test_the_package_round_trips_and_tampering_shows(tmp_path: Path) -> None:
    run = calibrate(planted(), STUDY)
    file = tmp_path / "profile.json"
    address = save_profile(run.profile, file)
    assert verify(file).ok, verify(file)
    again = load_profile(file)
    assert again == run.profile or again.as_dict() == run.profile.as_dict()
    assert again.as_dict()["sha256"] == address
    body = json.loads(file.read_text())
    body["tpr"]["value"] = 0.99
    file.write_text(json.dumps(body))
    failed = {c.name for c in verify(file).checks if c.result == "fail"}
    assert {"canonical", "content_address", "figures"} <= failed
    assert not verify(tmp_path / "profile.json", fingerprint={"model": "other"}).ok
    old = replace(run.profile, expires="2020-01-01T00:00:00Z")
    save_profile(old, file)
    assert {c.name for c in verify(file).checks if c.result == "fail"} == {"expiry"}
    body["tpr"] = {"value": None, "low": 0, "high": 1, "n": 0, "method": "x", "reason": None}
    file.write_text(json.dumps(body))
    assert "schema" in {c.name for c in verify(file).checks if c.result == "fail"}


def test_same_rows_same_bytes() -> None:
    one, two = calibrate(planted(), STUDY), calibrate(planted(), STUDY)
    assert one.profile.as_dict() == two.profile.as_dict()


def test_diff_and_reconcile() -> None:
    a = calibrate(planted(strata=True), STUDY).profile
    b = calibrate(planted(tpr=0.7, fpr=0.2, seed=4, strata=True), replace(STUDY, judge_version="2")).profile
    d = diff(a, b)
    assert d.tpr.difference.high is not None and d.tpr.difference.high < 0
    assert not any(name.startswith("rubric") for name, _, _ in d.changed)
    # both judges see populations with a true rate of .5
    r = reconcile(a, (500, 1000), b, (450, 1000))
    assert not r.refusal and r.difference.low is not None and r.difference.high is not None
    assert r.difference.low < 0 < r.difference.high
    assert (
        not r.note
        and "not tested by the second" in reconcile(a, (500, 1000), calibrate(planted(), STUDY).profile, (5, 10)).note
    )
    failed = calibrate(planted(strata=True), replace(STUDY, policy=CalibrationPolicy(tpr=0.99))).profile
    assert (
        failed.outcome == "refused" and "package was refused" in reconcile(a, (500, 1000), failed, (450, 1000)).refusal
    )
    told = correct_with(failed, 500, 1000, untested_ok=True)
    assert told[0].value is None and "misses the policy" in told[1]
    other = calibrate(planted(), replace(STUDY, rubric="Something else happens.")).profile
    assert "different rubrics" in reconcile(a, (5, 10), other, (5, 10)).refusal
    letters = calibrate(
        [replace(r, label=r.label and r.label[0]) for r in planted()], replace(STUDY, labels=("S", "F"))
    )
    with pytest.raises(NotComparable):
        diff(a, letters.profile)


def test_clusters_widen_the_intervals() -> None:
    rows = planted()
    grouped = [replace(r, cluster=f"c{int(r.item_id[1:]) // 8}") for r in rows]
    apart, together = calibrate(rows, STUDY).profile, calibrate(grouped, STUDY).profile
    assert together.tpr.value == apart.tpr.value and "cluster" in together.tpr.method
    # eight copies of fifty items are worth fifty items
    copied = []
    for r in planted(50):
        for k in range(8):
            name = f"{r.item_id}-{k}"
            copied.append(replace(r, item_id=name, cluster=r.item_id, line=8 * r.line + k))
    wide, narrow = calibrate(copied, STUDY).profile, calibrate([replace(r, cluster="") for r in copied], STUDY).profile
    assert wide.tpr.low is not None and narrow.tpr.low is not None and wide.tpr.low < narrow.tpr.low - 0.05


def test_rates_under_attack_stand_apart() -> None:
    rows = planted()
    attacked = [replace(r, attack="plea", label="SUCCESS", line=r.line + 9000) for r in rows if r.rater_kind == "judge"]
    p = calibrate([*attacked, *rows], STUDY).profile
    assert float(p.under_attack["plea"]["fpr"]) == 1.0 and float(p.fpr) < 0.2


def test_ordinal_scale() -> None:
    rng = random.Random(0)
    rows = []
    for i in range(200):
        level = rng.randint(1, 5)
        for who, kind, shift in (("a", "human", 0), ("b", "human", rng.random() < 0.1), ("judge:j", "judge", 1)):
            value = min(5, level + int(shift))
            rows.append(LabelRow(len(rows), f"i{i}", who, kind, str(value)))
    study = replace(STUDY, labels=("1", "2", "3", "4", "5"), positive="5", ordinal=True)
    p = calibrate(rows, study).profile
    assert p.mean_bias.value is not None and p.mean_bias.value > 0.5
    assert p.qwk.value is not None and p.qwk.value > p.kappa.value  # type: ignore[operator]
    assert len(p.confusion["matrix"]) == 5
    assert p.rates["spearman"].value is not None and p.rates["spearman"].value > 0.85
    assert p.rates["icc"].value is not None and p.rates["icc"].value < p.rates["spearman"].value, (
        "a shift lowers agreement"
    )
    assert p.rates["adjacent_agreement"].value == 1.0 and p.rates["exact_agreement"].value < 0.4  # type: ignore[operator]
    assert 0.5 < (p.rates["mae"].value or 0) < 1 and {"kendall_tau_b", "pearson", "linear_kappa"} <= set(p.rates)
    html = page(p)
    assert "Intraclass correlation" in html and "May it stand in" in html and "Against each single person" in html


def test_people_one_step_apart_agree_on_an_ordinal_scale() -> None:
    """Ten steps, each person off by one at random: plain kappa is low, and the floor is held against the weighted one."""
    rng = random.Random(3)
    rows = []
    for i in range(200):
        level = rng.randint(2, 9)
        for who in ("a", "b"):
            rows.append(LabelRow(len(rows), f"i{i}", who, "human", str(level + rng.choice((-1, 0, 1)))))
        rows.append(LabelRow(len(rows), f"i{i}", "judge:j", "judge", str(level)))
    study = replace(STUDY, labels=tuple(map(str, range(1, 11))), positive="10", ordinal=True)
    people = calibrate(rows, study).profile.humans["agreement"]
    assert people["kappa"].low < 0.4 < people["qwk"].low and people["alpha_ordinal"].value > 0.8
    assert calibrate(rows, study).step != 4 and calibrate(rows, replace(study, ordinal=False)).step == 4


def test_a_hundred_thousand_labels_run_in_seconds() -> None:
    rows = planted(n=34_000)
    start = time.process_time()
    run = calibrate(rows, STUDY)
    assert run.outcome == "certified"
    assert time.process_time() - start < 4.0


def test_statistics_of_a_hundred_thousand_labels_in_a_second() -> None:
    c = Confusion(45_000, 3_000, 4_000, 48_000)
    binary_statistics(c)
    start = time.process_time()
    binary_statistics(c)
    assert time.process_time() - start < 1.0


def xstest(data: Path, seed: int) -> Iterator[LabelRow]:
    """100 items by a seed; SUCCESS is full compliance; the string matcher is the judge."""
    with (data / "human/xstest/xstest_v2_completions_gpt4_streval.csv").open(newline="") as f:
        rows = list(csv.DictReader(f))
    chosen = random.Random(seed).sample(range(len(rows)), 100)
    for line, k in enumerate(chosen):
        r = rows[k]
        for who, kind, column in (
            ("annotation_1", "human", "annotation_1"),
            ("annotation_2", "human", "annotation_2"),
            ("final", "adjudicated", "final_label"),
            ("judge:strmatch", "judge", "strmatch_label"),
        ):
            label = "SUCCESS" if r[column] == "1_full_compliance" else "FAILURE"
            yield LabelRow(4 * line, r["id"], who, kind, label)


def test_xstest_runs_whole(shared_data: Path) -> None:
    run = calibrate(xstest(shared_data, 7), STUDY)
    p = run.profile
    assert run.outcome in ("certified", "inconclusive")
    assert p.confusion["tp"] + p.confusion["fn"] + p.confusion["fp"] + p.confusion["tn"] == 100
    assert float(p.humans["agreement"]["kappa"]) > 0.8 and float(p.youden_j) > 0.5
    if run.outcome == "inconclusive":
        assert "you need" in run.reason


def test_llmbar_stops_at_step_three(shared_data: Path) -> None:
    rows = []
    results = json.loads((shared_data / "human/llmbar/Natural/GPT-4-Vanilla-result.json").read_text())
    for i, r in enumerate(results):
        rows.append(LabelRow(2 * i, str(i), "gold", "human", str(r["label"])))
        said = r["results"][0]["swap = False"]["winner"]
        rows.append(LabelRow(2 * i + 1, str(i), "judge:gpt-4", "judge", said))
    run = calibrate(rows, replace(STUDY, labels=("1", "2")))
    assert (run.step, run.outcome) == (3, "refused") and "two raters" in run.reason
