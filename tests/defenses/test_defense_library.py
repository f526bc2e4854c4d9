"""Every defense by name: specs come back, settings are checked, costs are what the formula says, none is the identity."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from defense_help import JUDGE, World, alone, pair
from hypothesis import given, settings, strategies as st

from robustjudge.defenses.base import Chain, Extra, NoDefense, Shield
from robustjudge.defenses.calibration import Sample, calibrated
from robustjudge.defenses.classifier import Classifier
from robustjudge.defenses.committee import Committee
from robustjudge.defenses.detector import LLMDetector
from robustjudge.defenses.ensembles import PromptEnsemble
from robustjudge.defenses.library import ALIASES, BUILT, DETECTION, PREVENTION, defense_names, defense_of, stacks
from robustjudge.defenses.perplexity import Perplexity
from robustjudge.defenses.retokenize import Retokenize
from robustjudge.defenses.sandwich import Sandwich
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.judges import Guarded, models_of, passed, undefended
from robustjudge.models.scripted.base import Constant
from robustjudge.models.scripted.fooled import Obedient
from robustjudge.models.scripted.plain import LengthBiased, Noisy
from robustjudge.nouns import Turn, Verdict
from robustjudge.prompts.library import template
from robustjudge.spec import canonical, dump, load
from robustjudge.steps import run

SETTINGS: dict[str, dict[str, Any]] = {
    "perplexity": {"model": "m"},
    "windowed_perplexity": {"model": "m", "windows": "tokens10"},
    "llm_detector": {"model": "d", "tau": 0.7, "worth": "abstain"},
    "known_answer": {"model": "d"},
    "paraphrase": {"model": "p"},
    "committee": {"others": [{"model": "scripted/b"}, {"model": "scripted/c", "template": "vanilla"}]},
    "prompt_ensemble": {"templates": ["robustjudge"]},
    "anchors": {"anchors": [{"task": "Count.", "good": "1 2", "bad": "q"}]},
    "ablation": {"which": "all"},
    "delimiters": {"style": "nonce"},
}
EVERY = tuple((name, defense_of(name, SETTINGS.get(name, {}))) for name in defense_names())


def test_there_are_eight_defenses_of_the_paper_and_nine_extensions() -> None:
    assert {f"D{i}" for i in range(1, 9)} | {f"X{i}" for i in range(1, 10)} <= set(ALIASES)
    assert set(ALIASES.values()) | {"none", "prompt_ensemble"} == set(BUILT)
    assert {*PREVENTION, *DETECTION} == {ALIASES[f"D{i}"] for i in range(1, 9)}


@pytest.mark.parametrize(("name", "defense"), EVERY, ids=lambda x: x if isinstance(x, str) else "")
def test_every_defense_survives_its_spec(name: str, defense: Shield) -> None:
    data = dump(defense)
    assert load(data) == defense and canonical(data)
    assert defense.name == name == data["kind"]
    guarded = Guarded(JUDGE, defense)
    assert load(dump(guarded)) == guarded and undefended(guarded) == JUDGE
    assert set(defense.models()) <= set(models_of(guarded))


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("delimiters", {"style": "hearts"}, "may be quotes, xml, nonce"),
        ("delimiters", {"stile": "xml"}, "style"),
        ("sandwhich", {}, "sandwich"),
        ("perplexity", {}, "needs 'model'"),
        ("retokenize", {"dropout": "high"}, "must be a float"),
        ("retokenize", {"dropout": 2.0}, "probability"),
        ("random_delimiters", {"bits": True}, "must be a int"),
        ("x", {"stack": []}, "a stack is a list"),
        ("x", {"stack": ["sandwich"], "seed": 1}, "takes no other settings"),
        ("x", {"stack": [{"style": "xml"}]}, "settings with a `kind`"),
        ("committee", {"others": [{"template": "vanilla"}]}, "model, template and family"),
        ("perplexity", {"model": "m", "threshold": "missing.json"}, "cannot read"),
    ],
)
def test_bad_settings_are_refused_with_what_to_do(name: str, given: dict[str, Any], error: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=error):
        defense_of(name, given)


def test_settings_name_kinds_stacks_and_artefacts(tmp_path: Path) -> None:
    assert defense_of("mine", {"kind": "D4", "dropout": 0.3}) == Retokenize(0.3)
    both = defense_of("both", {"stack": ["instructional", {"kind": "retokenize", "dropout": 0.2}]})
    assert isinstance(both, Chain) and both.name == "instructional+retokenize" and load(dump(both)) == both
    samples = [Sample(f"honest text number {i}") for i in range(40)]
    run(calibrated(Classifier(), samples, 0.1), World(Constant())).save(tmp_path / "x5.json")
    made = defense_of("x5", {"kind": "classifier", "threshold": "x5.json"}, tmp_path)
    assert isinstance(made, Classifier) and not isinstance(made.tau, float) and load(dump(made)) == made


# ------------------------------------------------------------------ none


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from([Obedient(), Noisy(), LengthBiased()]))
@settings(max_examples=40, deadline=None)
def test_none_and_an_empty_chain_are_the_identity(a: str, b: str, model: Any) -> None:
    for slate in (alone(a), pair(a, b)):
        bare = run(JUDGE(slate), World(model))
        assert World(model).verdict(NoDefense(), slate) == bare == World(model).verdict(Chain(), slate)
        guarded = World(model).verdict(Classifier(None), slate)
        assert replace(guarded, suspicion=()) == bare


# ------------------------------------------------------------------ costs

SLATES = (
    alone("One sentence. Two sentences. Three."),
    pair("First answer. It goes on.", "Second answer.", history=(Turn("user", "Hello."),)),
)


@pytest.mark.parametrize("slate", SLATES, ids=("pointwise", "pairwise"))
@pytest.mark.parametrize(("name", "defense"), EVERY, ids=lambda x: x if isinstance(x, str) else "")
def test_extra_calls_are_what_the_formula_says(name: str, defense: Shield, slate: Any) -> None:
    world = World(LengthBiased(chars=3), logprobs=lambda _: (-1.0, -1.0))
    key = {"known_answer": getattr(defense, "secret", lambda s: "")(slate)}.get(name)
    world.says = lambda text: key or (text if name == "paraphrase" else "ANSWER: no")
    verdict = world.verdict(defense, slate)
    assert isinstance(verdict, Verdict) and (verdict.status == "ok" or name == "anchors")
    extra = defense.extra(slate)
    assert world.counts["detector"] == extra.calls
    assert world.counts["passes"] == extra.passes
    assert world.counts["judge"] == 1 + extra.judges + extra.once


def test_costs_of_a_chain_multiply_behind_what_asks_the_judge_again() -> None:
    chain = Chain((Committee((JUDGE, JUDGE)), LLMDetector("d"), PromptEnsemble((template("vanilla").plain(),))))
    world = World(Constant())
    world.verdict(chain, SLATES[0])
    extra = chain.extra(SLATES[0])
    assert extra.calls >= world.counts["detector"] == 1
    assert 1 + extra.judges >= world.counts["judge"] == 4
    stacked = Chain((LLMDetector("d"), Perplexity("m"), Retokenize()))
    assert stacked.extra(SLATES[1]) == Extra(calls=2, passes=2)


# ------------------------------------------------------------------ stacks and branches


def test_stacks_hold_each_combination_once_in_the_one_stated_order() -> None:
    named = {"sandwich": Sandwich(), "ppl": Perplexity("m"), "bpe": Retokenize(), "committee": Committee((JUDGE,))}
    found = stacks(named, 2)
    assert len(found) == 4 + 6 and len({n for n, _ in found}) == 10
    by_name = dict(found)
    assert by_name["sandwich"] == Sandwich()
    assert by_name["ppl+bpe"] == Chain((Perplexity("m"), Retokenize()))
    assert "committee+sandwich" in by_name and "ppl+committee" in by_name


def test_a_detector_screens_what_stands_before_it() -> None:
    seen: list[str] = []

    def says(text: str) -> str:
        seen.append(text)
        return "ANSWER: no"

    split, detector = Retokenize(dropout=1.0), LLMDetector("d")
    World(Constant(), says=says).verdict(Chain((detector, split)), alone("plain words"))
    World(Constant(), says=says).verdict(Chain((split, detector)), alone("plain words"))
    assert seen == ["plain words", "p·l·a·i·n w·o·r·d·s"]


def test_the_passed_branch_keeps_everything_but_the_detectors() -> None:
    guarded = Guarded(Guarded(JUDGE, Sandwich()), Chain((LLMDetector("d"), Retokenize())))
    assert passed(guarded) == Guarded(Guarded(JUDGE, Sandwich()), Chain((Retokenize(),)))
    assert passed(Guarded(JUDGE, LLMDetector("d"))) == JUDGE


def test_a_guard_in_a_guard_runs_outermost_first() -> None:
    twice = Guarded(Guarded(JUDGE, Sandwich()), Retokenize(dropout=1.0))
    chained = Guarded(JUDGE, Chain((Retokenize(dropout=1.0), Sandwich())))
    first, second = World(Constant()), World(Constant())
    run(twice(alone("plain words")), first)
    run(chained(alone("plain words")), second)
    assert first.calls == second.calls
