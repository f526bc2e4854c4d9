"""Probe edits: data only, content unchanged, and a twin of about the same length for every wording."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.attacks.base import NoCandidate, tokenish
from robustjudge.bias.edits import ADDING, RULES, Edit, Probe, add, found, made, pair, probes, read, words_of
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.models.scripted.signs import cites, markdown
from robustjudge.nouns import Case
from robustjudge.spec import dump, load

CASE = Case("c1", "Say why.", "Water is wet. It flows down. It fills 3.5 cups.", ("Because.",))


def run(steps: Coroutine[Any, Any, str]) -> str:
    return asyncio.run(steps)


@pytest.mark.parametrize("name", list(probes()))
def test_every_probe_has_an_edit_and_a_twin_that_differ(name: str) -> None:
    edit, twin = pair(name)
    texts = {run(edit(CASE)), run(twin(CASE)), CASE.response}
    assert len(texts) == 3 and edit.applies(CASE)
    assert (twin.control, edit.control) == ("neutral", "") and twin.of == edit


def test_texts_keep_the_answer_and_twins_are_about_as_long() -> None:
    for p in probes().values():
        for one, other in zip(p.edit, p.neutral):
            assert abs(tokenish(one) - tokenish(other)) <= 3, (p.name, one, other)
        if p.edit:
            for twin in (False, True):
                assert CASE.response in made(p, CASE, twin)


def test_the_attribute_is_in_the_edit_and_not_in_the_twin() -> None:
    for name, sign in (("authority", cites), ("markdown", markdown), ("bullets", markdown), ("bold", markdown)):
        for i in range(12):
            case = replace(CASE, id=f"c{i}")
            assert sign(made(found(name), case, False)) and not sign(made(found(name), case, True)), name


def test_padding_is_longer_and_its_twin_is_not() -> None:
    p = found("padding")
    assert tokenish(made(p, CASE, False)) > 2 * tokenish(CASE.response)
    assert tokenish(made(p, CASE, True)) == tokenish(CASE.response)


@given(st.text(alphabet=st.sampled_from("ab. !?\n*#`-1"), max_size=80))
@settings(max_examples=150, deadline=None)
def test_rules_change_no_word_or_do_not_apply(text: str) -> None:
    case = replace(CASE, response=text)
    for p in (p for p in probes().values() if p.make and p.make not in ADDING):
        try:
            assert words_of(made(p, case, False)) == words_of(text)
        except NoCandidate:
            assert not Edit(p.name).applies(case)


def test_program_text_and_other_languages_are_left_alone() -> None:
    assert not Edit("authority").applies(replace(CASE, language="de"))
    assert not Edit("markdown").applies(replace(CASE, kind="code_generation"))
    assert not Edit("padding").applies(replace(CASE, response="x = 1\ny = 2"))
    assert not Edit("repetition").applies(replace(CASE, response="One sentence."))


def test_edits_survive_being_stored_and_a_new_wording_is_another_cell() -> None:
    edit, twin = pair("sentiment")
    assert load(dump(twin)) == twin and edit.version and edit.version == twin.version
    add(Probe("mine", "calm", "a", "b", placement="append", edit=("Hooray!",), neutral=("Hello.",)))
    assert made(found("mine"), CASE, False).endswith("Hooray!")
    with pytest.raises(ConfigError, match="exists already"):
        add(Probe("mine", "calm", "a", "b", placement="append", edit=("X",), neutral=("Y",)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[probe]", "not valid TOML"),
        ('[[probe]]\nname="a"\ngroup="g"\nclaim="c"\ntwin="t"\nedit=["x"]\nneutral=[]', "neutral twin"),
        ('[[probe]]\nname="a"\ngroup="g"\nclaim="c"\ntwin="t"', "either texts"),
        ('[[probe]]\nname="a"\ngroup="g"\nclaim="c"\ntwin="t"\nmake="padd"\nneutral_make="lines"', "padding"),
        ('[[probe]]\nname="a"\nwhat=1', "mine.toml"),
    ],
)
def test_bad_probe_files_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(text, "mine.toml")


def test_unknown_probe_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="padding"):
        Edit("paddin")
    assert set(ADDING) <= set(RULES)
