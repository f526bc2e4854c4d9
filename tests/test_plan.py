"""Plans: order, filters, seeds, threats, universal attacks, refusals, and what an attack knows of its target."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from core_help import cases, judge, planned
from robustjudge.attacks.library import attack, attack_names
from robustjudge.attacks.search import Provenance
from robustjudge.errors import PlanError
from robustjudge.judges import Guarded, Panel, Prompted, Service
from robustjudge.nouns import Access, Budget, Case, Weak
from robustjudge.plan import fit_key, prompted, reseeded, target_of
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf, Pairwise, Pointwise
from robustjudge.table import case_key, cell_key
from robustjudge.threat import ThreatModel


def names(plan: Any) -> list[tuple[str, str, str, int]]:
    return [(c.case.id, c.protocol.kind, c.attack_name, c.seed) for c in plan.cells()]


def test_cells_of_one_case_stand_together_and_sources_are_read_anew() -> None:
    reads = 0

    def source() -> Any:
        nonlocal reads
        reads += 1
        return iter(cases(2))

    plan = replace(planned([], "H1", "H2", protocols=(Pointwise(), Pairwise())), cases=source)
    assert names(plan) == [
        (case, protocol, made, 0)
        for protocol in ("pointwise", "pairwise")
        for case in ("c0", "c1")
        for made in ("H1", "H2")
    ]
    assert list(plan.cells()) == list(plan.cells()) and reads == 6


def test_enumeration_is_lazy() -> None:
    def endless() -> Any:
        i = 0
        while True:
            yield cases(1)[0]
            i += 1

    assert len(list(islice(replace(planned([]), cases=endless).cells(), 5))) == 5


def test_keep_filters_and_defenses_guard() -> None:
    class Shield:
        async def __call__(self, slate: Any, judge: Any) -> Any:
            return await judge(slate)

    shield: Any = Shield()
    plan = planned(cases(2), defenses=(("none", None), ("shield", shield)), keep=lambda cell: cell.case.id == "c1")
    found = list(plan.cells())
    assert [(c.case.id, c.defense_name) for c in found] == [("c1", "none"), ("c1", "shield")]
    assert found[0].judge == judge() and found[1].judge == Guarded(judge(), shield)


def test_threats_multiply_only_what_observes() -> None:
    threats = (ThreatModel(), ThreatModel(answers="undefended"))
    found = [(c.attack_name, c.threat.answers) for c in planned(cases(1), "H1", "E4", threats=threats).cells()]
    assert found == [("H1", "victim"), ("E4", "victim"), ("E4", "undefended")]


@pytest.mark.parametrize(
    ("made", "settings", "seeds"),
    [
        ("H8", {}, [0]),
        ("H1", {}, [0, 1, 2]),
        ("identity", {}, [0, 1, 2]),
        ("H8", {"protocols": (BestOf(3),)}, [0, 1, 2]),
        ("H8", {"judges": [("warm", judge(temperature=1.0))]}, [0, 1, 2]),
    ],
)
def test_a_seed_is_a_measurement_only_if_it_draws_something_anew(made: str, settings: Any, seeds: list[int]) -> None:
    plan = planned(cases(1), made, seeds=(0, 1, 2), **settings)
    assert [c.seed for c in plan.cells()] == seeds
    assert len({cell_key(c) for c in plan.cells()}) == len(seeds)


def test_reseeding_changes_the_attacks_own_draws_only() -> None:
    h1 = attack("H1")
    assert reseeded(h1, 3) != h1 and reseeded(attack("identity"), 3) == attack("identity")


def test_universal_attacks_are_fitted_on_the_training_clusters_and_deployed_on_the_others() -> None:
    made = attack("O4", quick=True)
    plan = planned(cases(4), made, "H1", train=frozenset({"c0"}))
    ((key, cell),) = plan.fits()
    assert cell.case.id == "c0" and key == fit_key("toy", "none", Pointwise(), made)
    assert [n for n in names(plan) if n[2] == made.name] == [(f"c{i}", "pointwise", made.name, 0) for i in (1, 2, 3)]
    assert len([n for n in names(plan) if n[2] == "H1"]) == 4
    done = replace(plan, fitted=((key, made),))
    assert list(done.fits()) == []
    again = replace(done, attacks=(made, attack("neutral/O4", quick=True)), seeds=(0, 1))
    phrase = replace(made, phrase="best ever", provenance=Provenance(("c0",)))  # type: ignore[type-var]
    found = list(replace(again, fitted=((key, phrase),)).cells())
    deployed = [c for c in found if c.attack == phrase]  # a new seed would change nothing in it
    assert [(c.case.id, c.seed) for c in deployed] == [("c1", 0), ("c2", 0), ("c3", 0)]
    controls: list[Any] = [c.attack for c in found if c.attack.name == "neutral(O4)"]
    assert len(controls) == 6 and all(c.of.phrase == "best ever" and c.access == Access.NONE for c in controls)
    with pytest.raises(PlanError, match="set train_share"):
        replace(plan, train=frozenset()).check(lambda name: Access.ODDS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judges": (("a", judge()), ("a", judge("toy/b")))}, "judge a stands twice"),
        ({"attacks": ()}, "at least one"),
        ({"judges": ()}, "at least one"),
        ({"protocols": ()}, "at least one"),
        ({"attacks": (attack("O5", quick=True),)}, "O5 needs GRADIENT access"),
        ({"judges": (("a", replace(judge(), expect=True)),)}, "label probabilities"),
    ],
)
def test_what_cannot_be_done_is_refused(change: Any, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        replace(planned(cases(1)), **change).check(lambda name: Access.SCORE)


def test_a_surrogate_lends_its_access() -> None:
    plan = planned(
        cases(1), attack("O5", quick=True), threats=(ThreatModel(answers="surrogate", surrogate=judge("hf/x")),)
    )
    plan.check(lambda name: Access.GRADIENT if name == "hf/x" else Access.SCORE)
    with pytest.raises(PlanError):
        replace(plan, threats=(ThreatModel(),)).check(lambda name: Access.SCORE)


def test_a_panel_gives_the_least_access_of_its_members() -> None:
    plan = planned(cases(1), "O4", judges=[("panel", Panel((judge("hf/x"), judge("toy/a"))))])
    with pytest.raises(PlanError, match="gives SCORE"):
        plan.check(lambda name: Access.GRADIENT if name == "hf/x" else Access.SCORE)


def test_an_author_knows_the_form_and_never_a_slot() -> None:
    one = target_of(judge(), Pointwise())
    assert (one.protocol, one.low, one.high, one.verdict_line) == ("pointwise", "1", "10", "VERDICT: 10")
    pair = target_of(judge(), Pairwise())
    assert (
        pair.protocol == "pairwise" and "VERDICT: A" not in pair.verdict_line and "VERDICT: B" not in pair.verdict_line
    )
    binary = target_of(Prompted("m", template("success_failure")), Pointwise())
    assert binary.protocol == "binary" and binary.top_label in binary.verdict_line
    service = target_of(Service("s", low=0, high=5), Pointwise())
    assert (service.high, service.verdict_line) == ("5", "score: 5")
    assert prompted(Panel((judge("a"), Guarded(judge("b"), None)))) == (judge("a"), judge("b"))  # type: ignore[arg-type]


def test_whatever_changes_what_is_judged_changes_the_key() -> None:
    base = cases(1)[0]
    changes: list[Any] = [
        {"id": "x"},
        {"task": "x"},
        {"response": "x"},
        {"references": ("x",)},
        {"distractors": (Weak("x"),)},
        {"kind": "code"},
        {"language": "de"},
        {"meta": (("k", "v"),)},
    ]
    assert len({case_key(c) for c in (base, *(replace(base, **c) for c in changes))}) == len(changes) + 1
    assert case_key(base) == case_key(replace(base, source="elsewhere", licence="x"))
    assert case_key(Case("a", "b", "c")) != case_key(Case("a", "b", "c", ("",)))


def test_fields_never_run_into_each_other_in_a_key() -> None:
    one = Case("c", "t", "r", ("a", "b"), (Weak("w"),))
    two = Case("c", "t", "r", ("a",), (Weak("b"), Weak("w")))
    assert case_key(one) != case_key(two)


def test_a_name_never_becomes_a_path() -> None:
    from robustjudge.plan import artefact_name

    assert artefact_name("judge/none/pointwise/O2") == "judge.none.pointwise.O2.json"
    for key in ("../../etc/passwd", "a" * 500, "<img>/x", "a\nb", "", ".hidden", "é", "a/../b"):
        name = artefact_name(key)
        assert "/" not in name and ".." not in name and len(name) < 80 and name[0] not in ".", key
    assert artefact_name("é") != artefact_name("è")


def test_threat_models_that_could_not_be_told_apart_are_refused() -> None:
    def check(*threats: ThreatModel) -> None:
        planned(cases(1), "E4", threats=threats).check(lambda name: Access.GRADIENT)

    check(ThreatModel(), ThreatModel(draws=8), ThreatModel(budget=Budget(queries=5), name="cheap"))
    for twins in (
        (ThreatModel(), ThreatModel(budget=Budget(queries=5))),  # one label for two
        (ThreatModel(), ThreatModel(name="again")),  # two names for one
    ):
        with pytest.raises(PlanError, match="threat model victim stands twice"):
            check(*twins)


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("O5", "losses", 16), ("O5", "gradients", 1), ("E2", "losses", 9), ("O6", "queries", 8), ("O7", "queries", 128)],
)
def test_a_budget_below_one_step_is_refused_while_planning(name: str, kind: str, least: int) -> None:
    def check(n: int) -> None:
        threat = ThreatModel(budget=Budget(**{kind: n}))
        plan = planned(cases(2), attack(name, quick=True), threats=(threat,), train=frozenset({"c0"}))
        plan.check(lambda model: Access.GRADIENT)

    check(least)
    if least > 1:
        with pytest.raises(PlanError, match=f"{name} needs {least} {kind} for one step, and .* holds {least - 1}"):
            check(least - 1)


def test_one_step_is_never_more_than_the_whole_search() -> None:
    for name in (*attack_names(), "E8/O5", "random_suffix/O5", "E10/640/0/search"):
        made: Any = attack(name, quick=True)
        pairs = [(getattr(made.least(), k), getattr(made.ceiling(), k)) for k in ("queries", "losses", "gradients")]
        assert all(most is None or least <= most for least, most in pairs), name
