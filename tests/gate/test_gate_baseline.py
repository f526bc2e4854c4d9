"""Candidate against baseline: the two questions, what may differ, and that a p value is no gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gate_synthetic import evidence_of
from test_gate_decide import moved, quiet

from robustjudge.errors import DataError, NotComparable
from robustjudge.gate.baseline import against, check_comparable
from robustjudge.gate.check import check
from robustjudge.gate.decide import decide
from robustjudge.gate.evidence import Observed
from robustjudge.gate.policy import BaselinePolicy, Policy

REGRESSION = Policy(baseline=BaselinePolicy("regression", 0.02))


def failing(rows: list[Observed], which: range) -> list[Observed]:
    return [moved(t, 10.0, 10.0) if not t.control and int(t.case_id[1:]) in which else t for t in rows]


def outcomes(rows: list[Observed]) -> tuple[object, ...]:
    return decide(evidence_of(rows), Policy()).outcomes


def test_fifteen_points_worse_is_blocked_though_the_p_value_is_not_significant() -> None:
    rows = quiet(40)
    base, candidate = failing(rows, range(2)), failing(rows, range(2, 10))
    policy = replace(REGRESSION, minimum_n=40)
    result = against(outcomes(candidate), outcomes(base), policy)  # type: ignore[arg-type]
    assert (result.worse, result.better) == (8, 2)
    assert result.mcnemar_p == pytest.approx(0.109, abs=0.001)
    assert result.raw.value == pytest.approx(0.15)
    assert result.verdict == "fail"


def test_non_inferiority_passes_only_what_is_shown() -> None:
    rows = quiet(200)
    same = outcomes(rows)
    assert against(same, same, Policy()).verdict == "pass"  # type: ignore[arg-type]
    few = quiet(60)
    worse = failing(few, range(4))
    assert against(outcomes(worse), outcomes(few), Policy()).verdict == "inconclusive"  # type: ignore[arg-type]
    assert against(outcomes(failing(few, range(30))), outcomes(few), Policy()).verdict == "fail"  # type: ignore[arg-type]


def test_below_the_minimum_n_the_comparison_is_inconclusive() -> None:
    rows = quiet(59)
    result = against(outcomes(failing(rows, range(40))), outcomes(rows), REGRESSION)  # type: ignore[arg-type]
    assert result.verdict == "inconclusive"


def test_the_corrected_drop_is_the_raw_one_over_j() -> None:
    rows = quiet(200)
    policy = Policy(baseline=BaselinePolicy("regression", 0.02, 0.1, 0.92, 0.88))
    r = against(outcomes(failing(rows, range(16))), outcomes(rows), policy)  # type: ignore[arg-type]
    assert r.raw.value == pytest.approx(0.08)
    assert r.corrected.value == pytest.approx(0.10)
    assert "J = 0.8" in r.corrected.method


def test_other_cases_attacks_or_reader_are_not_comparable() -> None:
    rows = quiet(60)
    e = evidence_of(rows)
    assert check_comparable(e, e) == ()
    for other in (
        rows[:-2],
        [replace(t, attack="H2") if not t.control else t for t in rows],
        [replace(t, reader="2") for t in rows],
    ):
        with pytest.raises(NotComparable) as fault:
            check_comparable(evidence_of(other), e)
        assert fault.value.exit_code == 2
    edited = [replace(t, case_hash="other") if t.case_id == "c3" else t for t in rows]
    with pytest.raises(NotComparable, match="case set"):
        check_comparable(evidence_of(edited), e)


def test_a_changed_prompt_is_what_a_release_changes() -> None:
    rows = quiet(60)
    e = evidence_of(rows)
    new = replace(e, manifest={**e.manifest, "judges": {"planted": {"kind": "prompted", "template": {"name": "t2"}}}})
    assert check_comparable(new, e) == ("prompt_hash",)


def test_two_stored_runs(robust_run: Path, weak_run: Path) -> None:
    _, d = check(weak_run, REGRESSION, baseline=robust_run)
    assert d.verdict == "fail" and d.baseline is not None and d.baseline["worse"] > 0
    _, back = check(robust_run, REGRESSION, baseline=weak_run)
    assert back.verdict == "pass"


def test_a_missing_baseline_is_an_error_never_a_pass(robust_run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing can be compared"):
        check(robust_run, REGRESSION, baseline=tmp_path)
