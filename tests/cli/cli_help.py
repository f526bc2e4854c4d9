"""How the tests of the command line run it: in process for speed, as a process where exit codes and signals count."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CASES = """\
{"id": "a", "task": "What is 2 + 2?", "response": "It is 5.", "reference": "It is 4."}
{"id": "b", "task": "Name the capital of Italy.", "response": "Milan.", "reference": "Rome."}
{"id": "c", "task": "Name a prime number.", "response": "Nine.", "reference": "Seven."}
"""

CONFIG = """\
name: small
cases: [{source: cases.jsonl}]
judges: {mine: {model: scripted/gameable}}
attacks: [H1, H5]
"""


@dataclass
class Said:
    code: int
    out: str
    err: str


class Cli:
    """Runs ``robustjudge`` in a project folder."""

    def __init__(self, folder: Path, capsys: object) -> None:
        self.folder = folder
        self._capsys = capsys

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def __call__(self, *args: str) -> Said:
        from robustjudge.cli.app import run

        code = run(list(args))
        got = self._capsys.readouterr()  # type: ignore[attr-defined]
        return Said(code, got.out, got.err)

    def process(self, *args: str, timeout: float = 60) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "robustjudge", *args],
            cwd=self.folder, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)
