"""What loading yields: cases, bad rows and weak candidates set aside; nothing is ever dropped in silence."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from robustjudge.errors import DataError
from robustjudge.nouns import Case
from robustjudge.spec import digest

KINDS: tuple[str, ...] = (
    "translation",
    "summarization",
    "code_translation",
    "code_summarization",
    "code_generation",
    "logic",
    "mathematics",
    "knowledge",
)
"""``Case.kind`` of the tasks T1-T8, in that order."""

OPEN = "open"
"""``Case.kind`` of a task that is none of :data:`KINDS`."""

TASKS: dict[str, str] = {f"T{i}": kind for i, kind in enumerate(KINDS, 1)}
"""Task number of the RobustJudge paper (Table I) to kind."""

ANSWER_KINDS: tuple[str, ...] = ("logic", "mathematics", "knowledge")
"""Kinds whose responses end in a final answer that is right or wrong."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """One input row that cannot be used: where it is, what is wrong, and what was expected.

    ``line`` and ``column`` count from 1 (a Parquet row counts as a line); ``column`` is ``None`` where no single
    character is to blame, and ``field`` then names the field, if one is.
    """

    file: str
    line: int
    column: int | None
    message: str
    expected: str = ""
    field: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")
        name = f" field {self.field!r}:" if self.field else ""
        return f"{place}:{name} {self.message}" + (f" (expected {self.expected})" if self.expected else "")


@dataclass(frozen=True, slots=True)
class SetAside:
    """A weak candidate that failed verification (``defect`` names it; empty: the case has none left)."""

    case_id: str
    defect: str
    reason: str


Row: TypeAlias = Case | BadRow | SetAside
OnBad: TypeAlias = Callable[[BadRow], None]
Quality: TypeAlias = Callable[[Case, str], float | None]
"""Content quality of a text for a case, in [0, 1]; ``None`` is unknown (see :mod:`robustjudge.quality`)."""


class Source(Protocol):
    """A frozen description of a data set; ``rows`` may be called more than once."""

    def rows(self) -> Iterator[Row]: ...


class BadRowWarning(UserWarning):
    """A row of the input could not be used."""


def warn(row: BadRow) -> None:
    """The default listener: a Python warning for every bad row."""
    warnings.warn(str(row), BadRowWarning, stacklevel=4)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Everything one load gave: usable cases, bad rows and set-aside candidates."""

    cases: tuple[Case, ...]
    bad: tuple[BadRow, ...]
    aside: tuple[SetAside, ...]

    @property
    def aside_by_reason(self) -> dict[str, int]:
        """How many candidates were set aside, by reason."""
        return dict(Counter(a.reason for a in self.aside))


class Cases(Iterator[Case]):
    """An iterator of cases that keeps what it could not use in ``bad`` and ``aside`` as it goes.

    Every bad row is also told to ``on_bad`` at once (default: a warning).
    """

    def __init__(self, rows: Iterable[Row], on_bad: OnBad = warn) -> None:
        self._rows = iter(rows)
        self._on_bad = on_bad
        self.bad: list[BadRow] = []
        self.aside: list[SetAside] = []

    def __next__(self) -> Case:
        for row in self._rows:
            if isinstance(row, Case):
                return row
            if isinstance(row, BadRow):
                self.bad.append(row)
                self._on_bad(row)
            else:
                self.aside.append(row)
        raise StopIteration

    def first(self, limit: int, name: str) -> Cases:
        """Read the first ``limit`` cases now and iterate over them; :class:`DataError` when there are fewer."""
        if limit < 1:
            raise DataError(f"{name}: the limit must be at least 1, not {limit}")
        taken: list[Case] = []
        for case in self:
            taken.append(case)
            if len(taken) == limit:
                break
        if len(taken) < limit:
            raise DataError(
                f"{name}: {limit} cases were asked for, but only {len(taken)} can be used "
                f"({len(self.bad)} bad rows, {len(self.aside)} weak candidates set aside). "
                "Ask for fewer, or mend the rows."
            )
        self._rows = iter(taken)
        return self

    def result(self) -> LoadResult:
        """Read to the end and return everything."""
        cases = tuple(self)
        return LoadResult(cases, tuple(self.bad), tuple(self.aside))


class Ids:
    """Notices ids that come twice; keeps one 8-byte hash and a line number per row, never a text."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[int, int] = {}

    def twice(self, id_: str, line: int) -> BadRow | None:
        """A bad row naming both lines when ``id_`` was seen before, else ``None``."""
        mark = int(digest(id_)[:16], 16)
        first = self._lines.get(mark)
        if first is None:
            self._lines[mark] = line
            return None
        return BadRow(
            self._file, line, None, f"duplicate id {id_!r}: lines {first} and {line}", "one row per id", field="id"
        )


def case_id(file: str, record: str, direction: str = "") -> str:
    """The id of a record of a published file: a hash of file, record id (or line number) and direction.

    ``file`` is the name inside the data set, never a path of this machine, so ids agree everywhere.
    """
    return digest("case", file, record, direction)[:16]


def clash(file: str, want: str, found: object) -> DataError:
    """The error for a published file that does not have its published shape."""
    return DataError(f"{file}: expected {want}, found {found}. The file was changed or is not the published one.")
