"""What searches found is kept with its provenance, and replays on another judge."""

from __future__ import annotations

import json
from pathlib import Path

from robustjudge.attacks.library import attack
from robustjudge.config.build import fitted_at
from robustjudge.execution import Options, Run, execute
from robustjudge.judges import Prompted
from robustjudge.nouns import Access, Case
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise

CASES = tuple(Case(f"c{i}", f"task {i}", f"answer {i}", references=(f"solution {i}",)) for i in range(3))


def ran(model: str, attacks: tuple, folder: Path, store: str = "full") -> Run:
    plan = Plan(lambda: CASES, (("j", Prompted(model, template("vanilla"))),), (Pointwise(),), attacks)
    return execute(plan, Options(root=folder / "runs", ledger=folder / "ledger.sqlite", store=store))


def test_texts_of_a_search_are_kept_and_replayed_on_another_judge(tmp_path: Path) -> None:
    found = ran("scripted/additive", (attack("O5", quick=True), attack("H1"), attack("identity")), tmp_path)
    (file,) = (found.path / "artefacts").iterdir()
    assert file.name == "j.none.pointwise.O5.json"  # nothing was searched by the others
    told = json.loads(file.read_text())
    origin = told["attack"]["provenance"]
    assert origin["surrogate"] == "scripted/additive" and origin["cases"] == ["c0", "c1", "c2"]
    assert told["spent"] == {"queries": 0, "writes": 0, "losses": 480, "gradients": 30} and origin["queries"] == 480
    assert set(told["traces"]) == set(origin["cases"]) and len(origin["trace"]) == 3
    assert told["search"]["steps"] == 10

    again = fitted_at(file)
    assert again.access == Access.NONE and again.channel == "append"
    moved = ran("scripted/additive", (again,), tmp_path / "b").table()["attacked_score"]
    assert list(moved) == list(found.table().where(found.table()["attack"].equals("O5"))["attacked_score"])
    still = ran("scripted/table", (again,), tmp_path / "c").table()
    assert list(still["attacked_score"]) == list(still["clean_score"])


def test_a_run_that_keeps_no_text_keeps_no_artefact(tmp_path: Path) -> None:
    found = ran("scripted/additive", (attack("O5", quick=True),), tmp_path, "hashes")
    assert not list((found.path / "artefacts").glob("*"))
