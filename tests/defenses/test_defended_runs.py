"""Defenses through a whole run: from the configuration to the trade-off of the table, each stopping what it should."""

from pathlib import Path
from typing import Any

import pytest
from defense_help import JUDGE

from core_help import cases, go, planned
from robustjudge.attacks.library import attack
from robustjudge.config.build import defenses_of
from robustjudge.config.schema import Config
from robustjudge.defenses.delimiters import Delimiters
from robustjudge.defenses.ensembles import OrderEnsemble
from robustjudge.defenses.library import defense_of, stacks
from robustjudge.defenses.retokenize import Retokenize
from robustjudge.errors import PlanError
from robustjudge.judges import Guarded, Panel, Service
from robustjudge.measures.tradeoff import Tradeoff, tradeoff, tradeoffs
from robustjudge.models.scripted.named import open_scripted
from robustjudge.nouns import Access
from robustjudge.plan import Plan, shielded_at_random
from robustjudge.protocols import Pairwise, Pointwise
from robustjudge.table import Table


def run_of(folder: Path, model: Any, named: dict[str, Any], *attacks: str, protocol: Any = None, n: int = 8) -> Table:
    judge = type(JUDGE)(model.name, JUDGE.template)
    plan = planned(
        cases(n),
        *(attacks or ("identity", "H1")),
        judges=(("judge", judge),),
        defenses=(("none", None), *named.items()),
        protocols=(protocol or Pointwise(),),
    )
    done = go(plan, folder, model)
    return Table.load(done.path / "run.sqlite")


def found(table: Table) -> dict[str, Tradeoff]:
    return {t.defense: t for t in tradeoffs(table)}


def test_each_defense_stops_what_it_should_by_construction(tmp_path: Path) -> None:
    fences = {n: defense_of(n, {}) for n in ("delimiters", "random_delimiters", "struq_adapted", "sandwich")}
    rows = found(run_of(tmp_path / "fenced", open_scripted("fenced"), fences, "identity", "H1", "H2", "H3"))
    for name in ("delimiters", "random_delimiters", "struq_adapted"):
        assert (rows[name].asr_none.value, rows[name].easr.value, rows[name].bur.value) == (1.0, 0.0, 1.0), name
        assert rows[name].break_even.value == 0.0
    assert rows["sandwich"].easr.value == 1.0 and "never" in rows["sandwich"].break_even.reason
    words = {"bpe": Retokenize(dropout=1.0), "ablation": defense_of("ablation", {"mode": "conservative"})}
    rows = found(run_of(tmp_path / "obedient", open_scripted("obedient"), words))
    for name in words:
        assert (rows[name].asr_none.value, rows[name].easr.value) == (1.0, 0.0), name
    assert (rows["ablation"].costs["judge_calls"] or 0) > 0


def test_strict_orders_take_every_win_from_a_place(tmp_path: Path) -> None:
    table = run_of(tmp_path, open_scripted("first_position"), {"orders": OrderEnsemble()}, protocol=Pairwise())
    row = found(table)["orders"]
    assert row.asr_none.value == 0.5 and row.easr.value == 0.0 and row.bur.value == 0.0


def test_a_detector_in_a_run_blocks_and_keeps_the_status(tmp_path: Path) -> None:
    table = run_of(
        tmp_path, open_scripted("obedient"), {"x5": defense_of("classifier", {"tau": 0.5})}, "H1", "H2", "H3"
    )
    row = found(table)["x5"]
    assert row.delta_asr.value is not None and row.delta_asr.value > 0.3
    assert row.blocked_attacked.value == pytest.approx(row.delta_asr.value)
    panel = tradeoff(table)["panels"][0]
    assert panel["defenses"][0]["defense"] == "none" and panel["ranking"][0]["said"] in (
        "better than none",
        "the baseline",
    )


def test_stacks_of_a_plan_are_ranked_beside_none(tmp_path: Path) -> None:
    parts = stacks({"fence": Delimiters(), "bpe": Retokenize(dropout=1.0)}, 2)
    rows = found(run_of(tmp_path, open_scripted("obedient"), dict(parts)))
    assert set(rows) == {"none", "fence", "bpe", "bpe+fence"}
    assert rows["fence"].easr.value == 1.0 and rows["bpe+fence"].easr.value == 0.0


def test_the_configuration_builds_them_and_none_is_always_there() -> None:
    config = Config.model_validate(
        {"defenses": {"none": None, "sandwich": None, "both": {"stack": ["instructional", {"kind": "X3"}]}}}
    )
    made = dict(defenses_of(config, Path()))
    assert list(made) == ["none", "sandwich", "both"] and made["none"] is None
    assert made["both"].name == "instructional+random_delimiters"


def test_a_new_seed_draws_a_random_defense_anew() -> None:
    assert shielded_at_random(Guarded(JUDGE, Retokenize()))
    assert not shielded_at_random(Guarded(JUDGE, OrderEnsemble()))
    plan = Plan(
        lambda: iter(cases(1)),
        (("judge", JUDGE),),
        (Pointwise(),),
        (attack("H7"),),
        defenses=(("none", None), ("bpe", Retokenize())),
        seeds=(0, 1),
    )
    assert [(c.defense_name, c.seed) for c in plan.cells()] == [("none", 0), ("bpe", 0), ("bpe", 1)]


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("sandwich", {}, "a service owns its prompt"),
        ("struq_adapted", {}, "a service owns its prompt"),
        ("datamark", {}, "a service owns its prompt"),
        ("retokenize", {"variant": "ids"}, "cuts the tokens of a prompt"),
        ("prompt_ensemble", {"templates": ["vanilla"]}, "prompt of its own"),
        ("stack", ["classifier", "sandwich"], "a service owns its prompt"),
        ("classifier", {}, ""),
        ("retokenize", {}, ""),
        ("order_ensemble", {}, ""),
    ],
)
def test_what_cannot_guard_a_service_is_refused_before_any_call(name: str, given: Any, why: str) -> None:
    """Not found out in the rows, cell by cell; and ids that nobody cuts would have been measured as a defense."""
    shield = defense_of("mine", {"stack": given}) if name == "stack" else defense_of(name, given)
    for judge in (
        Service("house"),
        Panel((JUDGE, Service("house"))),
        Guarded(Service("house"), defense_of("classifier", {})),
    ):
        plan = planned(cases(2), judges=(("house", judge),), defenses=(("none", None), ("mine", shield)))
        if not why:
            plan.check(lambda model: Access.SCORE)
            continue
        with pytest.raises(PlanError, match=f"defense mine cannot guard judge house: .*{why}"):
            plan.check(lambda model: Access.SCORE)
    planned(cases(2), judges=(("own", JUDGE),), defenses=(("mine", shield),)).check(lambda model: Access.SCORE)
