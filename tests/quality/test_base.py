"""The registry, the clip rule, unknown values, and what is true of every evaluator."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import spec
from robustjudge.errors import ConfigError, NotComparable, UnknownName
from robustjudge.nouns import Case
from robustjudge.quality import (
    Rating,
    answers,
    change,
    consistency,
    default_evaluator,
    evaluator,
    evaluator_names,
    rate,
)
from robustjudge.quality.base import rated, unknown

KINDS = {
    "translation": "chrf",
    "summarization": "rouge",
    "code_summarization": "rouge",
    "code_translation": "codebleu",
    "code_generation": "codebleu",
    "mathematics": "exact_match",
    "knowledge": "exact_match",
    "logic": "consistency",
    "open": "chrf",
    "something of the user's": "chrf",
}
LIGHT = ("chrf", "rouge", "token_bleu", "codebleu", "exact_match", "consistency")


def case(reference: str, task: str = "Say it.", kind: str = "open", **meta: str) -> Case:
    return Case(
        id="c", task=task, response="", references=(reference,) if reference else (), kind=kind,
        meta=tuple(sorted(meta.items())),
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_each_kind_has_its_default(kind: str, name: str) -> None:
    assert default_evaluator(kind) == name
    assert name in evaluator_names()


def test_unknown_evaluator_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="chrf"):
        evaluator("chfr")
    with pytest.raises(ConfigError, match="folderr"):
        evaluator("minilm", folderr="x")


def test_equal_settings_give_one_object_and_a_spec_that_round_trips() -> None:
    one = evaluator("minilm", folder="weights")
    assert one is evaluator("minilm", folder="weights")
    assert one is not evaluator("minilm", folder="other")
    for made in (one, evaluator("bleurt", checkpoint="w", python="p"), evaluator("chrf")):
        assert spec.load(spec.dump(made)) == made


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_blank_text_is_worth_exactly_zero(name: str, text: str) -> None:
    """B084: an empty line once got 1.0, and CodeBLEU gives it 0.25."""
    got = rate(name, case("one two three four"), text)
    assert (got.value, got.flags) == (0.0, ("empty",))


@pytest.mark.parametrize("name", LIGHT)
def test_without_reference_quality_is_unknown_not_zero(name: str) -> None:
    got = rate(name, case(""), "some text")
    assert got.value is None and "no reference" in got.reason


def test_b086_values_outside_the_range_are_clipped_on_both_sides() -> None:
    """B086: BLEURT 0.20 before, -0.35 after: the change is -0.20, and iSDR of 4 -> 6 is 0.40 (unclipped 0.75)."""
    before, after = rated("bleurt", 0.20), rated("bleurt", -0.35)
    assert (after.value, after.raw) == (0.0, -0.35)
    moved = change(before, after)
    assert moved.value == pytest.approx(-0.20)
    assert 0.1 * (6 - 4) - moved.value == pytest.approx(0.40)
    assert rated("bleurt", 1.004).value == 1.0
    assert math.copysign(1, rated("x", -0.0).value or 0.0) == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_unknown(value: float) -> None:
    assert rated("x", value).value is None
    assert rated("x", value).reason


def test_a_one_sided_unknown_makes_both_unknown() -> None:
    known, missing = rated("chrf", 0.9), unknown("chrf", "no answer")
    for pair in ((known, missing), (missing, known), (missing, missing)):
        moved = change(*pair)
        assert (moved.value, moved.unknown, moved.reason) == (0.0, True, "no answer")
    assert not change(known, known).unknown


def test_two_evaluators_are_never_mixed() -> None:
    with pytest.raises(NotComparable):
        change(rated("chrf", 0.5), rated("rouge", 0.5))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
@pytest.mark.parametrize("name", LIGHT)
def test_any_text_gives_a_rating_in_range_twice_the_same(name: str, reference: str, text: str) -> None:
    kind = {"exact_match": "mathematics", "consistency": "logic", "codebleu": "code_generation"}.get(name, "open")
    asked = case(reference, kind=kind)
    got = rate(name, asked, text)
    assert isinstance(got, Rating) and got == rate(name, asked, text)
    assert (got.value is None) == bool(got.reason)
    assert got.value is None or 0.0 <= got.value <= 1.0


HUGE = {
    "boxes": "\\boxed{" * 40_000 + "}" * 40_000,
    "stars": "** " * 100_000,
    "digits": "1" * 300_000,
    "blanks": "a" + " " * 300_000,
    "cues": "answer " + "-" * 300_000,
    "words": "yes, " * 60_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_hostile_text_of_300_kb_is_read_in_linear_time(text: str) -> None:
    tasks = ("\\boxed{}", "exactly 3 digits", "five times", "yes or no", "***N*** digit", "a single integer", "?")
    began = time.process_time()
    for task in tasks:
        answers.extract(task, text)
        consistency.conclusion(task, text)
    assert time.process_time() - began < 10.0


def test_lone_surrogates_are_rated_not_raised() -> None:
    assert rate("chrf", case("good text"), "good \ud800 text").value is not None


def test_importing_and_naming_loads_no_heavy_package() -> None:
    code = (
        "import sys, robustjudge.quality as q, robustjudge.quality.ladder, robustjudge.quality.minilm,"
        " robustjudge.quality.bleurt; q.evaluator('minilm'); q.default_evaluator('logic');"
        "print([m for m in ('torch','transformers','numpy','scipy','sacrebleu','nltk','codebleu') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
