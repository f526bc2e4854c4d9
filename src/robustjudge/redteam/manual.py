"""Red-team inputs that somebody wrote: JSON lines with the same metadata, or a contract A document of another tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from robustjudge import door
from robustjudge.datasets.base import BadRow
from robustjudge.errors import ConfigError, DataError
from robustjudge.gate.contracts import schema
from robustjudge.nouns import Case, Severity
from robustjudge.redteam.generate import CHECK, Brief, Made, made_variant
from robustjudge.redteam.reply import checked
from robustjudge.redteam.strategies import Strategy, parse
from robustjudge.variants import SEVERITIES

_KEYS = ("case", "text", "category", "severity", "expected", "attack")
_NEEDED = _KEYS[:4]


@dataclass(frozen=True, slots=True)
class Row:
    """One input by hand: its case, its text, the strategy it follows, and the score it should get (``None``: the case's)."""

    case: str
    text: str
    strategy: Strategy
    expected: float | None = None
    claimed: float | None = None


def by_hand(brief: Brief, path: Path, bad: list[BadRow]) -> Made:
    """The inputs of a file, checked like those of a model; rows that cannot be used are added to ``bad``."""
    cases = {c.id: c for c in brief.cases}
    made = Made()
    seen: set[str] = set()
    for row in rows(path, brief.cases, bad):
        made.wanted[row.strategy.name] += 1
        case = cases[row.case]
        fault, how = checked(row.text, case, row.strategy)
        more: dict[str, Any] = {"content": how, "claimed": row.claimed}
        if row.expected is not None:
            more["expected"] = row.expected
        if fault:
            made.refused[fault.partition(":")[0]] += 1
            more |= {"status": "rejected", "who": CHECK, "reason": fault}
        v = made_variant(brief, case, row.strategy, row.text, 0, "manual", **more)
        if v.id not in seen:
            seen.add(v.id)
            made.accepted[row.strategy.name] += not fault
            made.variants.append(v)
    return made


def rows(path: Path, cases: Sequence[Case], bad: list[BadRow]) -> Iterator[Row]:
    """The usable rows of a ``.jsonl`` file, or of a ``.json`` document of contract A."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({fault})") from None
    if path.suffix == ".json":
        yield from _document(path, text, cases)
        return
    known = {c.id for c in cases}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield _row(json.loads(line), known)
        except (ValueError, TypeError, ConfigError) as fault:
            bad.append(BadRow(str(path), number, None, f"no red-team input ({fault})"))


def _row(data: Any, known: set[str]) -> Row:
    if not isinstance(data, Mapping):
        raise ValueError("expected an object")
    for key in data:
        if key not in _KEYS:
            raise ValueError(f"unknown key {str(key)[:40]!r}; known: {', '.join(_KEYS)}")
    for key in _NEEDED:
        if not isinstance(data.get(key), str):
            raise ValueError(f"{key} is a text, and needed")
    if data["severity"] not in SEVERITIES:
        raise ValueError(f"severity is one of {', '.join(SEVERITIES)}")
    if data["case"] not in known:
        raise ValueError(f"there is no case {data['case'][:60]!r}")
    expected = data.get("expected")
    if expected is not None and (isinstance(expected, bool) or not isinstance(expected, (int, float))):
        raise ValueError("expected is a number")
    name = str(data.get("attack") or "manual")
    strategy = Strategy(name, data["category"], cast(Severity, data["severity"]), "", False, False)
    return Row(data["case"], door.safe(data["text"]), strategy, expected)


def _document(path: Path, text: str, cases: Sequence[Case]) -> Iterator[Row]:
    """Contract A: the case is the one whose response is the baseline's input; strategies are ours by name or alias."""
    import jsonschema

    try:
        document = json.loads(text)
        jsonschema.Draft202012Validator(schema("contract_a")).validate(document)
    except (ValueError, jsonschema.ValidationError) as fault:
        raise DataError(f"{path}: not a document of contract A ({str(fault).splitlines()[0]})") from None
    given = door.safe(document["baseline"]["original_input"]).strip()
    case = next((c for c in cases if door.safe(c.response).strip() == given), None)
    if case is None:
        raise DataError(f"{path}: its original_input is the response of no case here")
    for test in document["adversarial_tests"]:
        (strategy,) = parse(test["attack_strategy"])[:1]
        yield Row(case.id, door.safe(test["modified_input"]), strategy, None, test["judge_score"])
