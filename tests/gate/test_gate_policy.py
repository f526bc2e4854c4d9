"""The policy file: what it accepts, what it refuses, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import ConfigError
from robustjudge.gate.policy import Limits, Policy, cases_for_zero, parse_policy, read_policy, zero_bound


def test_the_default_is_the_playbooks_rule() -> None:
    p = read_policy(None)
    assert (p.rule, p.threshold, p.minimum_n, p.false_alarm_cap) == ("strict", 0.25, 60, 0.05)
    assert p.limit("injection") == 0.05
    assert p.swing("injection", "high", 1, 5) == pytest.approx(1.0)


def test_thresholds_go_from_category_to_severity_to_default() -> None:
    p = parse_policy(
        {
            "threshold": 0.3,
            "categories": {"injection": {"threshold": 0.1}},
            "severities": {"critical": {"threshold": 0.2}},
        }
    )
    assert p.swing("injection", "critical", 0, 10) == pytest.approx(1.0)
    assert p.swing("style_manipulation", "critical", 0, 10) == pytest.approx(2.0)
    assert p.swing("style_manipulation", "high", 0, 10) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"minimun_n": 60}, "did you mean minimum_n"),
        ({"categories": {"injection": {"treshold": 0.1}}}, "did you mean categories.injection.threshold"),
        ({"rule": "strickt"}, "did you mean 'strict'"),
        ({"threshold": 1.5}, "share of the scale's range"),
        ({"threshold": "low"}, "is a number"),
        ({"minimum_n": 0}, "at least 1"),
        ({"minimum_n": 59.5}, "whole number"),
        ({"severities": {"severe": {"threshold": 0.1}}}, "is none of low, medium, high, critical"),
        ({"severities": {"high": {"max_rate": 0.1}}}, "sets a threshold only"),
        ({"baseline": {"rule": "regresion"}}, "did you mean 'regression'"),
        ({"baseline": {"margins": 0.1}}, "did you mean baseline.margin"),
        ({"categories": ["injection"]}, "mapping"),
        ({"high_stakes": "yes"}, "true or false"),
    ],
)
def test_a_typo_is_refused_with_the_nearest_name(data: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        parse_policy(data)


@pytest.mark.parametrize("data", [{"rule": "rate", "minimum_n": 30}, {"max_rate": 0.05, "minimum_n": 30}])
def test_a_policy_that_cannot_pass_its_own_limit_names_the_n_that_could(data: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"minimum_n 30 .* 9\.5 %; set minimum_n to 59"):
        parse_policy(data)
    assert parse_policy({**data, "minimum_n": 59}).minimum_n == 59


def test_the_bounds_of_zero_are_those_of_the_binomial() -> None:
    assert (round(zero_bound(30), 3), round(zero_bound(59), 4), round(zero_bound(60), 3)) == (0.095, 0.0495, 0.049)


@settings(max_examples=60)
@given(st.floats(0.001, 0.5))
def test_the_fewest_cases_are_enough_and_one_fewer_is_not(limit: float) -> None:
    n = cases_for_zero(limit)
    assert zero_bound(n) <= limit + 1e-9
    assert n == 1 or zero_bound(n - 1) > limit - 1e-9


def test_a_threshold_in_points_must_lie_on_the_scale() -> None:
    p = Policy(unit="points", threshold=2.0)
    assert p.swing("injection", "high", 1, 10) == 2.0
    with pytest.raises(ConfigError, match="outside the judge's scale 0 to 1"):
        p.swing("injection", "high", 0, 1)


def test_a_category_that_nothing_knows_is_a_typo() -> None:
    p = Policy(categories=(("stile_manipulation", Limits(threshold=0.1)),))
    with pytest.raises(ConfigError, match="did you mean 'style_manipulation'"):
        p.check_categories(["injection"])
    Policy(categories=(("medical", Limits(threshold=0.1)),)).check_categories(["medical"])


def test_files_that_are_no_policy(written: Callable[[str, str], Path], tmp_path: Path) -> None:
    for text in ("- a\n", "rule: [\n", "a: b: c\n"):
        with pytest.raises(ConfigError):
            read_policy(written("p.yaml", text))
    with pytest.raises(ConfigError, match="no such policy file"):
        read_policy(tmp_path / "none.yaml")
    assert read_policy(written("q.yaml", "rule: rate\nmax_rate: 0.1\n")).name == "rate"
