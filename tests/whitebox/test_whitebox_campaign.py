"""All fifteen attacks of the paper in one plan on a tiny judge: one table with access, budget used and controls."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

from bench import case_of, judge_of

from robustjudge.attacks.library import attack
from robustjudge.execution import Options, execute
from robustjudge.models.transformers import Transformers
from robustjudge.plan import Plan
from robustjudge.protocols import Pointwise

HEURISTIC = tuple(f"H{i}" for i in range(1, 9))
OPTIMISED = ("O1/rules", "O2/rules", "O3/rules", "O4", "O5", "O6", "O7")
CONTROLS = ("identity", "neutral", "random_suffix")


def test_all_fifteen_attacks_complete_in_one_plan(tiny_folders: dict[str, Path], tmp_path: Path) -> None:
    """One task, one case; the universal attacks are fitted on two training cases."""
    model = Transformers(str(tiny_folders["planted"]), threads=1)
    cases = (case_of(100), case_of(101), case_of(1))
    train = frozenset(c.id for c in cases[:2])
    attacks = tuple(attack(name, quick=True) for name in (*HEURISTIC, *OPTIMISED, *CONTROLS))
    plan = Plan(
        lambda: cases,
        (("tiny", judge_of(model)),),
        (Pointwise(),),
        attacks,
        train=train,
        keep=lambda cell: cell.case.id not in train,
    )
    options = Options(root=tmp_path / "runs", ledger=tmp_path / "ledger.sqlite", models={model.name: model})
    run = execute(plan, options)
    with sqlite3.connect(run.folder.table) as db:
        rows = db.execute(
            "SELECT attack, access, attack_status, attacked_status, queries, losses, gradients, error FROM trials"
        ).fetchall()
    found = {re.split(r"[/(]", name)[0]: rest for name, *rest in rows}
    assert set(found) == {*HEURISTIC, *(n.partition("/")[0] for n in OPTIMISED), *CONTROLS}
    assert {rest[1] for rest in found.values()} <= {"ok", "exhausted"}, found
    assert {rest[2] for rest in found.values()} == {"ok"}
    assert all(found[name][3:6] == [0, 0, 0] for name in (*HEURISTIC, "O4", "O7"))  # fitted ones deploy without access
    assert found["O5"][3:6] == [0, 160, 10] and found["O6"][3] == 29
    spent = {p.name: json.loads(p.read_text())["spent"] for p in (run.path / "artefacts").glob("*.json")}
    assert sorted(x["queries"] for x in spent.values()) == [66, 256]
    assert {rest[0] for rest in found.values()} >= {"NONE", "SCORE", "GRADIENT"}
