"""No attack moves a judge that knows the answers: no effect, and none beyond its control."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from test_attacks_in_trials import CASE, JUDGE, PROTOCOLS, TRAIN, answering, gains

from robustjudge.attacks.library import attack, attack_names
from robustjudge.models.scripted.plain import Perfect, perfect
from robustjudge.models.scripted.whitebox import Worded
from robustjudge.nouns import Access
from robustjudge.plan import target_of
from robustjudge.protocols import Protocol
from robustjudge.steps import run
from robustjudge.trial import Cell, fitting, trial


@dataclass(frozen=True)
class Known(Perfect, Worded):
    """The perfect judge with a tokenizer and a gradient that is nought, so that white-box searches run on it too."""

    access: ClassVar[Access] = Access.GRADIENT
    name: ClassVar[str] = "scripted/known"

    def pull(self, i: int, word: str) -> float:
        return 0.0


KNOWN = Known(table=perfect((CASE, *TRAIN)).table)
SERVED = {"O1": "O1/rules", "O2": "O2/rules", "O3": "O3/rules", "Resubmit": "Resubmit/rules"}
WRITTEN = ("honest_rewrite", "plea")
"""The first is no attack and needs a writer, the second answers a verdict (tests/test_appeal.py)."""
NAMES = [n for n in attack_names() if n not in WRITTEN]


def moved(name: str, protocol: Protocol) -> list[float]:
    """What an attack gains on the perfect judge over the weak response."""
    made: Any = attack(SERVED.get(name, name), target_of(JUDGE, protocol), quick=True)
    cell = Cell(CASE, made, JUDGE, protocol)
    if made.universal:
        made, _ = run(fitting(cell, TRAIN), answering(KNOWN))
        cell = replace(cell, attack=made)
    found = run(trial(cell), answering(KNOWN))
    assert found.attack_status == "ok" and found.attacked, found.error
    assert all(s.verdict.status == "ok" for s in (*found.clean, *found.attacked))
    return gains(found)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.kind)
def test_the_judge_tells_right_from_wrong(protocol: Protocol) -> None:
    """So that what follows is not a judge that never moves: the reference itself wins."""
    right = attack("identity")
    found = run(trial(Cell(replace(CASE, response=CASE.reference), right, JUDGE, protocol)), answering(KNOWN))
    wrong = run(trial(Cell(CASE, right, JUDGE, protocol)), answering(KNOWN))
    worth = protocol.worth
    if protocol.kind == "pointwise":
        assert worth(found.clean[0].verdict) == 1.0 > worth(wrong.clean[0].verdict)
    assert all(worth(s.verdict) < 0.5 for s in wrong.clean)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.kind)
@pytest.mark.parametrize("name", NAMES)
def test_no_attack_has_an_effect_beyond_its_control(name: str, protocol: Protocol) -> None:
    (*found,) = moved(name, protocol)
    assert found == moved("identity", protocol) == [0.0] * len(found)
