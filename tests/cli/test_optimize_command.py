"""``robustjudge optimize`` from the command line: files, the exit code of "no improvement", and refusals without a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustjudge.cli.app import run as command

CASES = ["--cases", "builtin/summarization", "--cases", "builtin/knowledge"]


def test_a_judge_that_cannot_be_moved_keeps_its_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ["optimize", "vanilla", "--judge", "scripted/perfect", *CASES, "--attack", "H4", "--rounds", "0"]
    assert command([*args, "--budget", "700"]) == 0
    assert "keep the start prompt" in capsys.readouterr().out
    told = json.loads(Path("optimised/evidence.json").read_text())
    assert told["calls"]["planned_for"] <= 700 and told["judge"] == "scripted/perfect"
    assert Path("optimised/prompt.diff").read_text() == ""
    assert command(["lint", "optimised/prompt.toml"]) == 0


@pytest.mark.parametrize(
    "args, told",
    [
        (["nothing"], "unknown template"),
        (["vanilla", "--size", "huge"], "unknown grid size"),
        (["vanilla", "--objective", "mean"], "unknown objective"),
        (["gone.toml"], "no such file"),
        (["gone.txt"], "no such file"),
        (["vanilla", *CASES, "--rounds", "0", "--budget", "50"], "give at least"),
        (["vanilla", "--cases", "builtin/logic"], "load more cases"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_call(
    args: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["optimize", *args, "--judge", "scripted/perfect"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("optimised").exists()


def test_the_users_own_prompt_in_parts_is_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustjudge.prompts.library import source

    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(source("brief").replace('name = "brief"', 'name = "mine"'))
    args = ["optimize", "mine.toml", "--judge", "scripted/perfect", *CASES, "--attack", "H6", "--rounds", "0"]
    assert command([*args, "--budget", "700", "-o", "out"]) == 0
    assert 'name = "mine"' in Path("out/prompt.toml").read_text()


def test_one_block_of_text_is_used_whole_and_a_shipped_prompt_can_be_printed_to_start_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ["--judge", "scripted/perfect", *CASES, "--attack", "H4", "--rounds", "0", "--budget", "700"]
    text = "Task: {task}\nA: {response_a}\nB: {response_b}\n"
    Path("judge.txt").write_text(text + "Which is better?")
    assert command(["optimize", "judge.txt", *args]) == 2
    assert "robustjudge list templates vanilla" in capsys.readouterr().err
    Path("judge.txt").write_text(text + "{verdict}")
    assert command(["optimize", "judge.txt", *args]) == 0
    assert text in Path("optimised/prompt.toml").read_text() and Path("optimised/prompt.diff").read_text() == ""
    capsys.readouterr()
    assert command(["list", "templates", "vanilla"]) == 0
    Path("my-judge.toml").write_text(capsys.readouterr().out)
    assert command(["lint", "my-judge.toml"]) == 0 and command(["lint", "optimised/prompt.toml"]) == 0
    assert command(["optimize", "my-judge.toml", *args]) == 0
