"""The decision: planted judges through the real engine, and the rules over many made-up cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gate_runs import cases, run
from gate_synthetic import evidence_of, ok, trial

from robustjudge.gate.check import check
from robustjudge.gate.contracts import report, validate
from robustjudge.gate.decide import Decision, decide
from robustjudge.gate.evidence import Observed, Reply, evidence
from robustjudge.gate.failures import noise_of
from robustjudge.gate.policy import BaselinePolicy, Limits, Policy
from robustjudge.gate.selftest import false_alarm
from robustjudge.models.scripted import (
    BadParser,
    Constant,
    Copycat,
    Down,
    Echo,
    Gameable,
    LengthBiased,
    NoisyFlip,
    Obedient,
    Perfect,
    Refuser,
    Scripted,
    Table,
    perfect,
)
from robustjudge.protocols import Pairwise

ATTACKS = ("H1", "expert_claim", "json_injection", "repeated_list")
FAST = Policy(minimum_n=20)


def verdicts(d: Decision) -> dict[str, str]:
    return {c.category: c.verdict for c in d.categories}


@pytest.mark.parametrize(
    ("judge", "code", "failing"),
    [
        (Table(), 0, set()),
        (Obedient(judge=Table(), words=("professors",)), 1, {"style_manipulation"}),
        (Copycat(judge=Table()), 1, {"format_hacking"}),
        (LengthBiased(chars=20), 1, {"length_exploitation"}),
        (Echo(judge=Table()), 0, set()),
        (Constant(), 1, set()),
        (Down(), 4, None),
        (BadParser(judge=Table(), rate=1.0), 4, None),
    ],
    ids=["robust", "style-weak", "format-weak", "length-weak", "echoing", "constant", "down", "unreadable"],
)
def test_planted_judges(tmp_path: Path, judge: Scripted, code: int, failing: set[str] | None) -> None:
    attacks = ("H1", "expert_claim", "json_injection") if not isinstance(judge, LengthBiased) else ATTACKS[3:]
    _, d = check(run(tmp_path, judge, 26, attacks), FAST)
    assert d.exit_code == code, d.reasons
    if failing is not None:
        assert {c for c, v in verdicts(d).items() if v == "fail"} == failing
    if isinstance(judge, Constant):
        assert d.words == "fail: unscorable"


def test_a_judge_that_refuses_attacked_examples_fails_by_rule_c(tmp_path: Path) -> None:
    _, d = check(run(tmp_path, Refuser(judge=Table(), rate=1.0, only_pleas=True), 24, ("H1", "H8")), FAST)
    assert d.exit_code == 1
    assert {r for o in d.outcomes if o.failed for r in o.rules} == {"c"}


def test_half_the_data_is_incomplete(robust_run: Path) -> None:
    e = evidence(robust_run)
    half = replace(e, trials=e.trials[::2], manifest={**e.manifest, "state": "incomplete"})
    d = decide(half, FAST)
    assert (d.verdict, d.exit_code) == ("incomplete", 4)


def test_a_stored_robust_run_passes_and_prints_its_bound(robust_run: Path) -> None:
    _, d = check(robust_run)
    assert d.words == "pass"
    assert all(r.endswith("%") and "at most" in r for r in d.reasons)


# --------------------------------------------------------------------------- many cases


def quiet(n: int, attack: str = "H1", **more: str) -> list[Observed]:
    """``n`` cases that nothing moves, with their identity control."""
    rows = []
    for i in range(n):
        score = 2.0 + i % 5
        rows.append(trial(i, attack, (score, score), (ok(score), ok(score)), **more))
        rows.append(trial(i, "identity", (score, score), (ok(score), ok(score)), severity="low", control="identity"))
    return rows


def moved(t: Observed, *scores: float) -> Observed:
    return replace(t, attacked=tuple(ok(s) for s in scores))


def test_one_confirmed_failure_in_200_fails_and_one_not_reproduced_does_not() -> None:
    rows = quiet(200)
    assert decide(evidence_of(rows), Policy()).verdict == "pass"
    once = [moved(rows[0], 10.0, 2.0), *rows[1:]]
    d = decide(evidence_of(once), Policy())
    assert d.verdict == "pass" and "did not reproduce" in d.reasons[0]
    assert decide(evidence_of([moved(rows[0], 10.0, 10.0), *rows[1:]]), Policy()).verdict == "fail"


def test_without_a_fresh_repeat_a_failure_decides_nothing() -> None:
    rows = quiet(80)
    d = decide(evidence_of([moved(rows[0], 10.0), *rows[1:]]), Policy())
    assert d.verdict == "inconclusive" and "repeats: 2" in d.reasons[0]


def test_zero_of_sixty_passes_and_prints_4_9() -> None:
    d = decide(evidence_of(quiet(60)), Policy())
    assert d.reasons == ("injection: 0 of 60: at most 4.9 %",)


@pytest.mark.parametrize("rule", ["strict", "rate"])
@pytest.mark.parametrize("failing", [0, 1, 59])
def test_below_the_minimum_n_it_is_inconclusive_always(rule: str, failing: int) -> None:
    rows = quiet(59)
    bad = [moved(t, 10.0, 10.0) if not t.control and int(t.case_id[1:]) < failing else t for t in rows]
    d = decide(evidence_of(bad), Policy(rule=rule))
    assert (d.verdict, d.exit_code) == ("inconclusive", 3)
    assert "1 more cases would decide" in d.reasons[0]


def test_nothing_and_nothing_attacked_never_pass() -> None:
    assert decide(evidence_of([]), Policy()).exit_code == 3
    assert decide(evidence_of([], "incomplete"), Policy()).exit_code == 4
    controls = [t for t in quiet(80) if t.control]
    d = decide(evidence_of(controls), Policy())
    assert d.exit_code == 3 and "no attack ran" in d.reasons[0]


def test_a_required_category_that_was_not_attacked_keeps_it_open() -> None:
    d = decide(evidence_of(quiet(80)), Policy(require=("format_hacking",)))
    assert d.verdict == "inconclusive" and "no attack of it ran" in d.reasons[0]


def test_a_judge_that_passes_everything_is_unscorable() -> None:
    rows = [trial(i, "H1", (10.0, 10.0), (ok(10.0 - i % 2), ok(10.0)), severity="high") for i in range(80)]
    d = decide(evidence_of(rows), Policy())
    assert d.words == "fail: unscorable" and "passes everything" in d.reasons[0]


def test_a_few_equal_verdicts_are_no_proof_of_a_constant_judge() -> None:
    rows = [trial(i, "H1", (3.0, 3.0), (ok(3.0), ok(3.0))) for i in range(80)]
    assert decide(evidence_of(rows), Policy()).words == "fail: unscorable"
    assert decide(evidence_of(rows[:5]), Policy()).exit_code == 3
    assert decide(evidence_of(rows, "incomplete"), Policy()).exit_code == 4


def test_low_coverage_never_passes() -> None:
    rows = quiet(100)
    lost = [
        replace(t, attacked=(Reply("error", None, (), ""),)) if not t.control and int(t.case_id[1:]) < 20 else t
        for t in rows
    ]
    d = decide(evidence_of(lost), Policy())
    assert d.exit_code == 4 and "coverage 80 %" in d.reasons[0]


def test_rates_decide_on_their_bounds() -> None:
    rows = quiet(200)

    def with_failures(k: int) -> Decision:
        bad = [moved(t, 10.0, 10.0) if not t.control and int(t.case_id[1:]) < k else t for t in rows]
        return decide(evidence_of(bad), Policy(rule="rate"))

    assert with_failures(0).verdict == "pass"
    assert with_failures(4).verdict == "pass"
    mid = with_failures(6)
    assert mid.verdict == "inconclusive" and "more cases would decide" in mid.reasons[0]
    assert with_failures(30).verdict == "fail"


def test_style_and_format_are_not_excused_by_a_good_average() -> None:
    rows = quiet(200, "authority", category="style_manipulation")
    bad = [moved(rows[0], 10.0, 10.0), *rows[1:]]
    assert decide(evidence_of(bad), Policy(rule="rate")).verdict == "fail"
    rows = quiet(200)
    assert decide(evidence_of([moved(rows[0], 10.0, 10.0), *rows[1:]]), Policy(rule="rate")).verdict == "pass"


def test_a_critical_failure_fails_under_a_rate_too() -> None:
    rows = quiet(200, severity="critical")
    assert decide(evidence_of([moved(rows[0], 10.0, 10.0), *rows[1:]]), Policy(rule="rate")).verdict == "fail"


def test_a_threshold_of_a_category_changes_the_verdict_without_a_call() -> None:
    rows = [moved(t, t.clean[0].score + 2, t.clean[0].score + 2) if not t.control else t for t in quiet(80)]  # type: ignore[operator]
    assert decide(evidence_of(rows), Policy()).verdict == "pass"
    tight = Policy(categories=(("injection", Limits(threshold=0.1)),))
    assert decide(evidence_of(rows), tight).verdict == "fail"


# --------------------------------------------------------------------------- noise


def noisy(n: int, flip: float, seed: int, real: float = 0.0) -> list[Observed]:
    """Three attacks on ``n`` cases; each reading jumps to another score with chance ``flip``; a share ``real`` truly fails."""
    rng = np.random.default_rng(seed)

    def read(true: float) -> float:
        return float(rng.integers(1, 11)) if rng.random() < flip else true

    rows = []
    for i in range(n):
        true = 2.0 + i % 5
        clean = (read(true), read(true))
        for attack in ("H1", "H3", "H6"):
            hit = 10.0 if rng.random() < real else true
            rows.append(trial(i, attack, clean, (ok(read(hit)), ok(read(hit)))))
        rows.append(trial(i, "identity", clean, (ok(read(true)), ok(read(true))), severity="low", control="identity"))
    return rows


def test_retest_noise_does_not_block_an_unchanged_judge() -> None:
    """200 A/A runs, half of a steady and half of a shaky judge: blocked at most as often as the cap; flips are not 0."""
    blocked = flips = 0
    for seed in range(200):
        e = evidence_of(noisy(60, (0.01, 0.05)[seed % 2], seed))
        d = decide(e, Policy())
        blocked += d.verdict == "fail"
        flips += sum(n.moved for n in d.noise.values())
    print(f"blocked {blocked} of 200, {flips} retests differed")
    assert flips > 0
    assert blocked / 200 <= 0.05


def test_a_real_weakness_shows_through_the_noise() -> None:
    caught = sum(decide(evidence_of(noisy(80, 0.05, s, real=0.3)), Policy()).verdict == "fail" for s in range(8))
    assert caught == 8


def test_a_judge_that_draws_lots_does_not_pass() -> None:
    for seed in range(5):
        assert decide(evidence_of(noisy(80, 1.0, seed)), Policy()).verdict != "pass"


def test_noise_through_the_engine_differs_between_replicas(tmp_path: Path) -> None:
    e, d = check(run(tmp_path, NoisyFlip(judge=Table(), rate=0.2), 30, ("H1",)), replace(FAST, minimum_n=10))
    assert sum(n.moved for n in noise_of(e).values()) > 0
    assert d.verdict != "fail"


def test_a_gate_above_its_false_alarm_cap_refuses_to_decide() -> None:
    rows = quiet(80)
    worse = [replace(t, attacked=(ok(9.0), ok(9.0))) if t.control and int(t.case_id[1:]) < 8 else t for t in rows]
    fa = false_alarm(evidence_of(worse), Policy())
    assert fa.per_comparison.value == pytest.approx(0.1)
    assert fa.gate.value is not None and fa.gate.value > 0.9
    assert fa.flip_rate.value is not None and fa.flip_rate.value > 0
    assert fa.mde == pytest.approx(1 - 0.2 ** (1 / 80))


def test_without_an_identity_control_false_alarms_are_unknown() -> None:
    fa = false_alarm(evidence_of([t for t in quiet(80) if not t.control]), Policy())
    assert fa.gate.value is None and "identity" in fa.gate.reason


def test_a_judge_no_better_than_chance_is_never_compared() -> None:
    from robustjudge.gate.baseline import against

    d = decide(evidence_of(quiet(80)), Policy())
    policy = Policy(baseline=BaselinePolicy(sensitivity=0.5, specificity=0.5))
    assert against(d.outcomes, d.outcomes, policy).verdict == "fail"


# --------------------------------------------------------------------------- several candidates


@pytest.mark.parametrize(("rate", "code"), [(0.0, 0), (1.0, 1)])
def test_pairwise_verdicts_are_labels(tmp_path: Path, rate: float, code: int) -> None:
    judge = Gameable(judge=perfect(cases(24)), rate=rate)
    e, d = check(run(tmp_path, judge, 24, ("H1",), protocols=(Pairwise(),)), FAST)
    assert d.exit_code == code, d.reasons
    document = report(e, d)
    validate("contract_b", document)
    for f in document["failure_details"]:
        assert (f["expected_score"], f["actual_score"], f["delta"]) == ("reference", "response", None)


def test_a_judge_that_prefers_the_weak_response_is_unscorable(tmp_path: Path) -> None:
    upside_down = Perfect(
        table=tuple(p for c in cases(24) for p in perfect([replace(c, references=(c.response,), response="")]).table)
    )
    _, d = check(run(tmp_path, upside_down, 24, ("H1",), protocols=(Pairwise(),)), FAST)
    assert d.words == "fail: unscorable"
