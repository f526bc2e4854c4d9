"""Suites are frozen: pinned hashes, valid configurations, the user's judge, and changes that are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robustjudge.config.build import plan_of
from robustjudge.config.files import read_config
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.suite import Quoted, about, compared, config_of, quoted, shapes, suite_hash, suite_names

PINNED = {
    "paper-rq1": "b9c9c89c5ff9",
    "paper-rq1-best-of": "57eeacb73d4d",
    "paper-rq1-defenses": "19ae359429b0",
    "paper-rq1-whitebox": "4d6c5f07aec1",
    "paper-rq2": "ed50daba7c3a",
    "paper-rq2-judges": "9a3dfbef4be4",
    "paper-rq3": "45575f73b50d",
    "standard-1": "58e504d30ffd",
}
"""A suite that changes is another suite: give it a new name (standard-2), and never a new hash."""

MINE = {"judges": {"mine": {"model": "scripted/perfect"}}}


def test_the_suites_are_these_and_their_content_is_pinned() -> None:
    assert {n: suite_hash(n) for n in suite_names()} == PINNED
    assert all(about(n) and shapes(n) for n in suite_names())


@pytest.mark.parametrize("name", sorted(PINNED))
def test_every_suite_is_a_valid_plan_for_any_judge(name: str) -> None:
    settings = read_config(None, config_of(name, MINE))
    plan = plan_of(settings)
    assert next(iter(plan.cells())) is not None
    assert settings.suite == f"{name}@{suite_hash(name)}/full" and settings.name == name


@pytest.mark.parametrize("name", sorted(PINNED))
def test_without_a_judge_it_runs_on_the_embedded_model_or_says_what_is_missing(name: str) -> None:
    if name in ("standard-1", "paper-rq3"):
        with pytest.raises(ConfigError, match="needs your judge"):
            config_of(name)
        return
    settings = read_config(None, config_of(name))
    back = "hf" if name == "paper-rq1-whitebox" else "llamacpp"  # the one that knows gradients
    assert {j.model for j in settings.judges.values()} == {f"{back}/smollm2"}
    assert settings.suite.endswith("/embedded")
    assert all(j.sampling.max_tokens <= 96 for j in settings.judges.values())


def test_table_vi_crosses_every_judge_with_the_four_templates() -> None:
    own: dict[str, Any] = {"judges": {"a": {"model": "scripted/perfect", "prompt": "x {task} {response}", "scale": {}}}}
    judges = config_of("paper-rq2", own)["judges"]
    assert list(judges) == [f"a / {t}" for t in ("vanilla", "arena_hard", "google_vertex", "optimised_paper")]
    assert all("prompt" not in j and j["fence"] == "plain" for j in judges.values())
    read_config(None, config_of("paper-rq2", own))


def test_a_judge_keeps_its_own_prompt_where_prompts_are_not_compared() -> None:
    own: dict[str, Any] = {"judges": {"a": {"model": "scripted/perfect", "template": "skywork"}}}
    assert config_of("standard-1", own)["judges"]["a"] == own["judges"]["a"]


def test_published_files_are_used_where_a_root_is_given() -> None:
    assert config_of("paper-rq2", MINE, "/data")["cases"] == [{"source": "T1", "root": "/data"}]
    with pytest.raises(ConfigError, match="no published data"):
        config_of("standard-1", MINE, "/data")


def test_defenses_of_a_suite_use_the_judges_model_and_take_the_users_own_in() -> None:
    own = {**MINE, "defenses": {"perplexity": {"model": "m"}}}
    found = config_of("paper-rq1-defenses", own)["defenses"]
    assert found["llm_detector"] == {"model": "scripted/perfect"} and found["perplexity"] == {"model": "m"}


def test_a_changed_setting_is_part_of_the_name() -> None:
    frozen = read_config(None, config_of("paper-rq2", MINE)).model_dump(mode="json")
    other = {**frozen, "attacks": ["H1"], "max_calls": 3}
    assert compared(frozen, frozen) == () and compared(frozen, other) == ("attacks",)
    name = quoted(frozen["suite"], ("attacks", "cases"))
    assert Quoted.of(name) == Quoted("paper-rq2", suite_hash("paper-rq2"), "full", ("attacks", "cases"))
    assert Quoted.of("") is None


def test_an_unknown_suite_names_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="paper-rq2"):
        config_of("paper-rq22", MINE)


def test_the_files_hold_no_path_of_a_machine() -> None:
    from importlib.resources import files

    for file in files("robustjudge.suites").iterdir():
        if file.name.endswith((".yaml", ".toml")):
            assert "/work" not in file.read_text("utf-8") and str(Path.home()) not in file.read_text("utf-8")
