"""Killed in the middle of any step of the flow, and started again: every file is whole, and what it says is what an
uninterrupted flow says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_help import CASES, Cli

from robustjudge.engine.folder import Folder
from robustjudge.gate.contracts import read_document
from robustjudge.review import open_store
from robustjudge.review.queue import findings
from robustjudge.table import open_run

CONFIG = """\
name: flow
cases: [{source: cases.jsonl}]
judges: {mine: {model: scripted/gameable}}
attacks: [H1, H5]
repeats: 2
policy: policy.yaml
"""
AFTER = (("gate", "runs", "--junit", "--sarif", "--comment", "c.md", "-q"), ("report", "runs"), ("export", "runs"))


def begin(cli: Cli) -> None:
    cli.write("cases.jsonl", CASES)
    cli.write("policy.yaml", "rule: strict\nminimum_n: 2\nhigh_stakes: true\n")
    cli.write("robustjudge.yaml", CONFIG)


def killed(cli: Cli, delay: float, *words: str) -> None:
    """Start a step and kill it after ``delay`` seconds, wherever it is then."""
    child = subprocess.Popen(
        [sys.executable, "-m", "robustjudge", *words], cwd=cli.folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    time.sleep(delay)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()


def told(cli: Cli) -> dict[str, object]:
    """What the flow ended in, without times, names of folders and random parts."""
    run = Folder.open(cli.folder / "runs").path
    report = read_document("contract_b", run / "robustness_report.json")
    ElementTree.parse(run / "junit.xml")
    json.loads((run / "results.sarif").read_text("utf-8"))
    assert "</html>" in (run / "report.html").read_text("utf-8")
    assert not [p for p in run.rglob(".*") if p.name != ".lock"], (
        "no half-written file is left under a name that counts"
    )
    db = open_run(run / "run.sqlite")
    rows = db.execute("SELECT cell, clean_score, attacked_score FROM trials ORDER BY cell").fetchall()
    db.close()
    return {
        "rows": rows,
        "failures": report["failure_details"],
        "gate": report["x_robustjudge"]["gate"]["words"],
        "csv": (run / "exports").is_dir() and sorted(p.suffix for p in (run / "exports").iterdir()),
    }


def test_a_flow_that_is_killed_in_every_step_ends_like_one_that_is_not(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(cli)
    assert cli("run").code == 0
    for words in AFTER:
        cli(*words)
    goal = told(cli)

    other = Cli(tmp_path / "other", cli._capsys)
    begin(other)
    monkeypatch.chdir(other.folder)
    for delay in (0.9, 1.6):
        killed(other, delay, "run")
    last = [p for p in sorted((other.folder / "runs").glob("2*")) if (p / "run.sqlite").is_file()]
    resumed = other("run", "-c", "robustjudge.yaml", "--resume", str(last[-1])) if last else other("run")
    assert resumed.code == 0, resumed.err
    for words in AFTER:
        killed(other, 0.9, *words)
        assert other(*words).code in (0, 1, 3)
    assert told(other) == goal

    store = open_store(other.folder / ".robustjudge/review.sqlite")
    found = findings(Folder.open(other.folder / "runs").path)
    for item in found[:1]:
        store.decide(item.id, 0, "confirm", "ann")
    store.close()
    killed(other, 1.0, *AFTER[0])
    assert other(*AFTER[0]).code in (1, 3)
    assert (
        not found
        or open_store(other.folder / ".robustjudge/review.sqlite").standing()[found[0].id].decision == "confirm"
    )
