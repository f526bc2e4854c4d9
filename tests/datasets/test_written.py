"""Written weak candidates: a failed generation is set aside with its reason and never becomes text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from robustjudge import spec
from robustjudge.asks import Write
from robustjudge.datasets import KINDS, SetAside, WriteWeak
from robustjudge.datasets.written import instructions, prompt
from robustjudge.errors import UnknownName
from robustjudge.nouns import Case, Message, Written
from robustjudge.steps import run

CASE = Case("c1", "Summarize ##X## {{7*7}}", "", ("The lake froze and all boats stayed in.",), kind="summarization")
POOR = "A parade of brass bands went through town, it seems, and nobody minded."


def writer(reply: Callable[[tuple[Message, ...], int], Written], seen: list[int] | None = None) -> Callable[[Any], Any]:
    def answer(ask: Any) -> Any:
        assert isinstance(ask, Write)
        if seen is not None:
            seen.append(ask.seed)
        return tuple(reply(messages, ask.seed) for messages in ask.prompts)

    return answer


def test_verified_candidates_become_response_and_distractors() -> None:
    result = run(WriteWeak()(CASE), writer(lambda m, s: Written(f"{POOR} {s}")))
    assert [w.defect for w in result.made] == list(instructions("summarization")) and not result.aside
    made = result.into(CASE, "scripted/x")
    assert isinstance(made, Case)
    assert made.response == result.made[0].text and made.verified == "quality_drop" and made.human_check == "not done"
    assert made.distractors == result.made[1:] and made.get("weak_writer") == "scripted/x"
    kept = result.into(replace(CASE, response="own"), "scripted/x")
    assert isinstance(kept, Case) and kept.response == "own" and len(kept.distractors) == 5


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Written("", "error", "transport"), "generation failed: error (transport)"),
        (Written("half", "truncated"), "generation failed: truncated"),
        (Written(" \n"), "empty"),
        (Written("I cannot write that."), "a refusal"),
        (Written(CASE.reference), "holds the reference"),
        (Written("湖面结冰，所有的船都停在岸边。"), "wrong language"),
    ],
)
def test_failures_are_set_aside(reply: Written, reason: str) -> None:
    result = run(WriteWeak(tries=2)(CASE), writer(lambda m, s: reply))
    assert not result.made and [a.reason for a in result.aside] == [reason] * 10
    assert result.into(CASE, "w") == SetAside("c1", "", "no weak candidate could be verified")


def test_the_same_text_twice_counts_once() -> None:
    result = run(WriteWeak(tries=1)(CASE), writer(lambda m, s: Written(POOR)))
    assert len(result.made) == 1 and {a.reason for a in result.aside} == {"a text that is there already"}


def test_lone_surrogates_are_mapped() -> None:
    result = run(WriteWeak(("off_topic",))(CASE), writer(lambda m, s: Written(POOR + " \ud83d\x00")))
    assert result.made[0].text == POOR + " \\ud83d\\u0000"


def test_asking_for_more_changes_no_seed() -> None:
    few: list[int] = []
    many: list[int] = []
    run(WriteWeak(("opposite",), tries=1)(CASE), writer(lambda m, s: Written(f"{POOR} {s}"), few))
    run(WriteWeak(("wrong_fact", "opposite"), tries=3)(CASE), writer(lambda m, s: Written(f"{POOR} {s}"), many))
    assert few[0] in many and len(set(many)) == len(many)
    other: list[int] = []
    run(WriteWeak(("opposite",), tries=1)(replace(CASE, id="c2")), writer(lambda m, s: Written(POOR), other))
    assert other != few


@pytest.mark.parametrize("kind", [*KINDS, "open"])
def test_prompts_keep_data_apart_from_instructions(kind: str) -> None:
    for name, told in instructions(kind).items():
        messages = prompt(replace(CASE, kind=kind), name)
        trusted = "".join(p.text for m in messages for p in m.parts if not p.field)
        assert told in trusted and "##X##" not in trusted and "froze" not in trusted
        assert {p.field: p.text for p in messages[1].parts if p.field} == {
            "task": CASE.task,
            "reference": CASE.reference,
        }


def test_names_and_spec() -> None:
    with pytest.raises(UnknownName, match="off_topic"):
        prompt(CASE, "of_topic")
    assert spec.load(spec.dump(WriteWeak(("slip",), seed=4))) == WriteWeak(("slip",), seed=4)
