"""The runner reports failures, stops endless programs, and gives them nothing of this process."""

from __future__ import annotations

import os
import sys

import pytest

from robustjudge.datasets.runner import run_python


def test_output_and_failure() -> None:
    assert run_python("print('grün 你好')").out == "grün 你好\n"
    failed = run_python("print('a')\nraise ValueError('no')")
    assert (failed.status, failed.out, failed.reason) == ("failed", "a\n", "ValueError: no")
    assert run_python("import os\nos._exit(3)").reason == "exit code 3"


def test_an_endless_program_is_stopped() -> None:
    assert run_python("while True:\n    pass", seconds=0.5).status == "timeout"


def test_environment_and_disk_are_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBUSTJUDGE_TEST_SECRET", "x")
    assert "ROBUSTJUDGE_TEST_SECRET" in os.environ
    assert run_python("import os\nprint('ROBUSTJUDGE_TEST_SECRET' in os.environ)").out == "False\n"
    assert run_python("f = open('x', 'w')\nf.write('y' * 10)\nf.close()").status == "failed"
    assert run_python("import robustjudge").reason.startswith("ModuleNotFoundError")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces a limit on address space")
def test_memory_is_bounded() -> None:
    assert run_python("x = bytearray(1 << 31)").reason == "MemoryError"
