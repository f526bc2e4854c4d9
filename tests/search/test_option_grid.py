"""The typed grid: published sizes, legal prompts, TOML that reads back, and refusals before any call."""

from __future__ import annotations

import tomllib
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import TemplateError, UnknownName
from robustjudge.nouns import Slate
from robustjudge.prompts.library import LINEAGES, source, template
from robustjudge.prompts.render import render
from robustjudge.scales import letters, read
from robustjudge.search import Grid
from robustjudge.search.toml import to_toml

STARTS = (*LINEAGES, "optimised_paper", "robustjudge")


@pytest.mark.parametrize("name", STARTS)
def test_every_shipped_prompt_can_be_started_from(name: str) -> None:
    quick, reference = (Grid.of(source(name), f"{name}.toml", size) for size in ("quick", "reference"))
    assert (quick.sizes, quick.size) == ((2, 3, 2, 2, 2, 2), 96)
    assert (reference.sizes, sum(reference.sizes), reference.size) == ((6, 9, 2, 5, 2, 8), 32, 8640)
    for protocol in ("pointwise", "pairwise", "best_of"):
        reference.check(protocol)
    assert reference.template(reference.start) == template(name)
    assert len(list(quick.configs())) == 96 == len(set(quick.configs()))


def test_a_prompt_of_the_grid_reads_back_as_itself() -> None:
    grid = Grid.of(source("arena_hard"), "arena_hard", "reference")
    rng = Random(0)
    for _ in range(40):
        config = tuple(rng.randrange(n) for n in grid.sizes)
        assert tomllib.loads(grid.toml(config)) == grid.data(config)
        form = grid.template(config).pairwise
        assert form is not None
        parts = {p.code for m in form.messages for p in m.parts if p.code}
        assert parts == {c.code for c, i in zip(grid.components, config) if c.options[i].text("pairwise")}


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=40), max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_text_survives_the_file(data: dict[str, str]) -> None:
    assert tomllib.loads(to_toml({"name": "x", "parts": data})) == {"name": "x", "parts": data}


def test_verdicts_in_the_forms_that_options_ask_for_are_read() -> None:
    for said in ("[[B]]", '{"verdict": "B"}', "Winner: B", "VERDICT: B"):
        assert read(f"Because of its facts.\n{said}", letters(2)).value == "B"
    grid = Grid.of(source("vanilla"), "vanilla", "reference")
    owns = [o for o in grid.components[5].options if o.own]
    assert {o.name for o in owns} == {"brackets", "json", "score line"}


def test_the_scale_adds_no_second_verdict_line_to_an_option_that_words_its_own() -> None:
    grid = Grid.of(source("vanilla"), "vanilla", "reference")
    rf = next(i for i, o in enumerate(grid.components[5].options) if o.name == "brackets")
    form = grid.template((*grid.start[:5], rf)).pairwise
    assert form is not None and not form.appended
    text = "".join(m.text for m in render(form, Slate("t", ("x", "y"), (0, 1))))
    assert "VERDICT" not in text and "[[A]]" in text


HIDES = """
[[layout]]
name = "only the first"
pairwise = "Task: {task}\\n\\nResponse A: {response_a}"
"""
TWICE = """
[[EC]]
name = "looks again"
all = "Look at {response_b} once more."
"""
SILENT = """
[[RF]]
name = "no form"
own = true
all = "Tell me what you think."
"""


@pytest.mark.parametrize(
    "options, named", [(HIDES, "layout, option 'only the first'"), (TWICE, "EC"), (SILENT, "RF, option 'no form'")]
)
def test_an_option_that_hides_doubles_or_silences_is_refused_and_named(options: str, named: str) -> None:
    grid = Grid.of(source("vanilla"), "vanilla", "quick", options)
    with pytest.raises(TemplateError, match=named):
        grid.check("pairwise")


def test_whole_prompts_and_unknown_components_are_refused() -> None:
    with pytest.raises(TemplateError, match="in parts"):
        Grid.of('name = "whole"', "mine.toml")
    with pytest.raises(UnknownName, match="EC"):
        Grid.of(source("vanilla"), "v", "quick", '[[ECX]]\nall = "x"')


def test_a_large_grid_is_sampled_with_the_starts_neighbours() -> None:
    grid = Grid.of(source("arena_hard"), "a", "reference")
    some = list(grid.configs(most=100, seed=3))
    assert len(set(some)) == 100 and set(grid.neighbours(grid.start)) < set(some)
    assert some == list(grid.configs(most=100, seed=3)) != list(grid.configs(most=100, seed=4))
