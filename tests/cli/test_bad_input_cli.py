"""What a user does wrong at the command line: refused before any call, with place and next step, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_help import CASES, Cli

PROMPT = {
    "model": "scripted/gameable",
    "prompt": "Q {question}\nA {answer}\nEnd with VERDICT: x",
    "slots": {"question": "task", "answer": "response"},
    "scale": {"min": 1, "max": 10},
}


def configured(cli: Cli, judge: dict[str, object], **more: object) -> None:
    cli.write("cases.jsonl", CASES)
    given = {"cases": [{"source": "cases.jsonl"}], "judges": {"mine": judge}, "attacks": ["H1"], **more}
    cli.write("robustjudge.yaml", json.dumps(given))  # JSON is YAML


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": "Q {question}"}, "judge mine: judge prompt, line 1: a pointwise prompt must show {answer}"),
        ({"reply": {"reader": "no_such_mod:read"}}, "judge mine: 'no_such_mod:read' cannot be loaded"),
        ({"model": "gpt-4"}, "'gpt-4' is no model name"),
        ({"model": "scripted/gamable"}, "Did you mean gameable"),
        ({"model": "anthropic/claude-opus-4-1-20250805", "expect": True}, "judge mine reads label probabilities"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_a_wrong_judge_is_refused_by_name_and_by_the_dry_run_too(
    cli: Cli, change: dict[str, object], said: str, dry: bool
) -> None:
    configured(cli, {**PROMPT, **change})
    got = cli("run", *(["--dry-run"] if dry else []))
    assert got.code == 2 and said in got.err and not (cli.folder / "runs").exists()


def test_access_that_a_model_lacks_is_refused_by_the_dry_run(cli: Cli) -> None:
    configured(cli, {"model": "anthropic/claude-opus-4-1-20250805"}, attacks=["O4"])
    got = cli("run", "--dry-run")
    assert got.code == 2 and "attack O4 needs ODDS access" in got.err and "claude-opus-4-1" in got.err


def test_a_place_that_cannot_be_written_is_told_without_a_traceback(cli: Cli) -> None:
    configured(cli, PROMPT)
    cli.write("afile", "x")
    got = cli.process("run", "-o", "afile")
    assert got.code == 4 and "afile: no run folder can be made there" in got.err and "Traceback" not in got.err
    cli.write("target/robustjudge.yaml/x", "a folder where a file should be")
    got = cli.process("init", "target", "--force")
    assert got.code == 4 and "StorageError" in got.err and "Traceback" not in got.err and "robustjudge.yaml" in got.err


def test_cases_without_a_reference_say_so_under_pairs(cli: Cli) -> None:
    configured(cli, {"model": "scripted/gameable"}, protocols=["pairwise"])
    cli.write("cases.jsonl", '{"id": "a", "task": "t", "response": "w"}\n')
    got = cli("run")
    assert got.code == 4 and "no reference" in got.err and "judge pointwise" in got.err
    assert "no_reference (4 rows)" in got.out


def test_what_our_own_code_raised_is_named_with_the_cell_to_trace(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr("robustjudge.protocols.Pointwise.slates", broken)
    configured(cli, PROMPT)
    got = cli("run")
    assert got.code == 4 and "most often: ValueError: planted; `robustjudge trace " in got.err


def test_unread_replies_point_at_the_prompt_and_not_at_the_endpoint(cli: Cli, tmp_path: Path) -> None:
    configured(cli, {**PROMPT, "reply": {"pattern": "Grade=([0-9]+)"}})
    got = cli("run")
    assert got.code == 4 and "most often: unparsed" in got.err and "lint" in got.err and "doctor" not in got.err


def test_a_field_that_is_missing_is_told_with_what_the_row_has(cli: Cli) -> None:
    configured(cli, PROMPT)
    cli.write("cases.jsonl", CASES + '{"id": "x", "task": "t", "weak": "w"}\n{"id": "y", "tusk": "t"}\n')
    got = cli("run", "--dry-run")
    assert "cases.jsonl:4: field 'response': the field is missing; the row has 'id', 'task', 'weak'" in got.err
    assert "did you mean 'tusk'?" in got.err and got.code == 0


def test_a_yaml_fault_has_line_and_column(cli: Cli) -> None:
    cli.write("robustjudge.yaml", "cases: [{source: builtin}\njudges: {}\n")
    got = cli("run")
    assert got.code == 2 and "robustjudge.yaml, line 2, column" in got.err and "not valid YAML" in got.err


@pytest.mark.parametrize("dry", [True, False])
def test_without_a_usable_case_nothing_is_planned(cli: Cli, dry: bool) -> None:
    configured(cli, PROMPT)
    cli.write("cases.jsonl", '{"id": "a", "task": "t"}\n')
    got = cli("run", *(["--dry-run"] if dry else []))
    assert got.code == 3 and "no case can be used (all 1 rows were set aside)" in got.err
    assert not (cli.folder / "runs").exists()
