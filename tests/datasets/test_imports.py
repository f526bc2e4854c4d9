"""Results of promptfoo, DeepEval and Inspect become cases; the samples are our own writing in those tools' forms."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.cli.app import run
from robustjudge.datasets.files import jsonl
from robustjudge.datasets.imports import TOOLS, imported
from robustjudge.datasets.registry import load
from robustjudge.errors import DataError, UnknownName

PROMPTFOO = {
    "evalId": "eval-x",
    "results": {
        "version": 3,
        "timestamp": "2026-01-01T00:00:00Z",
        "prompts": [{"raw": "Answer: {{q}}", "label": "Answer: {{q}}"}],
        "results": [
            {
                "promptIdx": 0,
                "testIdx": 0,
                "prompt": {"raw": "Answer: the capital of Italy?", "label": "x"},
                "vars": {"q": "the capital of Italy?"},
                "response": {"output": "Milan.", "cached": False},
                "success": False,
                "score": 0.25,
                "gradingResult": {"pass": False, "score": 0.25, "reason": "not the capital"},
                "testCase": {"assert": [{"type": "icontains", "value": "ro"}, {"type": "similar", "value": "Rome."}]},
            },
            {"prompt": {"raw": "Give JSON"}, "response": {"output": {"a": [1]}}, "success": True, "score": 1},
            {"prompt": {"raw": "Down"}, "error": "429 too many", "success": False, "score": 0},
        ],
        "stats": {"successes": 1, "failures": 1, "errors": 1},
    },
}
DEEPEVAL = {
    "testCases": [
        {
            "name": "test_case_0",
            "input": "2 + 2?",
            "actualOutput": "5",
            "expectedOutput": "4",
            "success": False,
            "metricsData": [{"name": "Exact", "threshold": 1.0, "success": False, "score": 0.0, "reason": "differs"}],
        },
        {"name": "test_case_1", "input": "3 + 3?", "actualOutput": "6", "success": True, "metricsData": None},
        {"name": "test_case_2", "input": "no answer", "actualOutput": None},
    ],
    "conversationalTestCases": [],
}
INSPECT: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"task": "capitals", "model": "mockllm/model"},
    "samples": [
        {
            "id": "it",
            "epoch": 1,
            "input": "Capital of Italy?",
            "target": ["Rome", "Roma"],
            "output": {"completion": "Milan"},
            "scores": {"match": {"value": "I", "answer": "Milan", "explanation": "wrong city"}},
        },
        {
            "id": "it",
            "epoch": 2,
            "input": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Capital?"}, {"type": "image", "image": "x"}]},
            ],
            "target": "Rome",
            "output": {"completion": "Rome"},
            "scores": {"model_graded": {"value": 0.9}},
        },
        {"id": 2, "input": "y", "target": "", "output": {"completion": "z"}, "scores": {"g": {"value": float("nan")}}},
        {"id": 3, "epoch": 1, "input": "x", "target": "", "output": {"completion": ""}, "error": {"message": "lost"}},
    ],
}
SAMPLES: dict[str, dict[str, Any]] = {"promptfoo": PROMPTFOO, "deepeval": DEEPEVAL, "inspect": INSPECT}


def written(tmp_path: Path, data: object, name: str = "r.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(data), "utf-8")
    return path


@pytest.mark.parametrize("tool", SAMPLES)
def test_the_form_is_recognised_and_what_cannot_be_judged_is_set_aside(tmp_path: Path, tool: str) -> None:
    found = imported(written(tmp_path, SAMPLES[tool]))
    assert (found.tool, len(found.rows), len(found.bad)) == (tool, len(SAMPLES[tool].get("samples", "abc")) - 1, 1)
    assert "answer" in found.bad[0].message or "failed" in found.bad[0].message


def test_fields_of_promptfoo(tmp_path: Path) -> None:
    first, second = imported(written(tmp_path, PROMPTFOO)).rows
    assert (first["task"], first["response"], first["reference"]) == (
        "Answer: the capital of Italy?",
        "Milan.",
        "Rome.",
    )
    assert (first["their_score"], first["their_verdict"], first["their_reason"]) == (0.25, "fail", "not the capital")
    assert second["response"] == '{"a": [1]}' and second["their_verdict"] == "pass" and "reference" not in second


def test_fields_of_deepeval(tmp_path: Path) -> None:
    first, second = imported(written(tmp_path, DEEPEVAL)).rows
    assert (first["task"], first["response"], first["reference"]) == ("2 + 2?", "5", "4")
    assert (first["their_score"], first["their_verdict"]) == (0.0, "fail") and "their_score" not in second


def test_fields_of_inspect(tmp_path: Path) -> None:
    first, second, third = imported(written(tmp_path, INSPECT)).rows
    assert (first["id"], first["reference"], first["their_verdict"]) == ("it", ["Rome", "Roma"], "I")
    assert (second["id"], second["task"]) == ("it/2", "system: Be brief.\n\nuser: Capital?")
    assert second["their_score"] == 0.9 and "their_score" not in third


def test_an_inspect_archive(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("header.json", json.dumps({k: v for k, v in INSPECT.items() if k != "samples"}))
        for i, s in enumerate(INSPECT["samples"]):
            held.writestr(f"samples/{i}_epoch_1.json", json.dumps(s))
    assert imported(path).rows == imported(written(tmp_path, INSPECT)).rows
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as held:
        held.writestr("header.json", "{}")
    with pytest.raises(DataError, match="inspect log convert"):
        imported(path)


def test_from_the_command_line_to_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, PROMPTFOO)
    assert run(["import", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "2 cases from promptfoo, 1 set aside" in out and "1 of them have no reference" in out and "429" in err
    cases = list(load("cases.jsonl"))
    assert [c.response for c in cases] == ["Milan.", '{"a": [1]}'] and cases[0].reference == "Rome."
    assert run(["import", str(file)]) == 2
    assert run(["import", str(file), "--force", "--failed"]) == 0
    assert sum(1 for _ in jsonl(tmp_path / "cases.jsonl")) == 1
    assert run(["import", str(file), "--format", "deepeval", "--force"]) == 2
    assert run(["import", str(written(tmp_path, {"testCases": []}, "e.json")), "--force"]) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"results": []}', '{"samples": []}', "\ufeff[1]"])
def test_files_of_no_known_form(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError):
        imported(path)
    with pytest.raises(UnknownName, match="promptfoo"):
        imported(path, "promtfoo")


KEYS = (
    *("prompt", "raw", "response", "output", "input", "completion", "scores", "value", "error", "testCase", "assert"),
    *("actualOutput", "metricsData", "score", "x"),
)
ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(KEYS), x, max_size=4),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(ANY, max_size=4), st.sampled_from(sorted(TOOLS)))
def test_any_items_become_rows_or_reasons(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], tool: str
) -> None:
    shape = {"promptfoo": {"results": {"results": items}}, "deepeval": {"testCases": items}}
    data = shape.get(tool, {"eval": {}, "samples": items})
    found = imported(written(tmp_path_factory.mktemp("any"), data), tool)
    assert len(found.rows) + len(found.bad) == sum(isinstance(x, dict) for x in items)
    assert all(r["task"].strip() and r["response"].strip() for r in found.rows)
    assert len({r["id"] for r in found.rows}) == len(found.rows)
    json.dumps(found.rows, allow_nan=False)
