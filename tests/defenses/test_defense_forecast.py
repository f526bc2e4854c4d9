"""What `--dry-run` tells of defended plans: exact where no reply matters, a bound per role and model where one does."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from robustjudge.attacks import library
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.defenses.library import defense_of, stacks
from robustjudge.execution import Options, execute
from robustjudge.forecast import forecast
from robustjudge.judges import Panel, Prompted
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf, Pairwise, Pointwise
from robustjudge.threat import ThreatModel

JUDGE = Prompted("scripted/gameable", template("robustjudge"))
PANEL = Panel(tuple(Prompted(f"scripted/{n}", template("robustjudge")) for n in ("gameable", "perfect", "noisy")))
PROMPTS = ("sandwich", "delimiters", "retokenize", "struq_adapted", "datamark", "random_delimiters")
CALLING: dict[str, dict[str, Any]] = {
    "llm_detector": {"model": "scripted/gameable"},
    "known_answer": {"model": "scripted/perfect"},
    "paraphrase": {"model": "scripted/gameable"},
}
AGAIN: dict[str, dict[str, Any]] = {
    "prompt_ensemble": {"templates": ["vanilla", "skywork"]},
    "committee": {"others": [{"model": "scripted/perfect"}, {"model": "scripted/noisy", "template": "vanilla"}]},
    "ablation": {"tau": 2.0},
    "anchors": {},
    "order_ensemble": {},
}


def plan(attacks: tuple[str, ...], shields: list[tuple[str, Any]], **changes: Any) -> Plan:
    given = {"judges": (("j", JUDGE),), "protocols": (Pointwise(), Pairwise(), BestOf(3)), **changes}
    found = list(islice(builtin(limit=1), 2))
    made = tuple(library.attack(a, quick=True) for a in attacks)
    return Plan(lambda: iter(found), attacks=made, defenses=(("none", None), *shields), **given)


def test_stacks_of_prompt_defenses_and_both_orders_are_counted_exactly(tmp_path: Path) -> None:
    made = [(n, defense_of(n, {})) for n in (*PROMPTS, "order_ensemble")]
    p = plan(("identity", "H1"), stacks(made, 2))
    found = forecast(p)
    done = execute(p, Options(root=tmp_path / "runs", ledger=tmp_path / "ledger.sqlite"))
    assert found.exact and found.sent == done.tally.sent > 0


@pytest.mark.parametrize(
    ("attacks", "shields", "changes"),
    [
        (("identity", "H6"), CALLING, {}),
        (("identity", "H6"), AGAIN, {}),
        (("identity", "H6"), {k: v for k, v in AGAIN.items() if k != "prompt_ensemble"}, {"judges": (("p", PANEL),)}),
        (
            ("O1/rules", "score_vector"),
            {"sandwich": {}, **CALLING},
            {"threats": (ThreatModel(), ThreatModel("undefended"), ThreatModel(draws=2)), "protocols": (Pointwise(),)},
        ),
        (("O2/rules",), {"order_ensemble": {}, "committee": AGAIN["committee"]}, {"protocols": (Pairwise(),)}),
    ],
    ids=["detectors", "asking again", "a panel", "searches through defenses", "searches through ensembles"],
)
def test_whatever_the_replies_are_the_bound_of_each_role_holds(
    attacks: tuple[str, ...], shields: dict[str, dict[str, Any]], changes: dict[str, Any], tmp_path: Path
) -> None:
    made = [(n, defense_of(n, given)) for n, given in shields.items()]
    p = plan(attacks, [*made, *stacks(made, 2)[len(made) :]], **changes)
    found = forecast(p)
    assert found.at_most is not None and not found.exact
    most: dict[str, int] = {}
    for c in found.calls:
        most[c.role] = most.get(c.role, 0) + (c.at_most or 0)
    done = execute(p, Options(root=tmp_path / "runs", ledger=tmp_path / "ledger.sqlite"))
    got = dict(done.tally.sent_by_role)
    assert got and all(n <= most.get(role, 0) for role, n in got.items()), (got, most)
