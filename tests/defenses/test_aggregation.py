"""Committees, ensembles and anchors on judges whose joint behaviour is known."""

from dataclasses import replace
from typing import Any

import pytest
from defense_help import JUDGE, Rule, World, alone, pair

from robustjudge.defenses.anchors import SHIPPED, Anchor, Anchors, compared, isotonic, scored
from robustjudge.defenses.base import Chain
from robustjudge.defenses.committee import Committee
from robustjudge.defenses.ensembles import OrderEnsemble, PromptEnsemble, rotations
from robustjudge.defenses.sandwich import Sandwich
from robustjudge.errors import ConfigError
from robustjudge.judges import Guarded, Repeated, Service
from robustjudge.models.scripted.base import Constant, Outcome, Outcomes, Scripted
from robustjudge.models.scripted.fooled import Obedient
from robustjudge.models.scripted.plain import FirstPosition, LengthBiased
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Slate
from robustjudge.prompts.library import template
from robustjudge.spec import dump, load

OTHERS = (replace(JUDGE, model="scripted/b"), replace(JUDGE, model="scripted/c"))


class Unread(Rule):
    def outcomes(self, view: View) -> Outcomes:
        return (Outcome(1.0, status="unparsed"),)


class Ladder(Rule):
    """The score is the number that stands in the text; a text without one gets ``empty``."""

    empty: str = "1"

    def outcomes(self, view: View) -> Outcomes:
        digits = "".join(c for c in view.candidates[0] if c.isdigit())
        return (Outcome(1.0, digits or self.empty),)


def world(*judges: Scripted) -> World:
    return World(judges[0], others={j.model: m for j, m in zip(OTHERS, judges[1:], strict=False)})


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_three_independent_judges_are_fooled_by_the_majority_law(p: float) -> None:
    here = world(*(Obedient(rate=p, seed=i) for i in range(3)))
    n = 500
    won = sum(here.verdict(Committee(OTHERS), alone(f"best {i}")).unit == 1.0 for i in range(n))
    law = 3 * p**2 - 2 * p**3
    assert abs(won / n - law) <= 3.5 * (law * (1 - law) / n) ** 0.5


def test_perfectly_correlated_judges_are_fooled_as_one() -> None:
    same = Committee((JUDGE, JUDGE))
    here = world(Obedient(rate=0.5))
    for i in range(60):
        assert here.verdict(same, alone(f"best {i}")) .unit == here.verdict(Chain(), alone(f"best {i}")).unit  # fmt: skip


def test_the_quorum_counts_all_members() -> None:
    one = world(Constant(value=0.0), Unread(), Constant(value=1.0))
    assert one.verdict(Committee(OTHERS), alone("x")).status == "ok"
    two = world(Unread(), Unread(), Constant(value=1.0))
    found = two.verdict(Committee(OTHERS), alone("x"))
    assert found.status == "unparsed" and "1 of 3" in found.reason


def test_median_trimmed_mean_and_veto() -> None:
    here = world(Constant(value=0.0), Constant(value=1 / 3), Constant(value=1.0))
    assert here.verdict(Committee(OTHERS), alone("x")).unit == pytest.approx(1 / 3)
    trimmed = here.verdict(Committee(OTHERS, rule="trimmed"), alone("x"))
    assert trimmed.unit == pytest.approx(1 / 3) and trimmed.score == 4.0
    vetoed = here.verdict(Committee(OTHERS, veto=0.5), alone("x"))
    assert (vetoed.status, vetoed.fallback, vetoed.score) == ("blocked", "abstain", None)
    assert here.verdict(Committee(OTHERS, veto=1.0), alone("x")).status == "ok"
    with pytest.raises(ConfigError):
        Committee(())
    with pytest.raises(ConfigError):
        Committee(OTHERS[:1], rule="trimmed")


def test_a_pair_needs_a_majority_of_all_and_a_veto_counts_dissent() -> None:
    here = world(FirstPosition(), FirstPosition(), LengthBiased())
    slate = pair("short", "much longer text")
    assert here.verdict(Committee(OTHERS), slate).choice == 0
    assert here.verdict(Committee(OTHERS, veto=0.3), slate).fallback == "abstain"


# ------------------------------------------------------------------ orders and prompts


def test_a_position_biased_judge_is_inconsistent_on_every_pair_and_wins_nothing() -> None:
    here = World(FirstPosition())
    for slate in (pair("a", "b"), Slate("t", ("b", "a"), (1, 0)), Slate("t", ("a", "b", "c"), (0, 1, 2))):
        found = here.verdict(OrderEnsemble(), slate)
        assert (found.status, found.reason, found.choice) == ("unparsed", "inconsistent", None)
    assert here.verdict(OrderEnsemble(), alone("a")).status == "ok"


def test_a_consistent_judge_keeps_its_pick_and_both_orders_ask_the_same_questions() -> None:
    here = World(LengthBiased())
    slate = pair("short", "much longer text")
    assert here.verdict(OrderEnsemble(), slate).choice == 1
    other = Slate(slate.task, slate.candidates[::-1], (1, 0))
    assert set(rotations(slate)) == set(rotations(other))
    assert here.verdict(OrderEnsemble(), other).choice == 1


def test_an_unread_order_keeps_its_status() -> None:
    assert World(Unread()).verdict(OrderEnsemble(), pair("a", "b")).status == "unparsed"


def test_a_prompt_ensemble_asks_behind_each_prompt_and_refuses_a_prompt_it_does_not_own() -> None:
    ensemble = PromptEnsemble(
        (template("arena_hard" if "arena_hard" in _names() else _names()[0]), template(_names()[1]))
    )
    here = World(Obedient())
    assert here.verdict(ensemble, alone("best"), Guarded(Repeated(JUDGE, 3), Sandwich())).unit == 1.0
    assert here.counts["judge"] == 9 and len({c.messages for c in here.calls}) >= 3
    with pytest.raises(ConfigError, match="prompt of its own"):
        here.verdict(ensemble, alone("x"), Service("theirs"))
    with pytest.raises(ConfigError):
        PromptEnsemble(())


def _names() -> tuple[str, ...]:
    from robustjudge.prompts.library import template_names

    return tuple(n for n in template_names() if n != "vanilla" and template(n).pointwise is not None)


# ------------------------------------------------------------------ anchors


def test_a_constant_judge_abstains_always() -> None:
    here = World(Constant())
    for slate in (alone("x"), pair("a", "b")):
        found = here.verdict(Anchors(), slate)
        assert (found.status, found.fallback) == ("blocked", "abstain") and found.reason.startswith("anchors")


LADDER = (Anchor("Count.", "10", "4", 1.0, 1 / 3), Anchor("Count on.", "7", "2", 2 / 3, 1 / 9))


def test_on_a_judge_that_is_right_about_the_anchors_the_map_is_the_identity_on_them() -> None:
    here = World(Ladder())
    for mapped in (False, True):
        for text in ("10", "4", "7", "2"):
            found = here.verdict(Anchors(LADDER, mapped=mapped), alone(text))
            assert found.status == "ok" and found.score == pytest.approx(float(text))


def test_an_inflating_judge_is_mapped_back_and_an_empty_anchor_above_the_band_abstains() -> None:
    class Generous(Ladder):
        def outcomes(self, view: View) -> Outcomes:
            digits = "".join(c for c in view.candidates[0] if c.isdigit())
            return (Outcome(1.0, str(min(10, int(digits) + 2)) if digits else "1"),)

    found = World(Generous()).verdict(Anchors(LADDER, mapped=True), alone("4"))
    assert found.score == pytest.approx(4.0)
    high = Ladder()
    object.__setattr__(high, "empty", "8")
    assert "empty answer" in World(high).verdict(Anchors(LADDER), alone("4")).reason


def test_anchors_of_pairs_must_be_won_in_both_orders() -> None:
    assert World(FirstPosition()).verdict(Anchors(), pair("a", "b")).status == "blocked"
    assert {s.index for s in compared(SHIPPED[0])} == {(0, 1), (1, 0)}
    assert all(s.replica == "anchor/0" for s in (*scored(SHIPPED[0]), *compared(SHIPPED[0])))


@pytest.mark.parametrize(
    ("points", "x", "y"),
    [([(0.0, 0.0), (1.0, 1.0)], 0.3, 0.3), ([(0.2, 0.5), (0.6, 0.1), (1.0, 1.0)], 0.4, 0.3), ([(0.5, 0.2)], 0.9, 0.2)],
)
def test_the_isotonic_map_pools_violators(points: Any, x: float, y: float) -> None:
    assert isotonic(points, x) == pytest.approx(y)


def test_aggregations_survive_their_spec() -> None:
    for made in (
        Committee(OTHERS, "trimmed", 0.5),
        Anchors(LADDER, mapped=True),
        PromptEnsemble((template("vanilla"),)),
    ):
        assert load(dump(made)) == made
