"""A prompt in one block of text is optimised as it stands: parts are put before it, never into it."""

from __future__ import annotations

import pytest

from robustjudge.errors import TemplateError
from robustjudge.nouns import Slate
from robustjudge.prompts.library import from_toml
from robustjudge.prompts.render import render
from robustjudge.search import Grid

TEXT = (
    "You are a strict teacher.\nQuestion: {task}\nAnswer A: {response_a}\nAnswer B: {response_b}\n"
    "Say which is better. Close with VERDICT: A or VERDICT: B."
)
ONE = "Question: {task}\nAnswer: {response}\nClose with VERDICT: and a number from 1 to 10."
SLATE = Slate("1+1?", ("2", "3"), (0, 1))


def test_the_start_is_the_text_alone_and_every_other_prompt_ends_with_it() -> None:
    grid = Grid.whole(TEXT, "judges/my.txt", "pairwise")
    assert grid.names(grid.start)["RF"] == "start" and grid.sizes[-1] == 1 and grid.size > 20
    grid.check("pairwise")
    want = TEXT.format(task="1+1?", response_a="2", response_b="3")
    (only,) = render(grid.template(grid.start).form(2), SLATE)
    assert (only.role, only.text) == ("user", want)
    for config in list(grid.configs())[1:]:
        system, user = render(grid.template(config).form(2), SLATE)
        assert (system.role, user.role, user.text) == ("system", "user", want) and system.text.strip()
        again = from_toml(grid.toml(config), "again.toml")
        assert render(again.form(2), SLATE) == (system, user)


def test_one_response_on_the_usual_scale() -> None:
    grid = Grid.whole(ONE, "my.txt", "pointwise", "reference")
    grid.check("pointwise")
    assert grid.template(grid.start).form(1).scale.high == 10


@pytest.mark.parametrize(
    ("text", "protocol", "told"),
    [
        ("{task} {response_a}\n{verdict}", "pairwise", "{response_b} is missing"),
        (
            "{task}\n{response_a} {response_b}\n{response_a}\n{verdict}",
            "pairwise",
            "line 3: slot {response_a} is used twice",
        ),
        ("{task}\n{response_a}\n{response_b}\nWhich?", "pairwise", "in parts"),
        ("{task}\n{response}\nFrom 1 to 5, VERDICT: n", "pointwise", "never names 10"),
        ("{task}\n{answer}\n{verdict}", "pointwise", "unknown slot {answer}"),
        ('{task}\n{response}\n{{"a": 1}} {verdict}', "pointwise", "state syntax: format"),
    ],
)
def test_what_cannot_be_used_whole_is_refused_with_what_to_do(text: str, protocol: str, told: str) -> None:
    with pytest.raises(TemplateError, match=told):
        Grid.whole(text, "my.txt", protocol)


def test_options_for_the_verdict_form_are_refused() -> None:
    with pytest.raises(TemplateError, match="RF is the prompt's own"):
        Grid.whole(TEXT, "my.txt", "pairwise", more='[[RF]]\nname = "x"\nall = "{verdict}"\n')
