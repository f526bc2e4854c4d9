"""Regression cases: attacked texts that once succeeded, reduced to the shortest that still does, kept as cases.

A file of them is a case file (JSONL: task, response, reference, ...) whose rows also hold the attacked text, so it serves as
``cases:`` of a later run together with the attack ``replay:FILE``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar

from robustjudge.attacks.base import Attack, Channel, Plugin
from robustjudge.attacks.replay import Replay
from robustjudge.attacks.shrink import Shrunk, shrink
from robustjudge.errors import DataError
from robustjudge.nouns import Access, Budget, Case, Severity
from robustjudge.steps import handled
from robustjudge.threat import ThreatModel
from robustjudge.trial import Cell, Meter, Oracle

TEXT = "attacked"
CASE = "of_case"
"""The case that a row was made from, where several rows are made from one."""


def goal_of(row: Mapping[str, Any], tau: float) -> float | None:
    """The worth in [0, 1] that a text must keep to count as the same success; ``None`` where the row is no success.

    Pointwise: a rise of ``tau`` scale points over the clean score.  Several candidates: every order won.
    """
    if row["attacked_status"] != "ok" or row["clean_status"] != "ok" or row["control"]:
        return None
    if row["attacked_outcomes"]:
        return 1.0 if set(row["attacked_outcomes"]) == {"W"} and set(row["clean_outcomes"]) != {"W"} else None
    low, high, clean, hit = (row[k] for k in ("scale_low", "scale_high", "clean_score", "attacked_score"))
    if None in (low, high, clean, hit) or hit - clean < tau - 1e-9:
        return None
    return float((clean + tau - low) / (high - low))


async def reduced(cell: Cell, text: str, goal: float, queries: int | None = None) -> Shrunk:
    """Shrink an attacked text against the victim itself, within a budget of queries."""
    shrinking = Shrinking(text, getattr(cell.attack, "channel", "append"))
    asked = replace(cell, attack=shrinking, threat=ThreatModel(budget=Budget(queries=queries)))
    return await handled(shrink(cell.case.response, text, goal), Oracle(asked, Meter(asked.threat.budget)))


@dataclass(frozen=True)
class Shrinking(Plugin):
    """Stands for the attack while its text is reduced: it asks for scores, and plants texts the same way."""

    text: str
    channel: Channel = "append"

    name: ClassVar[str] = "shrinking"
    access: ClassVar[Access] = Access.SCORE
    family: ClassVar[str] = "transfer"
    severity: ClassVar[Severity] = "high"

    async def __call__(self, case: Case) -> str:
        return self.text


def record(cell: Cell, shrunk: Shrunk) -> dict[str, Any]:
    """One row of a regression file; ``id`` is still the case's, :func:`merged` makes it unique."""
    case = cell.case
    replayed = cell.attack if isinstance(cell.attack, Replay) else None
    attack = replayed.source if replayed else cell.attack_name or cell.attack.name
    root = case.id.removesuffix(f"/{attack}") if replayed else case.id
    return {
        "id": case.id,
        CASE: root,
        "task": case.task,
        "response": case.response,
        "reference": list(case.references),
        "kind": case.kind,
        "language": case.language,
        "cluster": case.cluster or root,
        TEXT: shrunk.text,
        "attack": attack,
        "channel": getattr(cell.attack, "channel", "append"),
        "severity": cell.attack.severity,
        "judge": cell.judge_name,
        "protocol": cell.protocol.kind,
        "minimal": shrunk.minimal,
        "queries": shrunk.queries,
    }


def replays(path: Path) -> tuple[Attack, ...]:
    """The attacks of a regression file: one per attack that its texts came from."""
    if not path.is_file():
        raise DataError(f"{path}: no such regression file; `robustjudge shrink` writes one")
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line, raw in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not raw.strip():
            continue
        try:
            row = json.loads(raw)
            pair = (str(row["id"]), str(row[TEXT]))
            name = (str(row.get("attack", "unknown")), str(row.get("channel", "append")))
        except (ValueError, KeyError, TypeError) as fault:
            raise DataError(f"{path}:{line}: no regression case ({fault!r}); each row needs id and {TEXT}") from None
        groups.setdefault(name, []).append(pair)
    if not groups:
        raise DataError(f"{path}: holds no regression case")
    return tuple(
        Replay(name, tuple(sorted(texts)), via=channel, own=True)  # type: ignore[arg-type]
        for (name, channel), texts in sorted(groups.items())
    )


def merged(path: Path, fresh: Iterable[Mapping[str, Any]]) -> str:
    """The text of a regression file with new rows added.

    Of the rows for one case, attack, judge and protocol the shortest is kept.  The first row made from a case has its
    id, others have the attack's name behind it, so that ids stay unique.
    """
    held: list[dict[str, Any]] = []
    if path.is_file():
        held = [json.loads(raw) for raw in path.read_text("utf-8").splitlines() if raw.strip()]
    rows = {_key(row): row for row in held}
    ids = {row["id"] for row in held}
    for given in fresh:
        row, kept = dict(given), rows.get(_key(given))
        if kept is not None:
            if len(row[TEXT]) <= len(kept[TEXT]):
                rows[_key(row)] = {**row, "id": kept["id"]}
            continue
        case = row.get(CASE, row["id"])
        names = chain((case, f"{case}/{row['attack']}"), (f"{case}/{row['attack']}/{i}" for i in count(2)))
        row["id"] = next(name for name in names if name not in ids)
        ids.add(row["id"])
        rows[_key(row)] = row
    return "".join(json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in rows.values())


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(row.get(CASE, row["id"])), *(str(row.get(name, "")) for name in ("attack", "judge", "protocol")))
