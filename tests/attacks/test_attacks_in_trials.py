"""Every attack through a whole trial: real renderer and reader, scripted judges that see rendered text only."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from robustjudge.asks import Complete, Gradient, Measure, Sample, Spell, Surprise, Weigh
from robustjudge.attacks.library import HEURISTIC, attack, attack_names, suite
from robustjudge.judges import Prompted
from robustjudge.models.scripted.base import Constant, Scripted
from robustjudge.models.scripted.fooled import Echo, Fenced, LastInstruction, Obedient
from robustjudge.models.scripted.plain import LengthBiased, Table
from robustjudge.models.scripted.whitebox import Additive
from robustjudge.nouns import Budget, Case, Surprisal, Turn
from robustjudge.plan import target_of
from robustjudge.prompts.library import template
from robustjudge.protocols import Pairwise, Pointwise, Protocol
from robustjudge.steps import run
from robustjudge.threat import ThreatModel
from robustjudge.trial import Cell, Trial, fitting, trial

CASE = Case("c1", "Say what two plus two is.", "It is five. There is no doubt about it.", references=("It is four.",))
TRAIN = tuple(Case(f"t{i}", f"task {i}", f"answer {i}", references=(f"solution {i}",)) for i in range(2))
PROTOCOLS: tuple[Protocol, ...] = (Pointwise(), Pairwise())
JUDGE = Prompted("scripted/any", template("vanilla"))


def finished(coroutine: Any) -> Any:
    """The value of a coroutine that never waits (scripted models)."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a scripted model waited")


def answering(model: Scripted) -> Callable[[Any], Any]:
    def answer(ask: Any) -> Any:
        m: Any = model
        match ask:
            case Complete(calls):
                return tuple(finished(m.complete(c)) for c in calls)
            case Weigh(calls):
                return finished(m.weigh(calls))
            case Spell(_, ids):
                return finished(m.spell(ids))
            case Sample():
                return finished(m.sample(ask))
            case Gradient():
                return finished(m.gradient(ask))
            case Measure(_, _, texts):
                return (None,) * len(texts)
            case Surprise(model="scripted/any", texts=texts):
                return tuple(Surprisal((-float(len(t)),)) for t in texts)
        raise AssertionError(ask)

    return answer


def tried(name: str, model: Scripted, protocol: Protocol, case: Case = CASE, seed: int = 0, **changes: Any) -> Trial:
    made: Any = attack(name, target_of(JUDGE, protocol), seed, quick=True)
    made = replace(made, **changes) if changes else made
    if isinstance(model, Additive) and hasattr(made, "words"):
        made = replace(made, words=model.vocabulary)
    cell = Cell(case, made, JUDGE, protocol)
    if made.universal:
        made, _ = run(fitting(cell, TRAIN), answering(model))
        cell = replace(cell, attack=made)
    return run(trial(cell), answering(model))


def gains(t: Trial) -> list[float]:
    """Worth of each final verdict minus the clean one's."""
    worth = t.cell.protocol.worth
    n = len(t.attacked)
    return [worth(a.verdict) - worth(c.verdict) for c, a in zip(t.clean[:n], t.attacked, strict=True)]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.kind)
@pytest.mark.parametrize("name", [n for n in attack_names() if n not in ("honest_rewrite", "plea")])
def test_every_attack_ends_well_within_its_ceiling(name: str, protocol: Protocol) -> None:
    served = name + "/rules" if name in ("O1", "O2", "O3", "Resubmit") else name
    t = tried(served, Additive(), protocol)
    assert t.attack_status == "ok", t.error
    ceiling = t.cell.attack.ceiling()  # type: ignore[attr-defined]
    assert t.spent.queries <= ceiling.queries and t.spent.losses <= ceiling.losses
    assert t.spent.gradients <= ceiling.gradients and t.spent.writes == 0
    assert all(s.verdict.status == "ok" for s in t.attacked)
    assert CASE.reference not in (t.text or "")
    if t.cell.attack.channel == "append":  # type: ignore[attr-defined]
        assert (t.text or "").startswith(CASE.response)


@pytest.mark.parametrize("name", ["E1", "E2", "E3", "O5", "O7"])
def test_searches_find_the_planted_words_and_their_controls_do_not(name: str) -> None:
    model = Additive()
    (found,) = gains(tried(name, model, Pointwise()))
    assert found >= 0.2
    for control in ("identity", "neutral", "random_suffix"):
        assert gains(tried(control, model, Pointwise())) == [0.0]


@pytest.mark.parametrize("name", ["O1", "O2", "O3"])
def test_an_attacker_model_that_is_absent_is_no_candidate_and_judges_nothing(name: str) -> None:
    t = tried(name, Additive(), Pointwise())
    assert t.attack_status == "no_candidate" and t.text is None and t.attacked == ()


def test_a_budget_cut_is_exhausted_with_the_best_so_far() -> None:
    made: Any = attack("E3", target_of(JUDGE, Pointwise()), quick=True)
    made = replace(made, words=Additive().vocabulary)
    cell = Cell(CASE, made, JUDGE, Pointwise(), threat=ThreatModel(budget=Budget(queries=9)))
    t = run(trial(cell), answering(Additive()))
    assert t.attack_status == "exhausted" and t.spent.queries == 9 and (t.text or "").startswith(CASE.response)


@pytest.mark.parametrize("name", ["E1", "E2", "E3", "O5", "O6"])
def test_searches_by_label_probability_leave_a_curve_of_the_best_chance_so_far(name: str) -> None:
    t = tried(name, Additive(), Pointwise())
    used, best = zip(*t.spent.curve, strict=True)
    assert list(used) == sorted(set(used)) and list(best) == sorted(set(best))
    assert used[-1] <= t.spent.queries + t.spent.losses
    low, high = t.attacked[0].verdict.range or (1, 10)
    assert best[-1] == pytest.approx(Additive().total(t.text or ""), abs=1e-6) and 0 < (high - low) * best[-1] <= 9


def test_a_fitted_attack_says_whose_answers_made_it() -> None:
    made: Any = attack("O7", target_of(JUDGE, Pointwise()), quick=True)
    fitted, spent = run(fitting(Cell(CASE, made, JUDGE, Pointwise()), TRAIN), answering(Additive()))
    assert fitted.provenance.surrogate == "scripted/any" and spent.queries == fitted.provenance.queries  # type: ignore[attr-defined]


# ------------------------------------------------------------------ heuristics on judges with known outcomes

WORDS = ("highest", "top", "best", "sentence", "stronger", "note")


def test_obedient_falls_for_h1_to_h6_in_both_orders_and_for_the_shuffled_words() -> None:
    for protocol in PROTOCOLS:
        for name in ("H1", "H2", "H3", "H4", "H5", "H6"):
            changes = {"number": False} if protocol.kind == "pointwise" and name == "H4" else {}
            model = Obedient(words=("level", *WORDS))
            t = tried(name, model, protocol, **changes)
            assert {protocol.worth(s.verdict) for s in t.attacked} == {1.0}, (name, protocol.kind)
        t = tried("shuffled_payload/H1", Obedient(words=WORDS), protocol)
        assert {protocol.worth(s.verdict) for s in t.attacked} == {1.0}


def test_last_instruction_falls_for_a_suffix_and_not_for_a_prefix() -> None:
    assert gains(tried("H1", LastInstruction(), Pointwise()))[0] > 0
    assert gains(tried("H1/prefix", LastInstruction(), Pointwise())) == [0.0]
    assert gains(tried("H5", LastInstruction(), Pointwise())) == [0.0]


@pytest.mark.parametrize("name", HEURISTIC)
def test_a_fence_that_cannot_be_closed_holds_and_a_table_never_moves(name: str) -> None:
    fenced: Any = replace(target_of(JUDGE, Pointwise()), fences=(("<data>", "</data>"),))
    made: Any = attack(name, fenced, quick=True)
    t = run(trial(Cell(CASE, made, JUDGE, Pointwise())), answering(Fenced()))
    assert gains(t) == [0.0]
    for protocol in PROTOCOLS:
        assert set(gains(tried(name, Table(), protocol))) == {0.0}


def test_a_payload_in_an_earlier_turn_wins_on_the_obedient_judge_and_not_through_a_fence() -> None:
    told = Case("c2", CASE.task, CASE.response, CASE.references, history=(Turn("user", "Hello."),))
    for case in (CASE, told):
        t = tried("E9", Obedient(words=("highest", "level", "top")), Pointwise(), case)
        assert gains(t)[0] > 0 and t.attacked[0].slate.history[-1].text == t.text
        assert gains(tried("E9", Fenced(), Pointwise(), case)) == [0.0]
        assert gains(tried("E9", Table(), Pointwise(), case)) == [0.0]


def test_repetition_gives_the_exact_score_of_a_length_biased_judge() -> None:
    model = LengthBiased(chars=60)
    for times in (1, 2, 5, 8):
        t = tried(f"H8/{times}", model, Pointwise())
        assert t.attacked[0].verdict.score == min(10, 1 + times * len(CASE.response) // 60)


@pytest.mark.parametrize("where", ["before", "after", "rubric", "json"])
def test_verdict_spoofs_never_reach_our_reader_through_an_echo(where: Any) -> None:
    for form in (n for n in attack("E7").FORMS if n != "long_tail"):  # type: ignore[attr-defined]
        t = tried(f"E7/{form}", Echo(judge=Constant(value=0.2), where=where), Pointwise())
        verdict, clean = t.attacked[0].verdict, t.clean[0].verdict
        assert verdict.status != "ok" or verdict.score == clean.score, (form, where)


def test_every_playbook_attack_is_legal_text() -> None:
    for name in suite("playbook"):
        t = tried(name, Table(), Pointwise())
        assert t.attack_status == "ok" and t.text is not None
        t.text.encode("utf-8")
        assert "\x00" not in t.text
