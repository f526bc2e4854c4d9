"""Result files of other evaluation tools as cases: what was asked, what was answered, and how their grader judged it.

Read from the published forms of promptfoo (``promptfoo eval --output results.json``,
https://www.promptfoo.dev/docs/configuration/outputs), DeepEval (test runs under ``DEEPEVAL_RESULTS_FOLDER``,
https://deepeval.com/docs/evaluation-introduction) and Inspect (logs as JSON, https://inspect.aisi.org.uk/eval-logs.html).
Their verdict is kept as theirs; nothing here believes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from robustjudge import door
from robustjudge.datasets.base import BadRow
from robustjudge.errors import DataError, UnknownName
from robustjudge.spec import digest

Row = dict[str, Any]
"""``id``, ``task``, ``response``, ``reference`` where there is one, and ``their_score``, ``their_verdict``,
``their_reason``, ``tool``: columns of our own case files."""


@dataclass(frozen=True)
class Imported:
    """The rows that can be judged, and those that cannot with the reason."""

    tool: str
    rows: tuple[Row, ...]
    bad: tuple[BadRow, ...]


def imported(path: Path, tool: str = "") -> Imported:
    """Read a result file; the tool is told by the file's form unless named.

    Raises :class:`DataError` for a file of no known form, :class:`UnknownName` for a tool we cannot read.
    """
    if tool and tool not in TOOLS:
        raise UnknownName("result format", tool, tuple(TOOLS))
    data = _archive(path) if path.suffix == ".eval" else _json(path)
    known = [name for name, (mark, _) in TOOLS.items() if isinstance(data, Mapping) and mark(data)]
    if not known or (tool and tool not in known):
        raise DataError(
            f"{path}: not a result file of {tool or ', '.join(TOOLS)}; expected what `promptfoo eval --output x.json`,"
            " DeepEval's results folder or `inspect log convert --to json` write"
        )
    name = tool or known[0]
    rows, bad, seen = [], [], set[str]()
    for number, found in enumerate(TOOLS[name][1](data), 1):
        row = found if isinstance(found, str) else _checked(found, seen)
        if isinstance(row, str):
            bad.append(BadRow(str(path), number, None, row, "an item with a question and an answer"))
        else:
            rows.append({**row, "tool": name})
    return Imported(name, tuple(rows), tuple(bad))


def _checked(row: Row, seen: set[str]) -> Row | str:
    """The row with an id of its own and without empty fields, or what is wrong with it."""
    for field in ("task", "response"):
        if not isinstance(row.get(field), str) or not row[field].strip():
            return f"it has no {'question' if field == 'task' else 'answer'}"
    row = {**row, "their_score": _number(row.get("their_score"))}
    clean = {k: door.safe(v) if isinstance(v, str) else v for k, v in row.items() if v not in (None, "", [])}
    name = str(clean.get("id") or digest("import", clean["task"], clean["response"])[:16])
    if name in seen:
        name = f"{name}-{digest('import', clean['task'], clean['response'], str(len(seen)))[:8]}"
    seen.add(name)
    return {**clean, "id": name}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as fault:
        raise DataError(f"{path}: cannot be read as JSON ({fault})") from None


def _archive(path: Path) -> Any:
    """An Inspect archive: ``header.json`` and a file per sample; its newer compression needs Inspect's own converter."""
    try:
        with ZipFile(path) as held:
            names = [i for i in held.infolist() if i.filename == "header.json" or i.filename.startswith("samples/")]
            if any(i.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for i in names):
                raise DataError(
                    f"{path}: compressed in a way that Python's zipfile cannot read; convert it first:"
                    f" inspect log convert --to json --output-dir json {path.name}"
                )
            data = {i.filename: json.loads(held.read(i)) for i in names}
    except (OSError, BadZipFile, ValueError) as fault:
        raise DataError(f"{path}: not a readable Inspect archive ({fault})") from None
    header = data.pop("header.json", {})
    return {**header, "samples": list(data.values())}


# --------------------------------------------------------------------------- the three forms


def promptfoo(data: Mapping[str, Any]) -> Iterator[Row | str]:
    """``results.results``: one entry per prompt, provider and test; the rendered prompt is the question."""
    for r in _list(data["results"], "results"):
        test, response = _map(r, "testCase"), _map(r, "response")
        graded = _map(r, "gradingResult")
        if r.get("error") and not response.get("output"):
            yield f"their run failed: {str(r['error'])[:200]}"
            continue
        wanted = [a.get("value") for a in _list(test, "assert") if a.get("type") in REFERENCED]
        score = r.get("score")
        yield {
            "task": _text(_map(r, "prompt").get("raw")) or _text(r.get("vars")),
            "response": _text(response.get("output")),
            "reference": next((w for w in wanted if isinstance(w, str)), ""),
            "their_score": graded.get("score") if score is None else score,
            "their_verdict": _verdict(r.get("success", graded.get("pass"))),
            "their_reason": _text(graded.get("reason")),
        }


REFERENCED = ("equals", "similar", "factuality", "model-graded-factuality", "answer-relevance", "rouge-n", "bleu")
"""Assertions of promptfoo whose value is a right answer."""


def deepeval(data: Mapping[str, Any]) -> Iterator[Row | str]:
    """``testCases``, each with its metrics; the first metric's score and reason are kept."""
    for c in _list(data, "testCases"):
        metrics = _list(c, "metricsData")
        yield {
            "task": _text(c.get("input")),
            "response": _text(c.get("actualOutput")),
            "reference": _text(c.get("expectedOutput")),
            "their_score": metrics[0].get("score") if metrics else None,
            "their_verdict": _verdict(c.get("success")),
            "their_reason": _text(metrics[0].get("reason")) if metrics else "",
        }


def inspect(data: Mapping[str, Any]) -> Iterator[Row | str]:
    """``samples``: input, target, output and the first scorer's score; another epoch of a sample is a case of its own."""
    for s in _list(data, "samples"):
        output = _map(s, "output")
        if s.get("error") and not output.get("completion"):
            yield f"their sample failed: {_text(s['error'])[:200]}"
            continue
        score = next(iter(_map(s, "scores").values()), None)
        score = score if isinstance(score, Mapping) else {}
        target = s.get("target")
        value = score.get("value")
        yield {
            "id": f"{s.get('id', '')}" + (f"/{s['epoch']}" if s.get("epoch", 1) != 1 else ""),
            "task": _chat(s.get("input")),
            "response": _text(output.get("completion")),
            "reference": target if isinstance(target, list) else _text(target),
            "their_score": value if isinstance(value, int | float) else None,
            "their_verdict": value if isinstance(value, str) else "",
            "their_reason": _text(score.get("explanation")),
        }


TOOLS: Mapping[str, tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Iterator[Row | str]]]] = {
    "promptfoo": (lambda d: isinstance(d.get("results"), Mapping) and "results" in d["results"], promptfoo),
    "deepeval": (lambda d: isinstance(d.get("testCases"), list), deepeval),
    "inspect": (lambda d: "eval" in d and isinstance(d.get("samples"), list), inspect),
}


def _list(data: Any, key: str) -> list[Any]:
    """The objects in a list of the file; what is none is left out."""
    found = data.get(key) if isinstance(data, Mapping) else None
    return [x for x in found if isinstance(x, Mapping)] if isinstance(found, list) else []


def _map(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _number(value: object) -> float | None:
    """A score; what is none (Inspect writes NaN for a grade that it could not read) is no score."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)


def _verdict(passed: object) -> str:
    return {True: "pass", False: "fail"}.get(passed, "") if isinstance(passed, bool) else ""


def _text(value: object) -> str:
    """A text as it is; anything else as JSON; nothing as the empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _chat(value: object) -> str:
    """An input that is a text, or chat messages one after another."""
    if not isinstance(value, list):
        return _text(value)
    parts = []
    for m in value:
        said = m.get("content") if isinstance(m, Mapping) else m
        if isinstance(said, list):
            said = "\n".join([_text(c.get("text")) for c in said if isinstance(c, Mapping) and c.get("type") == "text"])
        role = str(m.get("role", "")) if isinstance(m, Mapping) else ""
        parts.append(f"{role}: {_text(said)}" if role and len(value) > 1 else _text(said))
    return "\n\n".join(parts)
