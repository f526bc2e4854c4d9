"""The worst cases of a real run: what each arm picked, in words that fit what it was shown."""

from __future__ import annotations

from pathlib import Path

import robustjudge as rj
from robustjudge.reports.model import build


def test_the_clean_arm_picks_the_weak_text_never_an_attacked_one(tmp_path: Path) -> None:
    plan = rj.Plan(
        cases=lambda: rj.builtin_cases("knowledge", 6),
        judges=(("mine", rj.Prompted("scripted/gameable", rj.template("robustjudge"))),),
        protocols=(rj.Pairwise(),),
        attacks=(rj.attack("H6"),),
    )
    run = rj.run(plan, rj.Options(root=tmp_path, ledger=None))
    picks = {(v["arm"], v["choice"]) for w in build(run.path)["worst_cases"] for v in w["verdicts"]}
    assert ("final", "attacked text") in picks
    assert {choice for arm, choice in picks if arm == "clean"} == {"weak text", "reference"}
