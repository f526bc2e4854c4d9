"""The three-argument calibration: undefined instead of zero, no silent cutting, no truthiness, one ask per item."""

from __future__ import annotations

import numpy as np
import pytest

from robustjudge.errors import DataError, UndefinedEstimate
from robustjudge.nouns import Verdict
from robustjudge.profile import calibrate_judge


def test_counts_and_four_fields() -> None:
    human = [True] * 40 + [False] * 60
    judge = [True] * 36 + [False] * 4 + [True] * 6 + [False] * 54
    p = calibrate_judge(list(range(100)), human, lambda i: judge[i])
    assert (p.confusion["tp"], p.confusion["fp"], p.confusion["fn"], p.confusion["tn"]) == (36, 6, 4, 54)
    assert float(p.tpr) == pytest.approx(0.9) and float(p.fpr) == pytest.approx(0.1)
    assert float(p.prevalence) == pytest.approx(0.4) and float(p.kappa) == pytest.approx(0.793, abs=1e-3)
    for e in (p.tpr, p.fpr, p.prevalence, p.kappa):
        assert e.low is not None and e.high is not None and e.value is not None and e.low < e.value < e.high
    assert p.outcome == "inconclusive" and "agreement between people" in p.refusal


def test_no_positives_is_unknown_not_blind() -> None:
    p = calibrate_judge(["a", "b"], ["FAILURE", "FAILURE"], lambda _: "FAILURE")
    assert p.tpr.value is None and p.tpr.reason == "no_positives" and (p.tpr.low, p.tpr.high) == (0.0, 1.0)
    assert p.kappa.value is None and p.kappa.reason == "one_class"
    with pytest.raises(UndefinedEstimate, match="no_positives"):
        float(p.tpr)


def test_empty_subset_is_undefined() -> None:
    p = calibrate_judge([], [], lambda _: "SUCCESS")
    assert p.prevalence.value is None and p.coverage.value is None and p.youden_j.value is None


def test_the_grader_is_asked_once_per_item() -> None:
    asked: list[int] = []

    class Grader:
        def label(self, item: int) -> int:
            asked.append(item)
            return 1

    calibrate_judge([1, 2, 3], [1, 0, 1], Grader())
    assert asked == [1, 2, 3]


def test_the_word_failure_is_not_a_success() -> None:
    p = calibrate_judge([0, 1], ["SUCCESS", "FAILURE"], lambda _: "FAILURE")
    assert p.confusion["tp"] == 0 and p.confusion["fn"] == 1 and p.confusion["tn"] == 1


def test_unread_verdicts_are_a_third_column() -> None:
    replies = [Verdict(label="SUCCESS"), Verdict(status="refused"), None, Verdict(label="FAILURE")]
    p = calibrate_judge([0, 1, 2, 3], ["SUCCESS", "SUCCESS", "FAILURE", "FAILURE"], lambda i: replies[i])
    assert p.confusion["unread"]["refused"] == 1 and p.confusion["unread"]["unparsed"] == 1
    assert float(p.tpr) == 1.0 and float(p.rates_unread_as_error["tpr"]) == 0.5
    assert float(p.coverage) == 0.5


def test_numpy_labels_are_read_as_their_values() -> None:
    p = calibrate_judge(range(4), np.array([1, 0, 1, 0]), lambda i: np.int64(i % 2 == 0))
    assert float(p.tpr) == 1.0 and float(p.fpr) == 0.0


def test_bad_input_is_named_with_rows() -> None:
    with pytest.raises(DataError, match="3 items but 2"):
        calibrate_judge([1, 2, 3], [True, False], lambda _: True)
    with pytest.raises(DataError, match="rows 0 and 2"):
        calibrate_judge([{"id": "x"}, {"id": "y"}, {"id": "x"}], [True] * 3, lambda _: True)
    with pytest.raises(DataError, match=r"'maybe'.*row\(s\) 1"):
        calibrate_judge([1, 2], ["yes", "maybe"], lambda _: "yes", labels=("yes", "no"))
    with pytest.raises(DataError, match="judge: True not among"):
        calibrate_judge([1, 2], ["yes", "no"], lambda _: True)
    with pytest.raises(DataError, match="Declare labels"):
        calibrate_judge([1, 2], ["good", "bad"], lambda _: "good")


def test_an_inverted_judge_is_reported_not_flipped() -> None:
    human = [True] * 50 + [False] * 50
    p = calibrate_judge(list(range(100)), human, lambda i: not human[i])
    check = {c.name: c for c in p.checks}["polarity"]
    assert check.result == "fail" and "inverted" in check.detail
    assert float(p.tpr) == 0.0
