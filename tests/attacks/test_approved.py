"""Approved variants as an attack: only their own cases, one text per cell, what was set before the run."""

from __future__ import annotations

import pytest

from robustjudge import spec
from robustjudge.attacks.approved import Approved
from robustjudge.attacks.base import NoCandidate
from robustjudge.attacks.controls import Neutral
from robustjudge.errors import ConfigError
from robustjudge.judges import Prompted
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise
from robustjudge.steps import run
from robustjudge.table import cell_key

CASES = tuple(Case(f"c{i}", "task", f"answer {i}") for i in range(3))


def _plan(attack: Approved) -> Plan:
    judge = Prompted("scripted/table", template("robustjudge"))
    return Plan(lambda: CASES, (("j", judge),), (Pointwise(),), (attack, Neutral(attack)))


def test_a_cell_holds_its_own_text_so_later_approvals_change_no_key() -> None:
    one = Approved("redteam(x)", (("c0", "answer 0 plus"),), category="medical", severity="critical")
    two = Approved(
        "redteam(x)", (("c0", "answer 0 plus"), ("c2", "answer 2 plus")), category="medical", severity="critical"
    )
    first, both = (
        {c.case.id: cell_key(c) for c in _plan(a).cells() if not getattr(c.attack, "control", "")} for a in (one, two)
    )
    assert set(first) == {"c0"} and set(both) == {"c0", "c2"} and first["c0"] == both["c0"]
    assert len(list(_plan(two).cells())) == 4  # a neutral control for each, for no other case
    assert (two.category, two.severity, two.family, two.id) == ("medical", "critical", "redteam", "redteam(x)")


def test_a_case_without_a_text_has_no_candidate_and_the_spec_comes_back() -> None:
    attack = Approved("redteam(x)", (("c0", "t"),), scores=(("c0", 1.0),))
    assert run(attack(CASES[0]), lambda ask: None) == "t"
    with pytest.raises(NoCandidate):
        run(attack(CASES[1]), lambda ask: None)
    assert attack.expected(CASES[0]) == 1.0 and attack.expected(CASES[1]) is None
    assert spec.load(spec.dump(attack)) == attack
    with pytest.raises(ConfigError, match="channel"):
        Approved("x", channel="sideways")  # type: ignore[arg-type]
