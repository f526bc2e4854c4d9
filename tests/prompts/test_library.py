"""The built-in templates: the published component table, both ways of the scale, clean files, whole specs."""

from __future__ import annotations

from importlib.resources import files

import pytest

from robustjudge import spec
from robustjudge.errors import ConfigError, TemplateError, UnknownName
from robustjudge.nouns import Slate
from robustjudge.prompts.criteria import bands, criteria, kinds, task_name, weights
from robustjudge.prompts.library import LINEAGES, from_toml, template, template_names
from robustjudge.prompts.lint import lint
from robustjudge.prompts.render import render
from robustjudge.prompts.slots import hidden
from robustjudge.scales import likert

TABLE_II = {
    "vanilla": "RS EI RF",
    "arena_hard": "RS EI IAG EC ER RF",
    "google_vertex": "RS EI EC ER RF",
    "pandalm": "EI",
    "prometheus2": "RS EI RF",
    "judgelm": "RS EI EC RF",
    "auto_j": "EI RF",
    "skywork": "RS EI EC RF",
    "chateval": "EI EC RF",
}


@pytest.mark.parametrize("name", LINEAGES)
def test_components_are_those_of_the_published_table(name: str) -> None:
    t = template(name)
    assert len(t.forms) == 3 and t.lineage
    for form in t.forms:
        assert form.components == frozenset(TABLE_II[name].split())
        assert form.appended is ("RF" not in form.components)


def test_the_optimised_one_has_no_verdict_format() -> None:
    for form in template("optimised_paper").forms:
        assert form.components == {"RS", "EI", "IAG", "EC", "ER"} and form.appended


@pytest.mark.parametrize("name", template_names())
@pytest.mark.parametrize("kind", [*kinds(), "something else"])
def test_every_template_renders_for_every_task(name: str, kind: str) -> None:
    t = template(name)
    for n, form in ((1, t.pointwise), (2, t.pairwise), (3, t.best_of)):
        if form is None:
            continue
        slate = Slate("the task", tuple("abc"[:n]), tuple(range(n)), kind=kind)
        text = "\n".join(m.text for m in render(t.form(n), slate))
        assert "{" not in text and "}" not in text
        if "EC" in form.components:
            assert all(c in text for c in criteria(kind))
        if not t.name.endswith("_native"):
            assert form.scale.first_token or "VERDICT:" in text


@pytest.mark.parametrize("name", template_names())
def test_files_are_clean_and_specs_round_trip(name: str) -> None:
    raw = files("robustjudge.prompts").joinpath("templates", f"{name}.toml").read_text(encoding="utf-8")
    assert hidden(raw) is None and raw.isascii()
    t = template(name)
    assert t.name == name
    assert spec.load(spec.dump(t)) == t
    assert spec.load(spec.dump(t.plain())) == t.plain()
    if not name.endswith("_native"):
        assert not [f for f in lint(t) if f.severity != "note"]


def test_scales_and_ties_can_be_changed() -> None:
    t = template("vanilla").scored(likert(0, 10, 0.1))
    assert t.form(1).scale.step == 0.1
    assert "from 0 to 10 in steps of 0.1" in render(t.form(1), Slate("t", ("a",), (0,)))[0].text
    assert template("vanilla").with_ties().form(2).scale.tie == "TIE"
    assert template("vanilla").with_ties().form(4).scale.tie == "TIE"
    assert "TIE" in render(template("vanilla").with_ties().form(2), Slate("t", ("a", "b"), (0, 1)))[0].text


def test_plain_says_nothing_of_marks() -> None:
    text = "".join(m.text for m in render(template("arena_hard").plain().form(1), Slate("t", ("a",), (0,))))
    assert "BEGIN" not in text


def test_definition_is_the_users() -> None:
    t = template("success_failure").defined("The reply names the year 1969.")
    assert "names the year 1969" in render(t.form(1), Slate("t", ("a",), (0,)))[0].text
    assert [f.rule for f in lint(t.defined("It is good. It is nice."))] == ["rubric-sentences", "rubric-untestable"]


def test_criteria_are_five_and_weights_sum_to_ten() -> None:
    for kind in kinds():
        assert len(criteria(kind)) == len(set(criteria(kind))) == len(weights(kind)) == 5
        assert sum(weights(kind)) == 10
        assert task_name(kind)
    assert criteria("unheard of") == criteria("open")


def test_bands_cover_the_scale() -> None:
    assert [b.split(":")[0] for b in bands(likert(0, 10, 0.1))] == [
        "0 to 2.9",
        "3 to 4.9",
        "5 to 6.9",
        "7 to 8.9",
        "9 to 10",
    ]
    assert len(bands(likert(1, 10))) == 5 and len(bands(likert(1, 5))) == 5
    assert bands(likert(0, 2))[0].startswith("0 is")


def test_unknown_names_are_answered() -> None:
    with pytest.raises(UnknownName, match="arena_hard"):
        template("arena-hard")


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("name = 'x'\norder = ['EI']\n[parts.EI]\nall = 'a\u200bb'", "line 4.*ZERO WIDTH SPACE"),
        ("name = 'x'\nordr = ['EI']", "did you mean|Did you mean"),
        ("name = 'x'\norder = ['XX']", "component"),
        ("order = ['EI']", "no name"),
        ("name = [", "x.toml: "),
        (
            "name = 'x'\norder = ['EI']\n[parts.EI]\nall = 'rate it {tusk}'",
            r"line 1: unknown slot \{tusk\}; did you mean \{task\}",
        ),
        ("name = 'x'\n[layout]\npointwise = '{task} {task} {response}'", "line 1: slot {task} is used twice"),
        ("name = 'x'\n[layout]\npairwise = '{task} {response_a}'", "{response_b} is missing"),
        ("name = 'x'\n[layout]\npointwise = 'hi {{ task | e }} {response}'", "nothing is evaluated"),
        ("name = 'x'\nparts = 3", "x.toml: parts is a table, not int"),
        ("name = 'x'\norder = 'EI'", "x.toml: order is a list, not str"),
        ("name = 'x'\nprotocols = ['pointwize']", "pointwise"),
        ("name = 'x'\nscale = 3", "scale is {low, high, step}"),
        ("name = 'x'\nscale = {low = 1, hgh = 3}", "Did you mean high"),
        (
            "name = 'x'\norder = ['EI']\n[parts.EI]\nall = 'Rate {response}.'",
            "x.toml, user message, line 5: slot {response} is used twice .first on x.toml, system message, line 1",
        ),
    ],
)
def test_bad_files_are_refused_with_their_place(toml: str, said: str) -> None:
    with pytest.raises((TemplateError, ConfigError), match=said):
        from_toml(toml, "x.toml")
