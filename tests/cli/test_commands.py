from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from cli_help import CONFIG, Cli

from robustjudge.cli.lists import KINDS


def test_init_writes_a_project_that_runs_lints_and_passes_doctor(cli: Cli) -> None:
    assert cli("init").code == 0
    assert cli("doctor").code == 0
    assert cli("lint", "robustjudge.yaml").code == 0
    said = cli("run")
    assert said.code == 0, said.err
    assert "mine, pointwise" in said.out


def test_init_never_overwrites_without_force(cli: Cli) -> None:
    mine = cli.write("cases.jsonl", "mine\n")
    said = cli("init")
    assert said.code == 2
    assert "cases.jsonl" in said.err and "--force" in said.err
    assert mine.read_text() == "mine\n"
    assert not (cli.folder / "robustjudge.yaml").exists()
    assert cli("init", "--force").code == 0
    assert mine.read_text() != "mine\n"


def test_doctor_tells_faults_and_never_the_key(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        "robustjudge.yaml", "judges: {m: {model: openai/gpt-4o}}\nattacks: [H1]\ncases: [{source: cases.jsonl}]\n"
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = project("doctor")
    assert said.code == 2
    assert "OPENAI_API_KEY is not set" in said.out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    said = project("doctor")
    assert said.code == 0
    assert "OPENAI_API_KEY is set" in said.out and "alias" in said.out
    assert "very-secret" not in said.out + said.err


def test_doctor_finds_a_damaged_ledger(project: Cli) -> None:
    project.write(".robustjudge/ledger.sqlite", "this is no database" * 100)
    said = project("doctor")
    assert said.code == 4
    assert "fault ledger" in said.out


@pytest.mark.timeout(60)
def test_doctor_live_reports_a_scripted_model_as_fine(project: Cli) -> None:
    said = project("doctor", "--live")
    assert said.code == 0
    assert "live: scripted/gameable" in said.out


@pytest.mark.parametrize("kind", list(KINDS))
def test_list_names_things_with_their_origin(cli: Cli, kind: str) -> None:
    said = cli("list", kind)
    assert said.code == 0
    for line in said.out.splitlines():
        assert line.endswith("]")
    assert cli("list", kind, "--names").out.count("\n") == said.out.count("\n")


def test_one_thing_is_listed_in_full(cli: Cli) -> None:
    """A shipped prompt or suite is printed as its file, to start from; anything else as its line."""
    from robustjudge.prompts.library import source
    from robustjudge.suite import suite_source

    assert cli("list", "templates", "vanilla").out == source("vanilla").rstrip("\n") + "\n"
    assert cli("list", "suites", "paper-rq2").out == suite_source("paper-rq2").rstrip("\n") + "\n"
    assert cli("list", "attacks", "H6").out.startswith("H6 ") and cli("list", "attacks", "H6").out.count("\n") == 1
    said = cli("list", "templates", "vanila")
    assert said.code == 2 and "vanilla" in said.err


def test_list_of_an_unknown_kind(cli: Cli) -> None:
    said = cli("list", "atacks")
    assert said.code == 2
    assert "attacks" in said.err


def test_cache_ls_prune_and_clear(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project("cache", "ls").code == 2
    project("run")
    assert "scripted/gameable: " in project("cache", "ls").out
    assert "0 replies deleted" in project("cache", "prune", "--yes").out
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert project("cache", "clear").code == 130
    assert "0 replies deleted" not in project("cache", "clear", "--yes").out
    assert "0 replies," in project("cache", "ls").out
    assert project("report").code == 0, "a finished run does not need the ledger"


def test_read_prints_each_miss_and_the_count_last(cli: Cli) -> None:
    rows = [
        {
            "id": "one",
            "scale": {"min": 1, "max": 10},
            "raw_reply": "VERDICT: 7",
            "expected": {"status": "ok", "value": 7},
        },
        {
            "id": "two",
            "scale": {"min": 1, "max": 10},
            "raw_reply": "VERDICT: 7",
            "expected": {"status": "ok", "value": 8},
        },
    ]
    cli.write("replies.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    said = cli("read", "replies.jsonl")
    assert said.code == 1
    assert "two: expected ok 8, got ok 7" in said.out
    assert said.out.splitlines()[-1] == "1 of 2 cases as expected"
    cli.write("replies.jsonl", json.dumps(rows[0]) + "\n")
    assert cli("read", "replies.jsonl").code == 0
    assert cli("read", "replies.jsonl", "--reader", "robustjudge.scales.audit:ours").code == 0
    assert cli("read", "replies.jsonl", "--command", "false").code == 1
    assert cli("read", "replies.jsonl", "--command", "x", "--reader", "y:z").code == 2
    assert cli("read", "nowhere.jsonl").code == 2


def test_lint_exits_1_on_an_error_and_names_the_line(cli: Cli) -> None:
    cli.write(
        "reader.py",
        "import re\n\ndef read(text):\n    found = re.search(r'\\d+', text)\n    return int(found[0]) if found else 5\n",
    )
    assert cli("lint", "robustjudge").code == 0
    said = cli("lint", "reader.py")
    assert said.code == 1
    assert "reader.py:" in said.out
    assert cli("lint", "no_such_template").code == 2
    assert cli("lint", "missing.py").code == 2
    cli.write("judge.txt", "Question: {question}\nAnswer: {answer}\nVERDICT: <1-10>\n")
    said = cli("lint", "judge.txt")
    assert said.code == 2 and "name it in robustjudge.yaml" in said.err


def test_report_export_and_compare(project: Cli) -> None:
    project("run", "-o", "a")
    project.write(
        "robustjudge.yaml",
        CONFIG.replace("gameable", "constant"),
    )
    project("run", "-o", "b")
    said = project("report", "a", "--format", "md")
    assert said.code == 0 and "report.md" in said.out
    for form in ("csv", "jsonl"):
        assert project("export", "a", "--format", form).code == 0
    with (project.folder / "a/latest/exports/trials.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 15
    said = project("compare", "a", "b")
    assert said.code == 0
    assert "of 15 trials flipped" in said.out
    assert "before: success" in said.out and "after: held" in said.out
    assert "changed between the runs: judges" in said.out
    assert project("compare", "a", "a").out.startswith("0 of 15 trials flipped")
    project("run", "-o", "c", "--limit", "1")
    said = project("compare", "a", "c")
    assert said.code == 2
    assert "NotComparable" in said.err and "2 cases" in said.err


def test_export_and_report_of_nothing(project: Cli) -> None:
    assert project("export", "nowhere").code == 2
    assert project("report", "nowhere").code == 2
    project("run")
    assert project("export", "--format", "xls").code == 2
    assert project("report", "--format", "pdf").code == 2


def _a_cell(folder: Path) -> str:
    first = (folder / "runs/latest/exports/trials.jsonl").read_text("utf-8").splitlines()[0]
    return str(json.loads(first)["cell"])


def test_trace_and_replay_tell_the_stored_dialogue(project: Cli) -> None:
    project("run")
    project("export", "--format", "jsonl")
    cell = _a_cell(project.folder)
    said = project("trace", cell[:12])
    assert said.code == 0
    assert "Complete to scripted/gameable as judge, clean/0" in said.out and "<<< ok:" in said.out
    said = project("replay", cell[:12])
    assert said.code == 0
    assert "the same asks as in the run" in said.out and "the same verdicts" in said.out
    assert project("trace", "zzz").code == 2


def test_replay_reports_a_divergence_and_a_pruned_ledger(project: Cli) -> None:
    import sqlite3

    project("run")
    project("export", "--format", "jsonl")
    cell = _a_cell(project.folder)
    table = project.folder / "runs/latest/run.sqlite"
    with sqlite3.connect(table) as db:
        db.execute("UPDATE trials SET trace = 'other' WHERE cell = ?", (cell,))
    said = project("replay", cell)
    assert said.code == 2
    assert "diverged" in said.out
    project("cache", "clear", "--yes")
    said = project("replay", cell)
    assert said.code == 4
    assert "the ledger lacks" in said.err


def test_quality_check_runs_the_ladder(cli: Cli) -> None:
    said = cli("quality", "check", "--cases", "builtin/mathematics")
    assert said.code == 0
    assert said.out.startswith("mathematics [exact_match]")
    assert cli("quality", "install", "chrf").code == 2


def test_models_ls_and_an_unknown_model(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBUSTJUDGE_HOME", str(cli.folder / "home"))
    assert "smollm2" in cli("models", "ls").out
    said = cli("models", "pull", "smolm2")
    assert said.code == 2
    assert "smollm2" in said.err


@pytest.mark.timeout(120)
def test_selftest_recovers_the_planted_rates(cli: Cli) -> None:
    said = cli("selftest", "--limit", "2")
    assert said.code == 0, said.out
    assert "intervals miss the true rate" in said.out


def test_selftest_tolerance_is_the_binomial_tail() -> None:
    from scipy.stats import binom

    from robustjudge.cli.selftest import tolerated

    for n in (5, 42, 100):
        k = tolerated(n)
        assert binom.sf(k, n, 0.05) < 0.001 <= binom.sf(k - 1, n, 0.05)


SERVICES = """\
cases: [{source: cases.jsonl}]
attacks: [H1]
judges:
  theirs: {service: {name: theirs, url: "https://judge.example/grade", request: {a: "{response}"}, key_env: JUDGE_KEY}}
  ours: {service: {name: ours, callable: "json:dumps"}}
"""


def test_doctor_checks_services_too(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("robustjudge.yaml", SERVICES)
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    said = project("doctor")
    assert said.code == 2
    assert "service theirs needs a key: set the environment variable JUDGE_KEY" in said.out
    assert "service ours: can be opened" in said.out
    project.write("robustjudge.yaml", SERVICES.replace("json:dumps", "json:dmups"))
    assert "json:dmups" in project("doctor").out


def test_a_cell_that_raises_is_traced_and_opened_in_the_debugger(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import pdb

    from robustjudge.attacks.text import TextAttack

    project("run")
    project("export", "--format", "jsonl")
    rows = [
        json.loads(x) for x in (project.folder / "runs/latest/exports/trials.jsonl").read_text("utf-8").splitlines()
    ]
    cell = next(r["cell"] for r in rows if r["attack"] == "H1")

    def broken(self: TextAttack, case: object) -> str:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(TextAttack, "applied", broken)
    opened: list[object] = []
    monkeypatch.setattr(pdb, "post_mortem", opened.append)
    said = project("trace", cell)
    assert "attack error" in said.out and "ZeroDivisionError: planted" in said.out
    said = project("replay", cell, "--pdb")
    assert said.code == 2
    assert "ZeroDivisionError: planted" in said.out and "diverged" in said.out and len(opened) == 1


def test_the_demo_plans_three_judges_and_probes_its_embedded_one_without_a_call() -> None:
    from robustjudge.cli.demo import calls_of, planned, truth

    plan, models = planned(1)
    assert [name for name, _ in plan.judges] == ["smollm2-135m", "gameable", "perfect"]
    cells = list(plan.cells())
    assert all(calls_of(c) for c in cells if c.judge_name == "smollm2-135m")
    known = truth(plan, models)
    assert set(known) == {"gameable", "perfect"}
    assert set(known["perfect"]["pointwise"].values()) == {0.0}
    assert known["gameable"]["pointwise"]["H1"] == pytest.approx(0.8)
    assert known["gameable"]["pointwise"]["identity"] == 0.0
