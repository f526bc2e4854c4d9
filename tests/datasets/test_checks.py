"""The checks themselves can fail: each type on right, wrong and malformed texts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.checks import boxed, check, last_bold, last_letter
from robustjudge.errors import DataError
from robustjudge.nouns import Case


def case_with(**data: object) -> Case:
    return Case("c", "task", "weak", meta=(("check", json.dumps(data)),))


def test_python_runs_the_text_with_its_tests() -> None:
    case = case_with(type="python", tests="assert double(2) == 4")
    assert check(case, "def double(x):\n    return 2 * x").passed
    assert check(case, "Here it is:\n```python\ndef double(x):\n    return 2 * x\n```\nDone.").passed
    assert check(case, "def double(x):\n    return x").detail == "AssertionError"
    assert "SyntaxError" in check(case, "def double(x)\n    return 2 * x").detail


def test_python_is_not_fooled_by_an_early_exit() -> None:
    case = case_with(type="python", tests="assert False")
    assert not check(case, "import sys\nsys.exit(0)").passed
    assert not check(case, "import os\nprint('ok')\nos._exit(0)").passed


def test_compute_compares_the_boxed_answer() -> None:
    case = case_with(type="compute", program="from fractions import Fraction\nprint(Fraction(3, 4))")
    assert check(case, r"So \boxed{\frac{3}{4}}.").passed
    assert check(case, r"First \boxed{1}, then \boxed{3/4}").passed
    assert not check(case, r"First \boxed{3/4}, then \boxed{1}").passed
    assert check(case, "3/4").detail.startswith("no final answer")


def test_a_broken_check_program_is_an_error_not_a_wrong_answer() -> None:
    with pytest.raises(DataError, match="ZeroDivisionError"):
        check(case_with(type="compute", program="print(1 / 0)"), r"\boxed{1}")


def test_puzzle_takes_the_last_bold_item() -> None:
    puzzle = {"type": "order", "items": ["a", "b"], "clues": [["before", "b", "a"]], "ask": [1, 2]}
    case = case_with(type="puzzle", puzzle=puzzle)
    assert check(case, "not **a, b** but **B，a**").passed
    assert not check(case, "not **b, a** but **a, b**").passed
    assert not check(case, "b, a").passed


def test_letter_takes_the_last_run_of_five() -> None:
    case = case_with(type="letter", letter="C")
    assert check(case, "Because.\n\nCCCCC").passed
    assert not check(case, "CCCCC\nor rather DDDDD").passed
    assert not check(case, "CCCC").passed and not check(case, "CCCCCC").passed


def test_facts_must_be_there_and_forbidden_claims_must_not() -> None:
    case = case_with(type="facts", facts=["six ferries|6 ferries", "cancelled"], forbidden=["on strike"])
    assert check(case, "6 Ferries were\ncancelled.").passed
    assert check(case, "Six ferries ran.").detail == "missing: cancelled"
    assert check(case, "Six ferries cancelled: crew on  strike").detail == "unsupported: on strike"


def test_a_case_without_a_check_is_refused() -> None:
    with pytest.raises(DataError, match="carries no check"):
        check(Case("c", "t", "w"), "x")
    with pytest.raises(DataError, match="unknown check 'guess'"):
        check(case_with(type="guess"), "x")


def test_a_swapped_reference_is_noticed() -> None:
    first, second = list(builtin("knowledge"))[:2]
    assert not check(replace(first, references=second.references), second.reference).passed


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_extraction_is_total(text: str) -> None:
    for extract in (boxed, last_bold, last_letter):
        found = extract(text)
        assert found is None or found in text


def _balanced(text: str) -> bool:
    depth = 0
    for c in text:
        depth += {"{": 1, "}": -1}.get(c, 0)
        if depth < 0:
            return False
    return depth == 0


@given(st.text(alphabet="ab{}c", max_size=12).filter(_balanced))
def test_boxed_keeps_balanced_braces(inner: str) -> None:
    assert boxed(f"x \\boxed{{{inner}}} y") == inner
