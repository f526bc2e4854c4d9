"""The long-form label file: one row per (item, rater), CSV, JSONL or Parquet, read lazily; bad rows are named.

A wide matrix is never guessed at: transposed, it would give a plausible and wrong agreement.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from math import inf, isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from robustjudge.door import safe
from robustjudge.errors import DataError
from robustjudge.nouns import STATUSES

REQUIRED = ("item_id", "rater_id", "rater_kind", "label")
KINDS = ("human", "judge", "adjudicated")


@dataclass(slots=True)
class LabelRow:
    """One label; not to be changed once made (frozen it would be ten times dearer to make, and a file has a million).

    ``label`` is None where it is missing or the verdict was not ok; ``label_type`` is how the file typed it (``text``,
    ``number``, ``boolean``), because "2" and 2 are not one label.  ``score`` is a judge's probability of the positive
    label, in [0, 1].
    """

    line: int
    item_id: str
    rater_id: str
    rater_kind: str
    label: str | None
    label_type: str = "text"
    slate_id: str = ""
    status: str = "ok"
    stage: str = "independent"
    order: str = ""
    repeat: int = 0
    attack: str = ""
    defense: str = ""
    template: str = ""
    stratum: str = ""
    inclusion_prob: float | None = None
    cluster: str = ""
    session: str = ""
    seconds: float | None = None
    position: int | None = None
    score: float | None = None

    @property
    def item(self) -> str:
        """The unit judged: the item, within its slate where there is one."""
        return f"{self.item_id}\x1f{self.slate_id}" if self.slate_id else self.item_id

    @property
    def series(self) -> tuple[str, ...]:
        """Whose labels these are and under which circumstances: an item may occur once in a series."""
        who = "adjudicated" if self.rater_kind == "adjudicated" else self.rater_id
        return who, str(self.repeat), self.order, self.attack, self.defense, self.template


@dataclass(frozen=True, slots=True)
class BadLabel:
    """A row that cannot be used: file, line, column and why.  The rest goes on."""

    file: str
    line: int
    column: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, {self.column}: {self.message}"


def read_labels(path: Path) -> Iterator[LabelRow | BadLabel]:
    """Yield the rows of a label file one at a time, in order; memory does not grow with the file.

    Raises :class:`DataError` for a file that is no long form at all (a required column missing).
    """
    yield from gathered(path, None)


Tail: TypeAlias = tuple[Any, ...]
"""The fields of a row from ``rater_id`` to ``session``: few people, few labels, so few different ones in a file."""
Own: TypeAlias = tuple[str, str, str]
"""Seconds, position and score of a row, as they are written."""
Told: TypeAlias = tuple[float | None, int | None, float | None]
"""The same, read."""


@dataclass(slots=True)
class Shelf:
    """Rows of a CSV file with the tail of ``row``, the first of them: the later ones' items, lines, and cells of their own
    (three a row, side by side: a hundred thousand small tuples would keep the collector busy)."""

    row: LabelRow
    tail: Tail
    items: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)

    def rows(self, file: str) -> Iterator[LabelRow | BadLabel]:
        """The later rows, one by one."""
        for line, item, own in zip(self.lines, self.items, zip(*[iter(self.cells)] * len(_OWN))):
            yield whole(file, line, item, self.tail, own)


def whole(file: str, line: int, item: str, tail: Tail, own: Own) -> LabelRow | BadLabel:
    """A row from its parts, or what is wrong with what is its own."""
    try:
        return LabelRow(line, item, *(*tail, *_own(own)))
    except _Bad as fault:
        return BadLabel(file, line, fault.column, fault.message)


def gathered(path: Path, shelves: list[Shelf] | None) -> Iterator[LabelRow | BadLabel]:
    """As :func:`read_labels`; with ``shelves``, plain CSV rows whose tail was met before are put there instead, their
    numbers unread, for those who sort many rows."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from _csv(path, shelves)
        return
    if suffix in (".jsonl", ".ndjson"):
        source = _jsonl(path)
    elif suffix == ".parquet":
        source = _parquet(path)
    else:
        raise DataError(f"{path.name}: label files are .csv, .jsonl or .parquet")
    for line, data in source:
        if isinstance(data, str):
            yield BadLabel(path.name, line, "-", data)
        else:
            yield _row(path.name, line, data)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    h = sha256()
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def _need(path: Path, columns: list[str]) -> None:
    missing = [c for c in REQUIRED if c not in columns]
    if missing:
        hint = "one row per (item, rater) is needed; a wide table must be imported with its orientation stated"
        raise DataError(f"{path.name}: column(s) {', '.join(missing)} missing: {hint}")
    doubled = sorted({c for c in columns if columns.count(c) > 1})
    if doubled:
        raise DataError(f"{path.name}: column(s) {', '.join(doubled)} occur twice")


def _csv(path: Path, shelves: list[Shelf] | None) -> Iterator[LabelRow | BadLabel]:
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as f:
        reader = csv.reader(f)
        header = next(reader, [])
        _need(path, header)
        name, width, at = path.name, len(header), header.index("item_id")
        own = {header.index(c): k for k, c in enumerate(_OWN) if c in header}
        others = itemgetter(*(k for k in range(width) if k != at and k not in own))
        known: dict[tuple[str, ...], Shelf] = {}
        cells_of = _cells_of(own)
        start = reader.line_num + 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as fault:
                yield BadLabel(name, start, "-", str(fault))
                start = reader.line_num + 1
                continue
            line, start = start, reader.line_num + 1
            if not cells:
                continue
            if len(cells) != width:
                yield BadLabel(name, line, "-", f"{len(cells)} cells under {width} columns")
                continue
            item, key = cells[at], others(cells)
            shelf = known.get(key)
            if shelf is not None and item.isascii() and item.isprintable() and item and item == item.strip():
                if shelves is None or not _plain(shelf.row):
                    yield whole(name, line, item, shelf.tail, cells_of(cells))
                    continue
                shelf.items.append(item)
                shelf.lines.append(line)
                shelf.cells += cells_of(cells)
                continue
            row = _row(name, line, dict(zip(header, cells)))
            if isinstance(row, LabelRow) and len(known) < _KNOWN:
                known[key] = shelf = Shelf(row, tuple(getattr(row, f.name) for f in fields(LabelRow)[2:-3]))
                if shelves is not None and _plain(row):
                    shelves.append(shelf)
            yield row


def _plain(row: LabelRow) -> bool:
    """A label of an item by itself: no slate, no attack, not a repeat."""
    return not (row.slate_id or row.attack or row.repeat or row.order or row.defense or row.template or row.cluster)


_KNOWN = 4096
"""Different rows (but for the item) that are remembered while reading."""
_OWN = ("seconds", "position", "score")
"""What is a row's own, beside its item: everything else is shared by many."""


def _jsonl(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    with path.open(encoding="utf-8", errors="surrogateescape") as f:
        for line, text in enumerate(f, 1):
            if not text.strip():
                continue
            try:
                data = json.loads(text)
            except (json.JSONDecodeError, RecursionError) as fault:
                yield line, f"not JSON ({fault})"
                continue
            yield line, data if isinstance(data, dict) else "not a JSON object"


def _parquet(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            f"{path.name}: reading Parquet needs pyarrow; install robustjudge[export] or convert to JSONL"
        ) from None
    file = parquet.ParquetFile(path)
    _need(path, list(file.schema_arrow.names))
    line = 0
    for batch in file.iter_batches(batch_size=8192):
        for data in batch.to_pylist():
            line += 1
            yield line, data


class _Bad(Exception):
    def __init__(self, column: str, message: str) -> None:
        self.column, self.message = column, message


def _given(value: Any) -> bool:
    return value is not None and (not isinstance(value, str) or bool(value.strip()))


def _text(value: Any, column: str) -> str:
    if isinstance(value, str):
        return safe(value).strip()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise _Bad(column, f"expected text, got {type(value).__name__}")


def _number(value: Any, column: str) -> float:
    try:
        number = float(value if isinstance(value, str) else _text(value, column))
    except ValueError:
        raise _Bad(column, f"{_text(value, column)!r} is not a number") from None
    if not isfinite(number):
        raise _Bad(column, f"{_text(value, column)!r} is not a finite number")
    return number


def _count(value: Any, column: str) -> int:
    number = _number(value, column)
    if number != int(number) or number < 0:
        raise _Bad(column, f"{_text(value, column)!r} is not a count")
    return int(number)


def _seconds(value: Any, column: str) -> float:
    number = _number(value, column)
    if number < 0:
        raise _Bad(column, f"{_text(value, column)!r} is less than no time")
    return number


def _stage(value: Any, column: str) -> str:
    stage = _text(value, column)
    if stage not in ("independent", "reconciled"):
        raise _Bad(column, f"{stage!r} is neither independent nor reconciled")
    return stage


def _score(value: Any, column: str) -> float:
    number = _number(value, column)
    if not 0 <= number <= 1:
        raise _Bad(column, f"{_text(value, column)!r} is not in [0, 1]")
    return number


def _probability(value: Any, column: str) -> float:
    number = _number(value, column)
    if not 0 < number <= 1:
        raise _Bad(column, f"{_text(value, column)!r} is not in (0, 1]")
    return number


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("slate_id", "order", "attack", "defense", "template", "stratum", "cluster", "session"), _text),
    **dict.fromkeys(("repeat", "position"), _count),
    "stage": _stage,
    "inclusion_prob": _probability,
    "seconds": _seconds,
    "score": _score,
}


def _cells_of(own: Mapping[int, int]) -> Callable[[Sequence[str]], Own]:
    """What picks seconds, position and score out of a row's cells; ``own``: column to place among them."""
    if not own:
        return lambda cells: ("", "", "")
    if len(own) == len(_OWN):
        return itemgetter(*sorted(own, key=own.__getitem__))
    places = [next((i for i, k in own.items() if k == place), None) for place in range(len(_OWN))]
    i, j, k = places
    return lambda cells: (
        "" if i is None else cells[i],
        "" if j is None else cells[j],
        "" if k is None else cells[k],
    )


def _own(cells: Own) -> Told:
    s, p, c = cells
    return (
        _seconds(s, "seconds") if s and not s.isspace() else None,
        _count(p, "position") if p and not p.isspace() else None,
        _score(c, "score") if c and not c.isspace() else None,
    )


Numbers: TypeAlias = list[float | None]


def owned(cells: Sequence[str]) -> tuple[Numbers, list[int | None], Numbers] | None:
    """Seconds, positions and scores of many rows at once, whose cells stand side by side; ``None`` where any of them
    cannot be used (then they are to be read singly)."""
    try:
        seconds, positions, scores = (_column(cells[k :: len(_OWN)]) for k in range(len(_OWN)))
        whole = [None if v is None else int(v) for v in positions]
    except (ValueError, OverflowError):
        return None
    for numbers, high in ((seconds, inf), (positions, inf), (scores, 1.0)):
        given = [v for v in numbers if v is not None]
        if given and not (min(given) >= 0 and max(given) <= high and isfinite(sum(given))):
            return None
    return (seconds, whole, scores) if whole == positions else None


def _column(cells: Sequence[str]) -> Numbers:
    if not any(cells):
        return [None] * len(cells)
    if all(cells):
        return list(map(float, cells))
    return [float(c) if c and not c.isspace() else None for c in cells]


def _label(data: Mapping[str, Any]) -> tuple[str | None, str]:
    value = data.get("label")
    if isinstance(value, bool):
        return ("true" if value else "false"), "boolean"
    if isinstance(value, (int, float)):
        if not isfinite(value):
            raise _Bad("label", "not a finite number")
        return (str(int(value)) if value == int(value) else repr(float(value))), "number"
    return _text(value, "label") or None, "text"


def _row(file: str, line: int, data: Mapping[str, Any]) -> LabelRow | BadLabel:
    try:
        item, rater, kind = (_text(data.get(c), c) for c in REQUIRED[:3])
        for column, value in (("item_id", item), ("rater_id", rater)):
            if not value:
                raise _Bad(column, "is empty")
        if kind not in KINDS:
            raise _Bad("rater_kind", f"{kind!r} is none of {', '.join(KINDS)}")
        status = _text(data.get("status"), "status") or "ok"
        if status not in STATUSES:
            raise _Bad("status", f"{status!r} is none of {', '.join(STATUSES)}")
        label, how = _label(data)
        if status != "ok":
            label = None
        more = {c: read(v, c) for c, v in data.items() if (read := _READERS.get(c)) and _given(v)}
        return LabelRow(line, item, rater, kind, label, how, status=status, **more)
    except _Bad as fault:
        return BadLabel(file, line, fault.column, fault.message)


def write_labels(rows: Iterable[LabelRow], path: Path) -> None:
    """Write rows as long-form ``.csv`` or ``.jsonl``; :func:`read_labels` reads them back equal.

    A CSV cell that a spreadsheet would run as a formula is a :class:`DataError`: such data go to JSONL.
    """
    names = [f.name for f in fields(LabelRow) if f.name not in ("line", "label_type")]
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise DataError(f"{path.name}: labels are written as .csv or .jsonl")
    with path.open("w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        if path.suffix.lower() == ".csv":
            out.writerow(names)
        for row in rows:
            values = {n: getattr(row, n) for n in names}
            if path.suffix.lower() == ".jsonl":
                f.write(json.dumps({n: v for n, v in values.items() if v not in (None, "")}, ensure_ascii=False) + "\n")
                continue
            cells = ["" if v is None else str(v) for v in values.values()]
            if risky := next((c for c in cells if _formula(c)), None):
                raise DataError(f"{path.name}: {risky[:40]!r} would run as a formula in a spreadsheet; write .jsonl")
            out.writerow(cells)


def _formula(cell: str) -> bool:
    if not cell or cell[0] not in "=+-@\t\r":
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def read_wide(path: Path) -> dict[str, dict[str, str | None]]:
    """A wide CSV as ``{row: {column: label}}``; the first column names the rows.  Say which are raters: see
    :func:`from_wide`."""
    with path.open(newline="", encoding="utf-8-sig") as f:
        reader = csv.reader(f)
        header = next(reader, [])[1:]
        out: dict[str, dict[str, str | None]] = {}
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header) + 1:
                raise DataError(
                    f"{path.name}, line {reader.line_num}: {len(cells)} cells under {len(header) + 1} columns"
                )
            if cells[0] in out:
                raise DataError(f"{path.name}, line {reader.line_num}: row {cells[0]!r} occurs twice")
            out[cells[0]] = {name: safe(v).strip() or None for name, v in zip(header, cells[1:])}
    return out


def from_wide(table: Mapping[str, Mapping[str, str | None]], raters_in: str) -> Iterator[LabelRow]:
    """Rows of a wide human matrix whose orientation is *stated*: ``{row: {column: label}}`` and whether raters are in
    ``rows`` or ``columns``."""
    if raters_in not in ("rows", "columns"):
        raise DataError("state the orientation of a wide table: raters in rows or in columns")
    line = 0
    for row, cells in table.items():
        for column, label in cells.items():
            line += 1
            rater, item = (row, column) if raters_in == "rows" else (column, row)
            yield LabelRow(line, item, rater, "human", label or None)
