"""The reader audit: misses shown, forbidden values marked, bad rows by line, external readers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from robustjudge.errors import ConfigError, DataError
from robustjudge.scales.audit import read_cases


def case(name: str, reply: str | None, value: Any, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "protocol": "pointwise",
        "scale": {"min": 1, "max": 10},
        "raw_reply": reply,
        "expected": {"value": value, "status": status},
        **more,
    }


def write(path: Path, rows: list[Any]) -> Path:
    file = path / "cases.jsonl"
    file.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows), encoding="utf-8")
    return file


def first_number(shown: dict[str, Any]) -> Mapping[str, Any]:
    assert "expected" not in shown and "never" not in shown
    digits = [int(w) for w in (shown["raw_reply"] or "").split() if w.isdigit()]
    return {"status": "ok", "value": digits[0] if digits else 5}


def raising(shown: dict[str, Any]) -> Mapping[str, Any]:
    raise KeyError("score")


ROWS = [
    case("good", "Score: 7", 7),
    case("trap", "There are 3 points.\nScore: 7", 7, never=[3]),
    case("none", "no idea", None, "unparsed"),
    case("either", "Score: 7", 1, also_ok=[{"value": 7, "status": "ok"}]),
]


def test_ours_passes_and_the_count_comes_last(tmp_path: Path) -> None:
    report = read_cases(write(tmp_path, ROWS))
    assert report.passed
    assert list(report.lines()) == ["4 of 4 cases as expected"]


def test_misses_name_the_line_and_forbidden_values(tmp_path: Path) -> None:
    report = read_cases(write(tmp_path, ROWS), first_number)
    assert not report.passed
    assert [m.id for m in report.misses] == ["trap", "none"]
    assert report.misses[0].line == 2 and report.misses[0].forbidden and report.forbidden == 1
    assert list(report.lines())[-1] == "2 of 4 cases as expected, 1 forbidden values"


def test_an_exception_is_a_miss(tmp_path: Path) -> None:
    report = read_cases(write(tmp_path, ROWS[:1]), raising)
    assert "KeyError" in str(report.misses[0])


def test_bad_rows_are_reported_by_line_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    rows: list[Any] = [
        ROWS[0],
        "{not json",
        "[1]",
        {"id": "x"},
        {**ROWS[1], "scale": {"min": 3, "max": 1}},
        {**ROWS[1], "raw_reply": 7},
        {**ROWS[1], "expected": "ok"},
        ROWS[0],
        "",
        ROWS[2],
    ]
    report = read_cases(write(tmp_path, rows))
    assert [b.line for b in report.bad] == [2, 3, 4, 5, 6, 7, 8]
    assert (report.asked, report.right) == (2, 2)
    assert not report.passed


def test_nothing_asked_is_no_pass(tmp_path: Path) -> None:
    assert not read_cases(write(tmp_path, [])).passed
    with pytest.raises(DataError):
        read_cases(tmp_path / "absent.jsonl")


def test_types_are_compared(tmp_path: Path) -> None:
    row = {**case("t", '{"winner": 4}', "4"), "scale": {"labels": ["3", "4"]}}
    file = write(tmp_path, [row])
    assert read_cases(file).passed
    assert not read_cases(file, lambda c: {"status": "ok", "value": 4}).passed
    file = write(tmp_path, [case("n", "Score: 1", 1)])
    assert not read_cases(file, lambda c: {"status": "ok", "value": True}).passed


def test_a_command(tmp_path: Path) -> None:
    script = tmp_path / "reader.py"
    script.write_text(
        "import json, sys\ncase = json.load(sys.stdin)\n"
        "print(json.dumps({'status': 'ok', 'value': 7} if '7' in case['raw_reply'] else {'status': 'unparsed'}))\n"
    )
    file = write(tmp_path, ROWS)
    assert read_cases(file, f"{sys.executable} {script}").passed
    broken = read_cases(file, f"{sys.executable} -c pass")
    assert broken.right == 0 and "no JSON" in str(broken.misses[0])
    with pytest.raises(ConfigError):
        read_cases(file, "/no/such/program")


def test_a_callable_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_reader.py").write_text("def f(case):\n    return {'status': 'unparsed', 'value': None}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = write(tmp_path, ROWS)
    assert read_cases(file, "their_reader:f").right == 1
    for bad in ("their_reader:g", "no_such_module_here:f"):
        with pytest.raises(ConfigError):
            read_cases(file, bad)
