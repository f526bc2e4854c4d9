from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_help import CASES, CONFIG, Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, capsys)


@pytest.fixture
def project(cli: Cli) -> Cli:
    """The command line in a folder with a small configuration and three cases."""
    cli.write("cases.jsonl", CASES)
    cli.write("robustjudge.yaml", CONFIG)
    return cli
