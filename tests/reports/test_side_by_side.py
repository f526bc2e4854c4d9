"""Attack success under every threat model, and an appeal turn by turn, in one table each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustjudge import reports
from robustjudge.attacks.library import attack
from robustjudge.execution import Options, Run, execute
from robustjudge.judges import Prompted
from robustjudge.models.scripted.fooled import Obedient
from robustjudge.models.scripted.plain import LengthBiased
from robustjudge.models.scripted.whitebox import Additive
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Appeal, Pointwise
from robustjudge.reports.model import build
from robustjudge.reports.words import threat_words
from robustjudge.threat import ThreatModel
from table_help import identity, scored, write

CASES = tuple(Case(f"c{i}", f"Task {i}: name a prime.", f"{i}", (f"{2 + i}",)) for i in range(3))


def ran(tmp_path: Path, model: Any, *attacks: str, **more: Any) -> Run:
    plan = Plan(
        lambda: iter(CASES),
        (("toy", Prompted(model.name, template("robustjudge"))),),
        more.pop("protocols", (Pointwise(),)),
        tuple(attack(n, quick=True) for n in attacks),
        cleans=1,
        **more,
    )
    return execute(plan, Options(root=tmp_path / "runs", ledger=tmp_path / "l.sqlite", models={model.name: model}))


def cells(table: dict[str, Any], name: str) -> list[float | None]:
    (line,) = [x for x in table["lines"] if x["attack"] == name]
    return [None if e is None else e["value"] for e in line["cells"]]


def test_every_attack_stands_under_every_threat_model_with_its_controls(tmp_path: Path) -> None:
    given = [identity(scored(f"c{i}", 3, 3)) for i in range(4)]
    given += [scored(f"c{i}", 3, 9) for i in range(4)]
    for threat, hits in (("victim", 4), ("surrogate small", 1), ("victim, 8 draws", 2)):
        given += [scored(f"c{i}", 3, 9 if i < hits else 3, "O2", access="SCORE", threat=threat) for i in range(4)]
    home = write(tmp_path / "run", given, {})
    report = build(home)
    (table,) = report["side_by_side"]
    assert table["columns"] == [
        "tuned on this very judge, or on none",
        "tuned on the surrogate judge small",
        "tuned on this very judge, over 8 draws of the defense",
    ]
    assert cells(table, "O2") == [1.0, 0.25, 0.5]
    assert cells(table, "H1") == [1.0, None, None] and cells(table, "identity") == [0.0, 0.0, 0.0]
    for panel in report["panels"]:  # the null control was measured once and counts everywhere
        net = {x["attack"]: x["figures"].get("asr_net") for x in panel["lines"]}
        assert net["O2"]["value"] == dict(zip(("v", "s", "8"), cells(table, "O2")))[_short(panel["threat"])]
        assert not [f for f in panel["flags"] if f["name"] == "no_null"]
    assert "success by threat model" in reports.write(home)["md"].read_text("utf-8")


def _short(threat: str) -> str:
    return "8" if "8" in threat else threat[0]


def test_threat_models_in_words() -> None:
    assert threat_words("victim") == ""
    assert threat_words("undefended") == "tuned on the undefended judge"
    assert threat_words("victim cheap, win or not, rationale") == (
        "tuned on this very judge (cheap), told win or not, shown the rationale"
    )


def test_threat_models_of_one_kind_keep_their_rows_and_artefacts_apart(tmp_path: Path) -> None:
    threats = (ThreatModel(), ThreatModel(draws=3), ThreatModel(verdict_only=True))
    run = ran(tmp_path, LengthBiased(chars=40), "identity", "O2/rules", threats=threats)
    assert {r["threat"] for r in run.table().rows()} == {"victim", "victim, 3 draws", "victim, win or not"}
    kept = {f.name: json.loads(f.read_text("utf-8")) for f in (run.path / "artefacts").iterdir()}
    assert set(kept) == {
        f"toy.none.pointwise.O2-rules.{t}.json" for t in ("victim", "victim-3-draws", "victim-win-or-not")
    }
    assert all(len(k["attack"]["texts"]) == len(CASES) for k in kept.values())


def test_an_appeal_is_told_turn_by_turn_beside_repeating_and_resubmitting(tmp_path: Path) -> None:
    """A judge that gives in to a word of the second plea: 0, 0, 1, 1; the same plea never gets there."""
    attacks = ("plea", "plea/same", "Resubmit/rules", "Resubmit/same")
    run = ran(tmp_path, Obedient(words=("overlooked",)), *attacks, protocols=(Appeal(turns=3), Pointwise()))
    report = build(run.path)
    (table,) = report["side_by_side"]
    assert table["columns"] == [
        *("first verdict", "after plea 1", "after plea 2", "after plea 3"),
        "resubmitted, no conversation",
    ]
    assert cells(table, "plea") == [0.0, 0.0, 1.0, 1.0, None]
    assert cells(table, "plea/same") == [0.0, 0.0, 0.0, 0.0, None]
    assert cells(table, "Resubmit/rules") == [None] * 4 + [0.0]
    (told,) = [s for s in report["summary"] if "appeal of 3 turns" in s]
    assert told.endswith("the same plea repeated does in 0 %.")
    page = reports.write(run.path)["html"].read_text("utf-8")
    assert "success turn by turn" in page and "plea on toy, appeal: score 3 → 10" in page


def test_a_universal_attack_is_fitted_on_every_surrogate_and_tried_on_every_victim(tmp_path: Path) -> None:
    """The transfer matrix: a phrase found on the one judge, deployed on both; what fitting cost is told per trial."""
    models = {w: Additive(weights=((w, 0.4),)) for w in ("excellent", "thorough")}
    for word, model in models.items():
        object.__setattr__(model, "name", f"toy/{word}")
    judges = tuple((w, Prompted(m.name, template("robustjudge"))) for w, m in models.items())
    plan = Plan(
        lambda: iter(CASES),
        judges,
        (Pointwise(), Appeal(turns=1)),  # an appeal has no universal attack to fit
        (attack("identity"), replace(attack("O7", quick=True), positions=1), attack("neutral/O7", quick=True)),
        threats=tuple(ThreatModel("surrogate", j, name=w) for w, j in judges),
        train=frozenset({"c0"}),
        cleans=1,
    )
    options = Options(root=tmp_path / "runs", ledger=tmp_path / "l.sqlite", models={m.name: m for m in models.values()})
    run = execute(plan, options)
    report = build(run.path)
    found = {(t["judge"], w): cells(t, "O7")[i] for t in report["side_by_side"] for i, w in enumerate(models)}
    assert [t["columns"] for t in report["side_by_side"]] == [[f"tuned on the surrogate judge {w}" for w in models]] * 2
    assert found == {(a, b): float(a == b) for a in models for b in models}
    for p in report["panels"]:
        assert {x["attack"]: x["counts"]["planned"] for x in p["lines"]} == {"O7": 2, "identity": 3, "neutral(O7)": 2}
        assert p["fitted"]["O7"] == {
            "access": "ODDS",
            "cases": 1,
            "queries": 64,
            "each": 32.0,
            "losses": 0,
            "gradients": 0,
            "writes": 0,
        }
    assert (
        reports.write(run.path)["md"].read_text("utf-8").count("fitted once on 1 cases, 32.0 evaluations a trial") == 4
    )
