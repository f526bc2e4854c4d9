"""Exit codes as a process: 0, 1, 2, 3, 4 and 130; each error says what happened and what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from cli_help import CASES, Cli

SLOW = """\
name: slow
cases: [{source: builtin}]
judges: {mine: {model: "scripted/slow?seconds=0.5"}}
attacks: [H1]
"""


def test_a_good_run_exits_0_and_leaves_reports(project: Cli) -> None:
    said = project.process("run")
    assert said.code == 0, said.err
    names = {p.name for p in (project.folder / "runs" / "latest").iterdir()}
    assert {"manifest.json", "run.sqlite", "report.html", "report.md", "report.json"} <= names
    assert "3 cases, 15 cells" in said.err


def test_an_unknown_attack_exits_2_with_the_nearest(project: Cli) -> None:
    said = project("run", "--attack", "fake_reasonin")
    assert said.code == 2
    assert "unknown attack 'fake_reasonin'" in said.err and "fake reasoning" in said.err


def test_an_unknown_key_exits_2_with_file_key_and_nearest(project: Cli) -> None:
    project.write("robustjudge.yaml", "judges: {mine: {model: scripted/noisy}}\natacks: [H1]\n")
    said = project("run")
    assert said.code == 2
    assert "robustjudge.yaml" in said.err and "'atacks'" in said.err and "'attacks'" in said.err


def test_broken_yaml_exits_2_with_the_line(project: Cli) -> None:
    project.write("robustjudge.yaml", "name: x\njudges: {mine: [\n")
    said = project("run")
    assert said.code == 2
    assert "line 3" in said.err


def test_a_missing_case_file_exits_2_and_names_it(project: Cli) -> None:
    said = project("run", "--cases", "nowhere.csv")
    assert said.code == 2
    assert "nowhere.csv" in said.err


def test_a_bad_row_is_told_with_its_line_and_the_rest_goes_on(project: Cli) -> None:
    project.write("cases.jsonl", CASES + '{"id": "d", "task": "x", "response": ""}\n' + CASES.splitlines()[0])
    said = project("run")
    assert said.code == 0
    assert "cases.jsonl:4" in said.err and "cases.jsonl:5" in said.err and "duplicate id 'a': lines 1 and 5" in said.err
    assert "2 rows set aside in all; 3 cases can be used" in said.err
    import json

    manifest = json.loads((project.folder / "runs/latest/manifest.json").read_text("utf-8"))
    assert manifest["inputs"]["rows_set_aside"] == 2
    assert manifest["inputs"]["cases"] == 3
    assert len(manifest["inputs"]["bad_rows"]) == 2
    assert "rows set aside" in (project.folder / "runs/latest/report.html").read_text("utf-8")
    assert "2 rows of the input could not be used" in (project.folder / "runs/latest/report.md").read_text("utf-8")


def test_ids_that_two_files_share_stop_the_run_before_anything_is_sent(project: Cli) -> None:
    project.write("more.jsonl", CASES)
    project.write(
        "robustjudge.yaml",
        "cases: [{source: cases.jsonl}, {source: more.jsonl}]\njudges: {m: {model: scripted/noisy}}\nattacks: [H1]\n",
    )
    said = project("run")
    assert said.code == 2
    assert "'a' is in both cases.jsonl and more.jsonl" in said.err
    assert not (project.folder / "runs").exists()


def test_a_model_without_log_probabilities_is_refused_before_any_call(project: Cli) -> None:
    said = project("run", "--judge", "anthropic/claude-sonnet-4-5-20250929", "--attack", "E3")
    assert said.code == 2
    assert "E3" in said.err and "needs ODDS access" in said.err and "claude" in said.err


def test_a_missing_key_exits_2_and_names_the_variable(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = project("run", "--judge", "openai/gpt-4o-mini-2024-07-18", "--attack", "H1")
    assert said.code == 2
    assert "OPENAI_API_KEY" in said.err


@pytest.mark.timeout(120)
def test_a_dead_endpoint_exits_4_and_is_no_verdict_about_the_judge(project: Cli) -> None:
    said = project.process("run", "--judge", "http://127.0.0.1:9/v1#m", "--attack", "H5", "--limit", "1", timeout=110)
    assert said.code == 4
    assert "nothing was measured" in said.err
    assert "transport" in said.out


def test_a_spent_cap_exits_4_and_resume_finishes(project: Cli) -> None:
    said = project("run", "--max-calls", "4", "-j", "1")
    assert said.code == 4, said.err
    assert project("run", "--resume", "runs", "-c", "robustjudge.yaml").code == 0


def test_a_second_run_in_one_folder_is_refused(project: Cli) -> None:
    assert project("run").code == 0
    from robustjudge.engine.folder import Folder

    folder = Folder.open(project.folder / "runs")
    folder.lock()
    try:
        said = project.process("run", "--resume", "runs")
    finally:
        folder.unlock()
    assert said.code == 2
    assert "another run is writing here" in said.err


def test_replay_only_without_a_ledger_exits_4(project: Cli) -> None:
    said = project("run", "--mode", "replay-only")
    assert said.code == 4
    assert "not_recorded" in said.err


def test_a_plan_without_cells_exits_3(project: Cli) -> None:
    project.write("cases.jsonl", '{"id": "d", "task": "", "response": ""}\n')
    said = project("run")
    assert said.code == 3
    assert "1 rows set aside" in said.err and "no case can be used" in said.err


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.timeout(90)
def test_ctrl_c_exits_130_and_the_run_can_go_on(project: Cli, times: int) -> None:
    project.write("robustjudge.yaml", SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "robustjudge", "run", "-j", "2"],
        cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"CI": "true"},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list((project.folder / "runs").glob("*/run.sqlite*")):
        time.sleep(0.1)
    time.sleep(1.0)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    started = time.monotonic()
    _, err = process.communicate(timeout=40)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume" in err
    if times == 2:
        assert time.monotonic() - started < 8
