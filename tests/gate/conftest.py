"""Runs that several tests of the gate read, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gate_runs import run

from robustjudge.models.scripted import Copycat, Table


@pytest.fixture(scope="session")
def robust_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 cases, four attacks, a judge that no text moves."""
    return run(tmp_path_factory.mktemp("robust"), Table(), 70, ("H1", "authority", "json_injection", "repeated_list"))


@pytest.fixture(scope="session")
def weak_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same cases and attacks, a judge that copies a dictated verdict."""
    judge = Copycat(judge=Table())
    return run(tmp_path_factory.mktemp("weak"), judge, 70, ("H1", "authority", "json_injection", "repeated_list"))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file and give its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write
