"""The cases of a configuration as a source that is read anew each time, and tells once what it could not use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from robustjudge.datasets.base import BadRow, Cases
from robustjudge.errors import ConfigError
from robustjudge.nouns import Case
from robustjudge.spec import digest
from robustjudge.table import case_key

KEPT = 1000
"""Bad rows kept with their text; beyond that they are only counted."""

Opener = Callable[[Callable[[BadRow], None]], Cases]
"""Opens one set of cases, telling its bad rows to the listener."""


class Intake:
    """A plan's source over several named sets.

    Calling it reads every set from its start, in flat memory.  Ids must differ across sets.  The first reading that
    comes to its end fills ``count`` (usable cases), ``hash`` (of their contents, in any order), ``bad`` (rows that cannot
    be used) and ``aside`` (weak responses that failed verification, by reason); every bad row is told to ``on_bad`` once,
    however often the source is read.
    """

    def __init__(self, sets: Sequence[tuple[str, Opener]], on_bad: Callable[[BadRow], None] | None = None) -> None:
        self._sets = tuple(sets)
        self._told: set[int] = set()
        self.on_bad = on_bad
        self.count: int | None = None
        self.bad: list[BadRow] = []
        self.aside: Counter[str] = Counter()
        self.hash = ""

    @property
    def bad_rows(self) -> int:
        """How many rows could not be used."""
        return len(self._told)

    def __call__(self) -> Iterator[Case]:
        marks = 0
        seen: dict[int, int] = {}  # 8-byte marks of ids, kept only where two sets could clash
        aside: Counter[str] = Counter()
        count = 0
        for number, (name, opened) in enumerate(self._sets):
            cases = opened(self._tell)
            for case in cases:
                if len(self._sets) > 1:
                    first = seen.setdefault(int(digest(case.id)[:16], 16), number)
                    if first != number:
                        both = f"{self._sets[first][0]} and {name}"
                        raise ConfigError(f"case id {case.id!r} is in both {both}; ids must differ")
                count += 1
                if self.count is None:
                    marks = (marks + int(case_key(case), 16)) % 2**128  # a sum: the order of the file decides nothing
                yield case
            aside.update(a.reason for a in cases.aside)
        if self.count is None:
            self.count, self.aside, self.hash = count, aside, f"{marks:032x}"

    def _tell(self, row: BadRow) -> None:
        mark = hash((row.file, row.line, row.field, row.message))
        if mark in self._told:
            return
        self._told.add(mark)
        if len(self.bad) < KEPT:
            self.bad.append(row)
        if self.on_bad is not None:
            self.on_bad(row)

    def read_through(self) -> Intake:
        """Read everything once, so that duplicates and bad rows are known before anything is sent."""
        if self.count is None:
            for _ in self():
                pass
        return self

    def as_dict(self) -> dict[str, Any]:
        """What the manifest keeps: counts, and the first bad rows with file and line."""
        return {
            "cases": self.count,
            "cases_hash": self.hash,
            "rows_set_aside": self.bad_rows,
            "bad_rows": [str(b) for b in self.bad[:50]],
            "weak_set_aside": dict(sorted(self.aside.items())),
        }
