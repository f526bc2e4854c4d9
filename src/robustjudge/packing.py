"""Columns of text as codes, and columns that repeat together read as one text per row: a third of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXT, INT, REAL = "TEXT", "INTEGER", "REAL"


@dataclass(frozen=True)
class Category:
    """A text column: ``values[codes[i]]`` is row i; code -1 is missing."""

    codes: Any
    values: tuple[str, ...]

    @classmethod
    def ordered(cls, codes: Any, values: tuple[str, ...]) -> Category:
        """With the values sorted, so that equal rows in another order give the same numbering."""
        import numpy as np

        order = sorted(range(len(values)), key=values.__getitem__)
        rank = np.full(len(values) + 1, -1, dtype=np.int32)
        rank[np.array(order, dtype=np.int64)] = np.arange(len(values), dtype=np.int32)
        return cls(rank[codes], tuple(values[i] for i in order))

    def __getitem__(self, i: int) -> str | None:
        code = int(self.codes[i])
        return None if code < 0 else self.values[code]

    def equals(self, value: str) -> Any:
        """A boolean array: rows whose text is ``value``."""
        code = self.values.index(value) if value in self.values else -2
        return self.codes == code


PACKS: tuple[tuple[str, ...], ...] = (
    (
        *("judge", "defense", "protocol", "threat", "k", "scale_low", "scale_high", "seed", "attack", "attack_id"),
        *("family", "category", "severity", "control", "of", "access", "channel", "task", "evaluator", "reader"),
    ),
    (
        *("attack_status", "clean_status", "retest_status", "attacked_status", "clean_outcomes", "retest_outcomes"),
        *("attacked_outcomes", "clean_slots", "fooled", "text_mapped"),
    ),
)
"""Columns that repeat together."""

_STOP, _NULL = "\x1f", "\x1e"


class Clash(ValueError):
    """A value holds the separator: these rows must be read column by column."""


def packed(pack: Sequence[str]) -> str:
    """The SQL expression that joins a pack (``printf`` costs half of ``||``)."""
    values = ", ".join(f"coalesce(\"{c}\", '{_NULL}')" for c in pack)
    return f"printf('{_STOP.join('%s' for _ in pack)}', {values})"


def unpacked(
    pack: Sequence[str], codes: Any, seen: Mapping[str | None, int], kinds: Mapping[str, str]
) -> dict[str, Any]:
    """The columns of a pack: each distinct text split once, then looked up by row.  Raises :class:`Clash`."""
    import numpy as np

    split = [v.split(_STOP) for v in seen if v is not None]
    if any(len(row) != len(pack) for row in split):
        raise Clash
    out: dict[str, Any] = {}
    for i, name in enumerate(pack):
        values = [None if row[i] == _NULL else row[i] for row in split]
        if kinds[name] != TEXT:
            out[name] = np.array([*values, None], dtype=np.float64)[codes]
            continue
        index: dict[str | None, int] = {None: -1}
        for v in values:
            index.setdefault(v, len(index) - 1)
        mine = np.array([*(index[v] for v in values), -1], dtype=np.int32)[codes]
        out[name] = Category.ordered(mine, tuple(v for v in index if v is not None))
    return out
