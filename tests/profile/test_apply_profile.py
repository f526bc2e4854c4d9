"""A robustness run corrected by a profile: the grader's error in the interval, refusals in words, the attackers' share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robustjudge.attacks import library
from robustjudge.bias import Edit
from robustjudge.errors import DataError
from robustjudge.execution import Options, execute
from robustjudge.judges import Prompted
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.intervals import wilson
from robustjudge.models import scripted
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.profile import JudgeProfile, attacked_range, correct_run
from robustjudge.profile.build import binary_statistics, confusion_section
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise
from robustjudge.table import Table

CASES = tuple(Case(f"c{i}", f"Task {i}?", f"Wrong answer {i}.", (f"Right answer {i}.",)) for i in range(30))


def profile(tp: int = 90, fp: int = 10, fn: int = 10, tn: int = 90, **more: object) -> JudgeProfile:
    c = Confusion(tp, fp, fn, tn)
    p = JudgeProfile(
        rubric={"text": "r", "labels": ["SUCCESS", "FAILURE"]},
        population={"design": "srs"},
        confusion=confusion_section(c, {}, "SUCCESS", "FAILURE"),
        **binary_statistics(c),
    )
    return replace(p, **more)  # type: ignore[arg-type]


def table(tmp: Path, name: str = "success_failure") -> Table:
    judge = scripted.CitationTruster(judge=scripted.perfect(CASES))
    plan = Plan(
        cases=lambda: iter(CASES),
        judges=(("j", Prompted("scripted/g", template(name))),),
        protocols=(Pointwise(),),
        attacks=(library.attack("identity"), Edit("authority")),
    )
    return execute(plan, Options(root=tmp, ledger=None, mode="off", models={"scripted/g": judge})).table()


def test_rates_under_attack_are_used_where_the_profile_has_them(tmp_path: Path) -> None:
    found = table(tmp_path)
    under = {"bias/authority": {"n": 100, "tpr": wilson(50, 50), "fpr": wilson(25, 50)}}
    lines = {x.attack: x for x in correct_run(found, profile(under_attack=under), untested_ok=True)}
    attacked, clean = lines["bias/authority"], lines["identity"]
    assert attacked.raw.value == 1.0 and attacked.basis == "error rates measured under this attack"
    assert attacked.corrected.value == 1.0 and attacked.corrected.low is not None and attacked.corrected.low < 0.95
    assert clean.raw.value == 0.0 and clean.corrected.value == 0.0 and "outside_model" in clean.corrected.flags
    assert clean.corrected.high is not None and clean.corrected.high > 0.0


def test_clean_rates_do_not_describe_a_judge_under_attack(tmp_path: Path) -> None:
    found = table(tmp_path)
    (line,) = [x for x in correct_run(found, profile()) if x.attack == "bias/authority"]
    assert line.corrected.value is None and "do not describe it" in line.note
    (line,) = [x for x in correct_run(found, profile(), untested_ok=True) if x.attack == "bias/authority"]
    assert line.corrected.value is not None and line.note


def test_scores_are_no_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="grading scale"):
        correct_run(table(tmp_path, "robustjudge"), profile())


def test_range_of_the_true_rate_when_a_share_attacks() -> None:
    p = profile(transfer={"status": "transfers", "tests": []})
    r = attacked_range(p, 120, 400, 0.1, wilson(45, 50))
    assert r.honest.value == pytest.approx((0.3 - 0.1) / 0.8)
    assert r.worst.value == pytest.approx((0.3 - 0.1 - 0.1 * (0.9 - 0.1)) / 0.8)
    assert r.low < 0.15 < 0.25 < r.high
    none = attacked_range(p, 120, 400, 0.0, wilson(45, 50))
    assert none.worst.value == pytest.approx(none.honest.value)
    useless = attacked_range(profile(tp=50, fn=50, fp=50, tn=50), 1, 10, 0.1, wilson(4, 5), untested_ok=True)
    assert useless.worst.value is None and (useless.low, useless.high) == (0.0, 1.0)
    with pytest.raises(DataError, match="share"):
        attacked_range(p, 1, 2, 1.0, wilson(1, 2))


def test_range_holds_the_truth_in_simulation() -> None:
    rng = np.random.default_rng(7)
    se, fpr, theta, share, passes, runs = 0.9, 0.1, 0.3, 0.15, 0.8, 300
    held = 0
    for _ in range(runs):
        tp, fp = rng.binomial(150, se), rng.binomial(150, fpr)
        p = profile(tp, fp, 150 - tp, 150 - fp, transfer={"status": "transfers", "tests": []})
        attackers = rng.binomial(500, share)  # none of them deserves to pass
        good = rng.binomial(500 - attackers, theta)
        x = rng.binomial(good, se) + rng.binomial(500 - attackers - good, fpr) + rng.binomial(attackers, passes)
        r = attacked_range(p, int(x), 500, share, wilson(int(rng.binomial(60, passes)), 60))
        held += r.low <= theta * (1 - share) <= r.high
    assert held / runs >= 0.93
