"""All fifteen attacks of the paper in one plan: one table with access, budget used and controls."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import Any

import pytest
from bench import case_of, drive, judge_of

from robustjudge.attacks.library import attack
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.errors import ConfigError
from robustjudge.execution import Options, Run, execute
from robustjudge.judges import Judge, Panel, Prompted
from robustjudge.models.pull import model_path
from robustjudge.models.scripted.whitebox import Additive
from robustjudge.models.transformers import Transformers
from robustjudge.nouns import Case, Sampling
from robustjudge.objective import Objective, margins
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise
from robustjudge.threat import ThreatModel

pytestmark = pytest.mark.xdist_group("whitebox")  # the judges are trained once, by one worker

HEURISTIC = tuple(f"H{i}" for i in range(1, 9))
OPTIMISED = ("O1/rules", "O2/rules", "O3/rules", "O4", "O5", "O6", "O7")
CONTROLS = ("identity", "neutral/H6", "random_suffix/H6", "shuffled_payload/H6")
SPENT = ("queries", "losses", "gradients")


def all_fifteen(name: str, judge: Judge, model: Any, cases: Sequence[Case], folder: Path) -> Run:
    """The attacks of the paper and their controls on the last case; the universal ones are fitted on the others."""
    train = frozenset(c.id for c in cases[:-1])
    plan = Plan(
        lambda: cases,
        ((name, judge),),
        (Pointwise(),),
        tuple(attack(n, quick=True) for n in (*HEURISTIC, *OPTIMISED, *CONTROLS)),
        train=train,
        keep=lambda cell: cell.case.id not in train,
    )
    options = Options(root=folder / "runs", ledger=folder / "ledger.sqlite", models={model.name: model})
    return execute(plan, options)


def rows_of(run: Run) -> dict[str, dict[str, Any]]:
    """The rows of a run by attack id, fitting costs in ``fitted``."""
    with sqlite3.connect(run.folder.table) as db:
        db.row_factory = sqlite3.Row
        rows = [dict(r) for r in db.execute("SELECT * FROM trials")]
    found = {re.split(r"[/(]", r["attack"])[0]: r for r in rows}
    for name in ("O4", "O7"):
        (file,) = (run.path / "artefacts").glob(f"*.{name}.json")
        found[name]["fitted"] = json.loads(file.read_text())["spent"]
    return found


def checked(run: Run) -> dict[str, dict[str, Any]]:
    found = rows_of(run)
    assert set(found) == {n.partition("/")[0] for n in (*HEURISTIC, *OPTIMISED, *CONTROLS)}
    assert {r["attack_status"] for r in found.values()} <= {"ok", "exhausted"}, found
    free = (*HEURISTIC, "O4", "O7", *(c.partition("/")[0] for c in CONTROLS))  # fitted ones deploy without access
    assert all(found[name][s] == 0 for name in free for s in SPENT)
    assert [found["O5"][s] for s in SPENT] == [0, 160, 10] and 0 < found["O6"]["queries"] <= 29
    assert (found["O4"]["fitted"]["queries"], found["O7"]["fitted"]["queries"]) == (66, 256)
    assert {r["access"] for r in found.values()} >= {"NONE", "SCORE", "ODDS", "GRADIENT"}
    return found


def test_all_fifteen_attacks_complete_in_one_plan(tiny_folders: dict[str, Path], tmp_path: Path) -> None:
    """One task, one case, on a tiny judge; what was searched is kept as artefacts."""
    model = Transformers(str(tiny_folders["planted"]), threads=1)
    cases = (case_of(100), case_of(101), case_of(1))
    run = all_fifteen("tiny", judge_of(model), model, cases, tmp_path)
    assert {r["attacked_status"] for r in checked(run).values()} == {"ok"}
    kept = json.loads((run.path / "artefacts" / "tiny.none.pointwise.O5.json").read_text())
    assert kept["attack"]["provenance"]["surrogate"] == model.name and kept["spent"]["losses"] == 160
    assert kept["traces"][cases[-1].id][-1][1] == kept["attack"]["provenance"]["trace"][0]


def test_a_panel_of_two_vocabularies_is_searched_in_the_tokens_of_its_first_model(
    tiny_folders: dict[str, Path], raw_folder: Path, tmp_path: Path
) -> None:
    """The other one reads the text in its own tokens: the loss that the search saw is the mean of both, by text."""
    other = tmp_path / "other"
    shutil.copytree(raw_folder, other)
    told = json.loads((other / "tokenizer.json").read_text())
    vocab = told["model"]["vocab"]
    plain = [w for w in vocab if not w.startswith("<")]
    vocab.update(zip(plain, [vocab[w] for w in reversed(plain)], strict=True))
    (other / "tokenizer.json").write_text(json.dumps(told))
    models = [Transformers(str(folder), threads=1) for folder in (tiny_folders["planted"], other)]
    judges = [judge_of(m) for m in models]
    plan = Plan(
        lambda: iter([case_of(1)]), (("duo", Panel(tuple(judges))),), (Pointwise(),), (attack("O5", quick=True),)
    )
    options = Options(root=tmp_path / "runs", ledger=tmp_path / "l.sqlite", models={m.name: m for m in models})
    run = execute(plan, options)
    (row,) = run.table().rows()
    assert (row["attack_status"], row["losses"], row["gradients"]) == ("ok", 160, 10)
    kept = json.loads((run.path / "artefacts" / "duo.none.pointwise.O5.json").read_text())
    (((_, text),), (best,)) = kept["attack"]["texts"], kept["attack"]["provenance"]["trace"]
    again = [Transformers(m.path.as_posix(), threads=1) for m in models]
    found = [
        drive(m, margins(Objective().bound(case_of(1), j, Pointwise()), [text]))[0].worth for m, j in zip(again, judges)
    ]
    assert 1 / (1 + exp(-sum(found) / 2)) == pytest.approx(best, abs=1e-4)


@pytest.mark.campaign
@pytest.mark.model
@pytest.mark.timeout(1800)
def test_all_fifteen_attacks_complete_on_the_embedded_model(tmp_path: Path) -> None:
    """Within 30 minutes, the dequantised 135M model being judge and victim, its replies held to the verdict line."""
    try:
        model_path("smollm2")
    except ConfigError as missing:
        pytest.skip(str(missing))
    model = Transformers("smollm2", threads=1)
    judge = Prompted(model.name, template("brief"), Sampling(max_tokens=16), expect=True, constrained=True)
    began = time.perf_counter()
    cases = [c for c in builtin() if c.kind == "knowledge" and c.language == "en"][:3]
    run = all_fifteen("smollm2", judge, model, cases, tmp_path)
    took = time.perf_counter() - began
    print(f"\n{model.name}, template brief, verdicts held to their line, quick budgets, {took:.0f} s")
    print(f"{'attack':18} {'access':9} {'queries':>7} {'losses':>6} {'grads':>5} {'status':10} verdict, expected score")
    for r in sorted(rows_of(run).values(), key=lambda r: (bool(r["control"]), r["attack"])):
        spent = {**{s: r[s] for s in SPENT}, **{s: n for s, n in r.get("fitted", {}).items() if s in SPENT}}
        moved = [f"{r[f'clean_{x}'] or 0:{f}} -> {r[f'attacked_{x}'] or 0:{f}}" for x, f in MOVES]
        fit = " (fitted on two other cases)" if "fitted" in r else ""
        print(
            f"{r['attack']:18} {r['access']:9} {spent['queries']:7.0f} {spent['losses']:6.0f} {spent['gradients']:5.0f}"
            f" {r['attacked_status']:10} {', '.join(moved)}{fit}"
        )
    assert took < 1800
    assert {(r["clean_status"], r["attacked_status"]) for r in checked(run).values()} == {("ok", "ok")}


MOVES = (("score", "g"), ("expected", ".2f"))
"""What the table shows of a row, clean and attacked."""


def test_a_run_tells_what_surrogate_and_victim_cost_apart(tiny_folders: dict[str, Path], tmp_path: Path) -> None:
    """Calls by model, and the tokens that the surrogate ran forward and backward; a repeat runs none."""
    white = Transformers(str(tiny_folders["planted"]), threads=1)
    victim = Additive()
    plan = Plan(
        lambda: iter([case_of(1)]),
        (("victim", Prompted(victim.name, template("robustjudge"))),),
        (Pointwise(),),
        (attack("O5", quick=True),),
        threats=(ThreatModel("surrogate", judge_of(white)),),
    )
    models = {white.name: white, victim.name: victim}
    spent = []
    for again in range(2):
        opened = models if not again else {**models, white.name: Transformers(str(tiny_folders["planted"]), threads=1)}
        run = execute(plan, Options(root=tmp_path / f"{again}", ledger=tmp_path / "l.sqlite", models=opened))
        spent.append(json.loads((run.path / "manifest.json").read_text())["counts"])
    first, second = spent
    assert first["sent_by_model"] == {victim.name: 3, white.name: 160} and first["tokens_by_role"]["judge"] > 0
    ran = first["tokens_run"][white.name]
    assert ran["backward"] >= 10 * 8 and ran["forward"] > 160 + ran["backward"]
    assert second["sent"] == 0 and second["tokens_run"].get(white.name, {}).get("backward", 0) == 0
