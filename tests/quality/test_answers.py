"""Final answers of mathematics and knowledge recall: forms, equality, coverage on the real files."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.nouns import Case
from robustjudge.quality import rate
from robustjudge.quality.answers import demand, extract, options
from robustjudge.quality.exact_match import answers_equal
from robustjudge.quality.forms import normal, sameness
from robustjudge.quality.identity import identical

FIVE = (
    "Which? $\\textbf{(A) }20\\qquad\\textbf{(B)}~\\dfrac{1}{2}\\qquad\\textbf{(C)}\\ 25$ If you cannot tell, guess. "
    "Please duplicate that letter five times in a single string."
)
LISTED = "Which?\n(A) a heron\n(B) a crane\n(C) an owl\nPlease duplicate that letter five times."
BOXED = "Find it. Please put your final answer in a $\\boxed{}$."
DIGITS = "Find it. The answer is an integer consisting of exactly 3 digits, ranging from 000 to 999."


@pytest.mark.parametrize(
    ("question", "text", "answer", "fault"),
    [
        (FIVE, "Not AAAAA after all.\n\\[\nCCCCC\n\\]", "C", False),
        (FIVE, "so \\text{BBBBBB}", "B", True),
        (FIVE, "\\boxed{25} \\rightarrow CCCC", "C", True),
        (FIVE, "hence CCCCCthe end", "C", False),
        (FIVE, "B B B B B", "B", True),
        (FIVE, "\\boxed{\\textbf{(C)} 25}", "C", True),
        (FIVE, "the value is \\boxed{\\frac12}", "B", True),
        (FIVE, "the value is \\boxed{0.5}.", "B", True),
        (FIVE, "it is \\boxed{22222}", None, False),
        (FIVE, "nothing but \\boxed{7}", None, False),
        (LISTED, "The answer is (B) a crane.", "B", True),
        (LISTED, "The answer is A crane is tall.", None, False),
        (LISTED, "**(C) an owl**", "C", True),
        (LISTED, "EGGGGE", None, False),
        (BOXED, "first \\boxed{1}, then \\boxed{\\frac{1}{1+\\frac{x}{2}}}.", "\\frac{1}{1+\\frac{x}{2}}", False),
        (BOXED, "\\boxed{3} and an unclosed \\boxed{", "3", False),
        (BOXED, "The answer is 12.", "12", True),
        (BOXED, "No number at all", None, False),
        (DIGITS, "so \\(\\boxed{011}\\)", "11", False),
        (DIGITS, "\\boxed{12} was wrong.\n\n004", "4", False),
        (DIGITS, "\\boxed{1225}", "1225", True),
        ("Wie viel? ", "Das Ergebnis ist 1,234 und nicht 7.", "1234", False),
        ("多少？", "第1步，答案是 42。", "42", False),
        ("How many?", "we count 3 and 4", "4", True),
    ],
)
def test_the_final_answer_is_found_or_admitted_missing(
    question: str, text: str, answer: str | None, fault: bool
) -> None:
    found = extract(question, text)
    assert (found.text if found else None) == answer
    if found:
        assert found.format_fault is fault
        assert 0 <= found.start < found.end <= len(text)


def test_questions_say_their_form() -> None:
    assert [demand(q) for q in (FIVE, BOXED, DIGITS, "How many?")] == ["letters", "boxed", "digits", "free"]
    assert options(FIVE) == {"A": "20", "B": "\\frac{1}{2}", "C": "25"}
    assert options(LISTED) == {"A": "aheron", "B": "acrane", "C": "anowl"}
    assert options("Point (B) lies left of (A).") == {}


@pytest.mark.parametrize(
    ("a", "b", "how"),
    [
        ("\\dfrac{1}{2}", "\\frac12", "same"),
        (" 264.5 .", "264.5", "same"),
        ("007", "7", "same"),
        ("1,000", "1000", "same"),
        ("x = 5", "5", "same"),
        ("e^{x} + C", "e^{x}", "same"),
        ("\\text{Undefined}", "undefined", "same"),
        ("0.5", "\\frac{1}{2}", "value"),
        ("-\\frac{3}{4}", "-0.75", "value"),
        ("6/8", "3/4", "value"),
        ("\\frac{2}{2x+1}", "\\frac{1}{x+\\frac{1}{2}}", "identity"),
        ("5(x-\\frac{4}{5})^2-\\frac{96}{5}", "5x^2-8x-16", "identity"),
        ("4i\\sqrt{5}", "\\sqrt{-80}", "identity"),
        ("\\sin^2 x+\\cos^2 x", "1", "identity"),
        ("\\lambda^2-1", "-\\lambda^2+1", ""),
        ("5\\sec^2(5x+1)-8\\sin(7-8x)", "5\\sec^2(5x+1)+8\\sin(7-8x)", ""),
        ("540", "549", ""),
        ("1", "1/0", ""),
        ("E", "e", ""),
        ("__import__('os')", "1", ""),
    ],
)
def test_equal_answers_are_recognised(a: str, b: str, how: str) -> None:
    assert sameness(normal(a), normal(b)) == how
    assert sameness(normal(b), normal(a)) == how


def test_hostile_formulas_end_quickly() -> None:
    began = time.process_time()
    for hostile in ("9^{9^{9^{9}}}", "(" * 300 + ")" * 300, "\\frac" * 100, "x" * 5000, "{" * 200 + "1" + "}" * 200):
        assert not identical(hostile, "x+1")
        assert not identical("x+1", hostile)
    assert time.process_time() - began < 2.0


@settings(max_examples=60, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
def test_a_polynomial_equals_its_expansion_and_not_its_neighbour(a: int, b: int, c: int) -> None:
    factored = f"{c}(x+{a})(x+{b})".replace("+-", "-")
    expanded = f"{c}x^2+{c * (a + b)}x+{c * a * b}".replace("+-", "-")
    assert identical(factored, expanded)
    assert not identical(factored, expanded + "+1")


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="AB15\\boxed{}()*^ \n.-", max_size=60), st.sampled_from([FIVE, LISTED, BOXED, DIGITS, "?"]))
def test_any_text_gives_an_answer_inside_it_or_none(text: str, question: str) -> None:
    found = extract(question, text)
    assert found is None or 0 <= found.start < found.end <= len(text)
    assert answers_equal(question, text, text) is (None if found is None else True)


def rated(question: str, reference: str, text: str, kind: str = "mathematics") -> tuple[float | None, tuple[str, ...]]:
    got = rate("exact_match", Case(id="c", task=question, response="", references=(reference,), kind=kind), text)
    return got.value, got.flags


def test_exact_match_rates_and_flags() -> None:
    gold = "So \\boxed{\\frac{1}{2}}"
    assert rated(BOXED, gold, "\\boxed{\\dfrac{1}{2}}") == (1.0, ())
    assert rated(BOXED, gold, "\\boxed{0.5}") == (1.0, ("equal_by_value",))
    assert rated(BOXED, gold, "The answer is 0.5") == (1.0, ("format_fault", "equal_by_value"))
    assert rated(BOXED, gold, "\\boxed{2}") == (0.0, ())
    assert rated(BOXED, gold, "I will not say") == (None, ())
    assert rated(BOXED, "no answer here", "\\boxed{2}") == (None, ())
    assert rated(LISTED, "BBBBB", "BBBBBBB", "knowledge") == (1.0, ("format_fault",))
    assert rated("Which?\nA. one\nB. two\n", "Answer: B", "The answer is **B**.", "knowledge")[0] == 1.0


@pytest.mark.parametrize(
    ("path", "kind", "pairs", "simple_undecided", "most_undecided"),
    [
        ("math_task/livebench-math.json", "mathematics", 56, 24, 2),
        ("knowledge_task/mmlu-knowledge.json", "knowledge", 154, 25, 3),
    ],
)
def test_coverage_on_the_published_files(
    shared_data: Path, path: str, kind: str, pairs: int, simple_undecided: int, most_undecided: int
) -> None:
    rows = json.loads((shared_data / "robustjudge" / path).read_text(encoding="utf-8"))
    assert len(rows) == pairs
    equal: Counter[bool | None] = Counter()
    for row in rows:
        equal[answers_equal(row["question"], row["response_A"], row["response_B"], kind)] += 1
        better, worse = (row["response_A"], row["response_B"])[:: 1 if row["label"] == "A>B" else -1]
        case = Case(id="c", task=row["question"], response=worse, references=(better,), kind=kind)
        assert rate("exact_match", case, better).value in (1.0, None)
    print(f"{path}: undecided {equal[None]} of {pairs} pairs; equal answers {equal[True]}")
    assert equal[None] <= most_undecided < simple_undecided
