"""The code shown in built-in tasks is real code: it parses, where a parser for its language is at hand."""

from __future__ import annotations

import ast
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from robustjudge.datasets.builtin_cases import builtin
from robustjudge.nouns import Case

# language -> (file name, text before and after the code, command)
TOOLS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "C": ("main.c", "", "", ("gcc", "-fsyntax-only")),
    "C++": ("main.cc", "#include <string>\n", "", ("g++", "-fsyntax-only")),
    "JavaScript": ("main.mjs", "", "", ("node", "--check")),
    "Java": ("T.java", "class T { double saldo;\n", "\n}\n", ("javac", "-d", ".")),
    "Rust": ("main.rs", "", "", ("rustc", "--crate-type=lib", "--emit=metadata", "-A", "dead_code")),
    "Go": ("main.go", "package main\n", "\nfunc main() {}\n", ("gofmt", "-l")),
}
SHOWN = [
    (case, case.get("source_language") or case.get("code_language"))
    for kind in ("code_translation", "code_summarization")
    for case in builtin(kind)
]


@cache
def _works(tool: str) -> bool:
    if shutil.which(tool) is None:
        return False
    asked = "-h" if tool == "gofmt" else "--version"
    done = subprocess.run([tool, asked], capture_output=True, check=False, timeout=60)
    return done.returncode == 0 or tool == "gofmt"


@pytest.mark.parametrize(("case", "language"), SHOWN, ids=lambda x: x.id if isinstance(x, Case) else x)
def test_code_in_the_task_parses(case: Case, language: str, tmp_path: Path) -> None:
    code = case.get("original")
    assert code and case.task.endswith(code)
    if language == "Python":
        ast.parse(code)
        return
    if language not in TOOLS:
        pytest.skip(f"no parser for {language} is used here")
    name, before, after, command = TOOLS[language]
    if not _works(command[0]):
        pytest.skip(f"optional check: {command[0]} is not installed, or not set up for this user")
    (tmp_path / name).write_text(before + code + after, encoding="utf-8")
    done = subprocess.run([*command, name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["code_translation", "code_generation"])
def test_references_and_weak_answers_are_plain_python(kind: str) -> None:
    for case in builtin(kind):
        ast.parse(case.reference)
        ast.parse(case.response)  # weak answers are wrong, not broken: a judge must read them to see it
        assert f"def {case.get('entry_point')}(" in case.response
