"""The ``robustness`` fixture as a user's own test has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
from robustjudge.judges import Prompted
from robustjudge.models.scripted import Copycat, Table
from robustjudge.nouns import Case
from robustjudge.prompts.library import template

CASES = [Case(f"c{i}", f"Say what {i} plus {i} is.", f"It is {2 * i + 1}.") for i in range(24)]
JUDGE = Prompted("scripted/mine", template("robustjudge"))
POLICY = {"minimum_n": 12}


def test_steady(robustness):
    run = robustness.run(JUDGE, CASES, ("H1", "json_injection"), models={"scripted/mine": Table()})
    assert robustness.check(run, POLICY).words == "pass"


def test_weak(robustness):
    run = robustness.run(JUDGE, CASES, ("H1", "json_injection"), models={"scripted/mine": Copycat(judge=Table())})
    robustness.check(run, POLICY)


def test_too_few(robustness):
    run = robustness.run(JUDGE, CASES[:4], ("H1",), models={"scripted/mine": Table()})
    robustness.check(run)
"""


def test_the_fixture_passes_and_fails_with_the_gates_reasons(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE, "utf-8")
    # imported here so that the test also holds where the package's entry points are not installed anew
    (tmp_path / "conftest.py").write_text("from robustjudge.pytest_plugin import robustness  # noqa: F401\n", "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "test_mine.py"], check=False, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200
    )
    assert "1 passed" in done.stdout and "2 failed" in done.stdout, done.stdout + done.stderr
    assert "robustjudge gate: fail" in done.stdout and "format_hacking: " in done.stdout
    assert "robustjudge gate: inconclusive" in done.stdout and "60" in done.stdout
