"""``robustjudge gate`` as a user runs it: exit codes, files, and messages for what is wrong with the input."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_runs import run

from robustjudge.cli.app import run as command
from robustjudge.gate.check import check
from robustjudge.gate.policy import Policy
from robustjudge.judges import Prompted
from robustjudge.models.scripted import Copycat, Down, Table
from robustjudge.prompts.library import template

Write = Callable[[str, str], Path]


def test_pass_and_fail_with_every_file(robust_run: Path, weak_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["gate", str(robust_run), "--junit", "--sarif"]) == 0
    assert command(["gate", str(weak_run), "--junit", "--sarif"]) == 1
    out = capsys.readouterr().out
    assert "planted: pass" in out and "planted: fail" in out and "80 % power" in out
    for name in ("robustness_report.json", "junit.xml", "results.sarif"):
        assert (weak_run / name).is_file()
    assert command(["gate", str(weak_run), "--exit-code-on-fail", "7", "-q"]) == 7
    assert command(["gate", str(robust_run), "--exit-code-on-fail", "7", "-q"]) == 0


def test_inconclusive_and_incomplete_are_not_mapped(tmp_path: Path, robust_run: Path, written: Write) -> None:
    many = written("p.yaml", "minimum_n: 500\n")
    assert command(["gate", str(robust_run), "--policy", str(many), "--exit-code-on-fail", "0"]) == 3
    assert command(["gate", str(run(tmp_path, Down(), 4, ("H1",))), "--exit-code-on-fail", "0"]) == 4


def test_what_is_wrong_is_exit_2(
    robust_run: Path, weak_run: Path, tmp_path: Path, written: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        (["--policy", str(written("a.yaml", "treshold: 0.2\n"))], "did you mean threshold"),
        (["--policy", str(written("b.yaml", "max_rate: 0.05\nminimum_n: 30\n"))], "59"),
        (["--policy", str(written("c.yaml", "unit: points\nthreshold: 99\n"))], "outside the judge's scale"),
        (["--policy", str(written("d.yaml", "categories: {formatting_hack: {threshold: 0.1}}\n"))], "format_hacking"),
        (["--policy", str(tmp_path / "none.yaml")], "no such policy file"),
        (["--waivers", str(written("w.yaml", "- owner: x\n"))], "is missing"),
        (["--baseline", str(tmp_path)], "nothing can be compared"),
        (["--judge", "plantet"], "planted"),
    ]
    for args, words in cases:
        assert command(["gate", str(robust_run), *args]) == 2, args
        assert words in capsys.readouterr().err, args
    assert command(["gate", str(tmp_path / "nowhere")]) == 2
    other = run(tmp_path / "other", Table(), 4, ("H1",))
    assert command(["gate", str(other), "--baseline", str(robust_run)]) == 2
    assert "do not measure the same thing" in capsys.readouterr().err


def test_a_damaged_or_newer_run_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path, Table(), 3, ("H1",))
    db = sqlite3.connect(folder / "run.sqlite")
    db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    db.commit()
    db.close()
    assert command(["gate", str(folder)]) == 2
    assert "newer version" in capsys.readouterr().err
    for extra in ("run.sqlite-wal", "run.sqlite-shm"):
        (folder / extra).unlink(missing_ok=True)
    (folder / "run.sqlite").write_bytes(b"not a database at all" * 100)
    assert command(["gate", str(folder)]) == 4
    assert "not a readable run file" in capsys.readouterr().err


def test_several_judges_are_decided_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judges = {n: Prompted(f"scripted/{n}", template("robustjudge")) for n in ("steady", "weak")}
    from gate_runs import plan

    from robustjudge.execution import Options, execute

    models = {"scripted/steady": Table(), "scripted/weak": Copycat(judge=Table())}
    options = Options(root=tmp_path / "runs", ledger=None, models=models)
    folder = execute(plan(20, ("json_injection",), judges), options).path
    policy = tmp_path / "p.yaml"
    policy.write_text("minimum_n: 10\n", "utf-8")
    assert command(["gate", str(folder), "--policy", str(policy)]) == 1
    out = capsys.readouterr().out
    assert "steady: pass" in out and "weak: fail" in out
    reports = [json.loads(p.read_text()) for p in folder.glob("judges/*/robustness_report.json")]
    assert {r["judge_id"]: r["overall_robustness_pass"] for r in reports} == {"steady": True, "weak": False}
    assert command(["gate", str(folder), "--policy", str(policy), "--judge", "steady", "-q"]) == 0


def test_selftest_and_preview(
    robust_run: Path, tmp_path: Path, written: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["gate", "selftest", str(robust_run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told["per_comparison"]["value"] == 0
        and told["flip_rate"]["value"] == 0
        and told["mde_at_80_percent_power"] < 0.03
    )
    policy = written("r.yaml", "baseline: {rule: regression, tolerance: 0.02, sensitivity: 0.92, specificity: 0.88}\n")
    assert command(["gate", "preview", "--policy", str(policy)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split()[0] == "200" and "62.0 %" in lines[-2]


def test_the_step_summary_and_annotations(
    weak_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    body = tmp_path / "comment.md"
    assert command(["gate", str(weak_run), "--comment", str(body)]) == 1
    text = step.read_text("utf-8")
    assert text.startswith("before\n## ❌ robustjudge gate: fail") and "| format\\_hacking | fail |" in text
    assert body.read_text("utf-8").startswith("<!-- robustjudge-gate -->")
    assert "::error" in capsys.readouterr().out


def test_the_decision_of_a_large_run_is_quick(tmp_path: Path) -> None:
    """10,000 rows by copying a real run's; the bound leaves room for a busy machine (figure: benchmarks/gate_decision.py)."""
    folder = run(tmp_path, Table(), 20, ("H1", "authority", "json_injection"))
    grow(folder, 10_000)
    start = time.process_time()
    _, d = check(folder, Policy())
    spent = time.process_time() - start
    print(f"decided on {d.planned} attacked trials in {spent:.2f} s of processor time")
    assert d.verdict == "pass"
    assert spent < 3.0


def grow(folder: Path, rows: int) -> None:
    """Copy the trials of a run under new case ids until it holds ``rows``."""
    db = sqlite3.connect(folder / "run.sqlite")
    (have,) = db.execute("SELECT count(*) FROM trials").fetchone()
    columns = [r[1] for r in db.execute("PRAGMA table_info(trials)")]
    picked = ", ".join(f"{c} || '-' || ?" if c in ("cell", "case_id", "cluster") else f'"{c}"' for c in columns)
    for i in range(1, -(-rows // have)):
        db.execute(f"INSERT INTO trials SELECT {picked} FROM trials WHERE cell NOT LIKE '%-%'", (str(i),) * 3)
    db.commit()
    db.close()
