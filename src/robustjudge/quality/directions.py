"""Do people and an evaluator agree on which way quality moved?  (The shape of the RobustJudge paper's Table III.)

A file of human directions is JSON Lines; each row names a ``subset``, the ``case`` id, the ``clean`` and the
``attacked`` text, and the ``direction`` people saw: ``up``, ``down`` or ``same``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustjudge.errors import DataError
from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, change, rate

WAYS = ("up", "down", "same")
STILL = 1e-6
"""A change of quality of at most this is ``same``."""


@dataclass(frozen=True, slots=True)
class Direction:
    """One human judgement of one pair of texts."""

    subset: str
    case: str
    clean: str
    attacked: str
    direction: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of ``n`` pairs with a known change, in ``agree`` the evaluator moved the way people saw; ``share`` is
    ``agree / n``, ``None`` for n = 0.  ``unknown`` pairs (no quality, or no such case) are counted apart."""

    subset: str
    agree: int
    n: int
    unknown: int
    share: float | None


def read_directions(path: Path) -> tuple[Direction, ...]:
    """The rows of a file; raises :class:`~robustjudge.errors.DataError` naming file, line and what was expected."""
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({fault})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as fault:
            raise DataError(f"{path}, line {number}: not JSON ({fault})") from None
        names = ("subset", "case", "clean", "attacked", "direction")
        if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in names):
            raise DataError(f"{path}, line {number}: expected an object with the texts {', '.join(names)}")
        if row["direction"] not in WAYS:
            raise DataError(
                f"{path}, line {number}: direction must be one of {', '.join(WAYS)}, not {row['direction']!r}"
            )
        rows.append(Direction(*(row[k] for k in names)))
    return tuple(rows)


def agreement(
    rows: Sequence[Direction], cases: Sequence[Case], evaluators: Mapping[str, Evaluator]
) -> tuple[Agreement, ...]:
    """Agreement per subset, in the order of first appearance; ``evaluators`` maps task kind to evaluator."""
    by_id = {c.id: c for c in cases}
    counts: dict[str, list[int]] = {}
    for row in rows:
        tally = counts.setdefault(row.subset, [0, 0, 0])
        case = by_id.get(row.case)
        judge = evaluators.get(case.kind) if case else None
        if case is None or judge is None:
            tally[2] += 1
            continue
        moved = change(rate(judge, case, row.clean), rate(judge, case, row.attacked))
        if moved.unknown:
            tally[2] += 1
            continue
        way = "same" if abs(moved.value) <= STILL else "up" if moved.value > 0 else "down"
        tally[0] += way == row.direction
        tally[1] += 1
    return tuple(Agreement(s, a, n, u, a / n if n else None) for s, (a, n, u) in counts.items())
