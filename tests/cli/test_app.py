from __future__ import annotations

import pytest
from cli_help import Cli

from robustjudge.cli.app import COMMANDS, about, command, there


def test_help_names_every_installed_command_and_the_exit_codes() -> None:
    text = about()
    for name in there():
        assert f"  {name} " in text
    assert "130 interrupted" in text


@pytest.mark.parametrize("name", there())
def test_every_command_is_made_and_every_option_has_a_name(name: str) -> None:
    found = command(name)
    assert found.callback is not None or getattr(found, "commands", None)


def test_the_table_gives_each_command_one_line() -> None:
    for name, (module, what) in COMMANDS.items():
        assert name.isidentifier() and module.startswith("robustjudge.cli.")
        assert what and "\n" not in what and not what.endswith(".")


def test_an_unknown_command_is_answered_with_the_nearest(cli: Cli) -> None:
    said = cli("rum")
    assert said.code == 2
    assert "Did you mean run" in said.err


def test_an_unknown_option_is_a_usage_error(cli: Cli) -> None:
    assert cli("run", "--nope").code == 2


def test_help_of_a_command_is_no_error(cli: Cli) -> None:
    said = cli("export", "--help")
    assert said.code == 0
    assert "--format" in said.out


def test_an_option_can_be_set_by_the_environment_and_the_flag_wins(
    project: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBUSTJUDGE_OUTPUT", "elsewhere")
    assert project("run", "--attack", "H5").code == 0
    assert (project.folder / "elsewhere" / "latest").exists()
    assert project("run", "--attack", "H5", "-o", "flagged").code == 0
    assert (project.folder / "flagged" / "latest").exists()


def test_a_dot_env_file_is_read_and_does_not_replace_what_is_set(project: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(".env", "# keys\nexport A_KEY='one two'\nB_KEY = plain\nnot a line\n")
    monkeypatch.delenv("A_KEY", raising=False)
    monkeypatch.setenv("B_KEY", "kept")
    import os

    from robustjudge.cli.environment import read_env

    monkeypatch.setenv("A_KEY", "")  # so that monkeypatch restores it
    monkeypatch.delenv("A_KEY")
    assert read_env() == ("A_KEY",)
    assert os.environ["A_KEY"] == "one two"
    assert os.environ["B_KEY"] == "kept"
    monkeypatch.delenv("A_KEY")


def test_version_names_the_package(cli: Cli) -> None:
    from importlib.metadata import version

    assert cli("--version").out == f"robustjudge {version('robustjudge')}\n"


def test_an_option_of_a_subcommand_can_be_set_by_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBUSTJUDGE_LS_LEDGER", "elsewhere.sqlite")
    assert "elsewhere.sqlite" in cli("cache", "ls").err
