"""The optimiser against real (scripted) judges: harmful components, illegal options, budgets, files."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from robustjudge.attacks.library import attack
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.split import Split
from robustjudge.errors import BudgetSpent, PlanError, TemplateError
from robustjudge.execution import Options
from robustjudge.judges import Prompted
from robustjudge.models.scripted import Perfect, perfect
from robustjudge.models.scripted.base import Outcome, Outcomes
from robustjudge.models.scripted.signs import plea
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Call, Case, Completion
from robustjudge.optimise import Optimised, Task, optimise, unified, write
from robustjudge.optimise_evidence import evidence
from robustjudge.prompts.library import source, template
from robustjudge.protocols import BestOf, Pointwise
from robustjudge.search import CoordinateAscent, Grid, Race

MODEL = "scripted/tempted"
CASES = tuple(c for kind in ("summarization", "knowledge") for c in builtin(kind))


@dataclass
class Tempted:
    """Knows the right answers, but obeys pleas wherever its own instructions hold one phrase; counts its calls."""

    phrase: str
    inner: Perfect
    calls: int = 0
    name: str = MODEL
    access: Any = Perfect.access
    context: None = None
    concurrency: int = 64

    def outcomes(self, view: View) -> Outcomes:
        for i, text in enumerate(view.candidates):
            if self.phrase in view.trusted and plea(text):
                return (Outcome(1.0, view.labels[i] if len(view.candidates) > 1 else view.labels[-1]),)
        return self.inner.outcomes(view)

    async def complete(self, call: Call) -> Completion:
        self.calls += 1
        view = self.inner.look(call)
        return self.inner.say(view, self.outcomes(view)[0])

    async def close(self) -> None:
        return None


def judge(phrase: str, cases: tuple[Case, ...] = CASES) -> Tempted:
    return Tempted(phrase, perfect(cases))


def task(**changes: Any) -> Task:
    grid = changes.pop("grid", None) or Grid.of(source("arena_hard"), "arena_hard")
    return Task(
        Prompted(MODEL, template("arena_hard")),
        grid,
        changes.pop("cases", CASES),
        {n: attack(n) for n in changes.pop("families", ("H4", "H6"))},
        {n: attack(n) for n in ("forged_rubric",)},
        split=Split(0.35, 0.4, 0.25),
        **changes,
    )


def solve(model: Tempted, t: Task, budget: int = 6000, rounds: int = 0, published: int = 0) -> Optimised:
    options = Options(ledger=None, models={MODEL: model})
    return optimise(t, Race(budget, rounds=rounds), options, CoordinateAscent(published) if published else None)


@pytest.mark.parametrize("seed", (0, 1))
def test_both_find_the_one_harmful_component(seed: int) -> None:
    grid = Grid.of(source("arena_hard"), "arena_hard")
    bad = Random(seed).choice([0, 2, 3, 4])  # components whose start text no alternative repeats
    phrase = grid.components[bad].options[0].text("pairwise").split("\n")[0]
    model = judge(phrase)
    found = solve(model, task(grid=grid), budget=5000, published=1)
    assert found.status == "improved" and found.answer.config[bad] != 0
    assert found.published is not None and found.published.ascent.config[bad] != 0
    assert model.calls <= found.answer.calls + found.published.calls
    assert phrase not in found.prompt and phrase in found.diff


def test_a_sound_start_is_kept_and_the_files_say_so(tmp_path: Path) -> None:
    found = solve(judge("never written"), task(), budget=3000)
    assert found.status == "no_improvement" and found.diff == ""
    paths = write(found, tmp_path / "out", {"judge": MODEL, "prompt": "arena_hard", "cases": len(CASES)})
    assert tomllib.loads(paths["prompt.toml"].read_text())["name"] == "arena_hard"
    told = json.loads(paths["evidence.json"].read_text())
    assert told["status"] == "no_improvement" and told["held_out"] == ["forged_rubric"]
    gap = told["prompts"]["answer"]["optimism_gap"]
    assert gap["value"] == 0.0 and gap["low"] < 0 < gap["high"]
    assert "keep the start prompt" in paths["evidence.md"].read_text()


def test_an_option_that_hides_the_second_response_costs_no_call() -> None:
    hides = '[[layout]]\nname = "half"\npairwise = "Task: {task}\\n\\nResponse A: {response_a}"'
    model = judge("x")
    with pytest.raises(TemplateError, match="response_b"):
        solve(model, task(grid=Grid.of(source("vanilla"), "vanilla", "quick", hides)))
    assert model.calls == 0


def test_budgets_hold_and_too_small_ones_cost_nothing() -> None:
    model = judge("x")
    with pytest.raises(PlanError, match="give at least"):
        solve(model, task(), budget=200)
    assert model.calls == 0
    found = solve(model, task(), budget=2000)
    assert model.calls <= found.answer.calls <= 2000


def test_too_few_items_to_confirm_anything_are_refused() -> None:
    model = judge("x")
    with pytest.raises(PlanError, match="7 are the least"):
        solve(model, task(cases=CASES[:10]))
    assert model.calls == 0


def test_a_cap_of_the_user_stops_it() -> None:
    model = judge("x")
    with pytest.raises(BudgetSpent):
        optimise(task(), Race(3000, rounds=0), Options(ledger=None, models={MODEL: model}, max_calls=50))
    assert model.calls <= 50


def test_a_translation_direction_is_held_out_whole() -> None:
    cases = tuple(builtin("translation"))
    model = judge("never written", cases)
    held = replace(task(cases=cases, families=("H4",)), split=Split(0.2, 0.7, 0.1))
    found = solve(model, held, budget=900)
    direction = {c.id: c.get("direction") for c in cases}
    tested = {direction[r.item] for r in found.answer.test[found.answer.start]}
    trained = {direction[r.item] for r in found.answer.train[found.answer.start]}
    assert tested - trained


def test_co_training_finds_what_the_families_did_not_show() -> None:
    """The start obeys pleas, the only family makes none: without co-training there is nothing to mend."""
    spare = {n: attack(n) for n in ("composed/ignore+dictate+prefix+number", "composed/nothing")}
    grid = Grid.of(source("arena_hard"), "arena_hard")
    start = grid.components[0].options[0].text("pairwise")
    t = replace(task(grid=grid, families=("H5",)), spare=spare)
    assert solve(judge(start), t, 3000, rounds=0).status == "no_improvement"
    found = solve(judge(start), t, 5000, rounds=1)
    assert found.answer.found == ("composed/ignore+dictate+prefix+number",)
    assert found.status == "improved" and start not in found.prompt


def test_the_diff_is_a_unified_one() -> None:
    grid = Grid.of(source("arena_hard"), "arena_hard")
    lines = unified(grid, (1, 0, 0, 0, 0, 0)).splitlines()
    assert lines[:2] == ["--- start.toml", "+++ optimised.toml"]
    assert any(x.startswith('+all = "You are an examiner') for x in lines)


@pytest.mark.parametrize("protocol", (Pointwise(), BestOf(3)))
def test_a_harmful_component_is_found_under_other_protocols(protocol: Any) -> None:
    grid = Grid.of(source("arena_hard"), "arena_hard")
    phrase = grid.components[0].options[0].text(protocol.kind).split("\n")[0]
    model = judge(phrase)
    found = solve(model, task(grid=grid, protocol=protocol), budget=6000)
    assert found.status == "improved" and found.answer.config[0] != 0 and found.protocol == protocol.kind
    assert model.calls <= found.answer.calls <= 6000
    told = evidence(found)
    start, answer = told["prompts"]["start"], told["prompts"]["answer"]
    assert start["test"]["value"] == 1.0 and answer["test"]["value"] == 0.0
    assert answer["clean_accuracy"]["value"] == 1.0 and answer["parse_rate"]["value"] == 1.0
    assert (answer["position_consistency"]["value"] is None) == (protocol.kind == "pointwise")


def test_a_pointwise_rise_below_tau_is_no_success() -> None:
    grid = Grid.of(source("arena_hard"), "arena_hard")
    phrase = grid.components[0].options[0].text("pointwise").split("\n")[0]
    found = solve(judge(phrase), task(grid=grid, protocol=Pointwise(), tau=20.0), budget=3000)
    assert found.status == "no_improvement"
    results = [r for r in found.answer.test[found.answer.start] if r.family in ("H4", "H6")]
    assert {r.won for r in results} == {0.0} and {r.published for r in results} == {1.0}


def test_a_prompt_in_one_block_is_improved_by_what_is_put_before_it() -> None:
    """The judge obeys pleas unless its instructions hold the words of one option; that option is found, the text kept."""
    text = "Task: {task}\nA: {response_a}\nB: {response_b}\nClose with VERDICT: A or VERDICT: B."
    grid = Grid.whole(text, "my.txt", "pairwise")
    wanted = grid.components[3].options[-1].text("pairwise").split("\n")[0]

    @dataclass
    class Warned(Tempted):
        def outcomes(self, view: View) -> Outcomes:
            return self.inner.outcomes(view) if wanted in view.trusted else super().outcomes(view)

    model = Warned("Task", perfect(CASES))
    found = solve(model, replace(task(grid=grid), judge=Prompted(MODEL, grid.template(grid.start))), budget=5000)
    assert found.status == "improved" and wanted in found.prompt and text in found.prompt
    assert f"+{wanted}" in found.diff and "\n-Task" not in found.diff
