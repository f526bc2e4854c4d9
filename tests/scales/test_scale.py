"""Scales: what they accept, what they ask for, and what they refuse to be."""

from __future__ import annotations

import pytest

from robustjudge import spec
from robustjudge.errors import ConfigError
from robustjudge.scales import Scale, letters, likert, read, success_failure, yes_no
from robustjudge.scales.scale import scale_from


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"low": 1},
        {"low": 5, "high": 5},
        {"low": 1, "high": float("inf")},
        {"low": 1, "high": 2, "step": 0},
        {"labels": ("a", "a")},
        {"labels": ("a", " ")},
        {"labels": ("a", "b"), "low": 1, "high": 2},
        {"labels": ("a", "b"), "tie": "c"},
        {"labels": ("a", "b"), "positive": "c"},
        {"labels": ("a", "b"), "aliases": (("x", "c"),)},
        {"labels": ("a", "b", "c"), "low": 1, "high": 2, "two_scores": True},
    ],
)
def test_contradictions_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Scale(**bad)  # type: ignore[arg-type]


def test_what_is_on_a_scale() -> None:
    ten = likert(0, 10, 0.1)
    assert [ten.number(x) for x in ("0", "10", "7.55", "-0", "10.01", "nan", "1e0", "")] == [
        *(0.0, 10.0, 7.55, 0.0),
        *(None, None, None, None),
    ]
    assert Scale(labels=("m", "M")).label("m") == "m" and not Scale(labels=("m", "M")).folds
    assert yes_no().label("YES") == "yes"


def test_labels_to_weigh() -> None:
    assert likert(1, 10).verdict_labels() == tuple(str(i) for i in range(1, 11))
    assert likert(0, 10, 0.1).verdict_labels() == tuple(str(i) for i in range(11))
    assert likert(0, 1, 0.5).verdict_labels() == ("0", "0.5", "1")
    assert letters(3, tie=True).verdict_labels() == ("A", "B", "C", "TIE")
    assert success_failure().lead == "" and yes_no().lead == "VERDICT: "
    for bad in (1, 27):
        with pytest.raises(ConfigError):
            letters(bad)


@pytest.mark.parametrize(
    "scale", [likert(1, 10), likert(0, 10, 0.1), letters(4, tie=True), yes_no(), success_failure()]
)
def test_the_line_asked_for_is_read_back_and_the_instruction_is_not(scale: Scale) -> None:
    for label in scale.verdict_labels():
        got = read(f"Some reasons.\n{scale.line(label)}" if scale.lead else f"{label}, as asked", scale)
        assert got.status == "ok"
        assert got.value == (float(label) if scale.numeric else label)
    for text in (scale.instruction(), scale.brief()):
        assert read(text, scale).status == "unparsed"


def test_specs_round_trip() -> None:
    for scale in (likert(1, 10), letters(3, True), success_failure(), Scale(labels=("x", "y"), aliases=(("1", "x"),))):
        assert spec.load(spec.dump(scale)) == scale


def test_plain_data() -> None:
    scale = scale_from({"labels": ["A", "B"], "two_scores": {"min": 1, "max": 5}})
    assert scale.two_scores and (scale.low, scale.high) == (1, 5)
    for bad in ({"mim": 1, "max": 2}, {"min": True, "max": 2}, {"min": "1", "max": 2}, {"labels": "AB"}):
        with pytest.raises(ConfigError):
            scale_from(bad)
