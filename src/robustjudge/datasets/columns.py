"""Maps the fields of one record onto a Case: the same mapping for JSONL, JSON, CSV, Parquet and Arrow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from robustjudge import door, spec
from robustjudge.datasets.base import KINDS, OPEN, BadRow
from robustjudge.errors import DataError
from robustjudge.nouns import Case, Label, Turn, Weak
from robustjudge.spec import digest

TOLD = ("generator", "reference_generator", "human_winner")
"""Who wrote the answers and which people prefer: kept wherever a record has them, for the self-preference probe."""
_OPTIONAL = ("reference", "id", "kind", "language", "cluster", "history", "expected", "distractors")


class _Bad(Exception):
    """One field that cannot be used."""

    def __init__(self, field: str, message: str, expected: str) -> None:
        super().__init__(message)
        self.field, self.message, self.expected = field, message, expected


@spec.register("columns")
@dataclass(frozen=True)
class Columns:
    """Which column of the file holds which field of a case.

    ``task`` and ``response`` must be in every row.  The others are read where the file has them; one that was
    renamed here must exist.  ``reference`` is a text or a list of texts; ``history`` a list of objects with ``role``
    and ``text`` (or ``content``); ``distractors`` a list of texts or of objects with ``text`` and ``defect``.
    Each column of ``labels`` is one rater; each column of ``meta`` is kept under its own name, and those of :data:`TOLD`
    wherever they stand.
    Without an id column the id is a hash of the row's texts, so re-ordering the file changes no id.
    """

    task: str = "task"
    response: str = "response"
    reference: str = "reference"
    id: str = "id"
    kind: str = "kind"
    language: str = "language"
    cluster: str = "cluster"
    history: str = "history"
    expected: str = "expected"
    distractors: str = "distractors"
    labels: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()

    def _renamed(self) -> tuple[str, ...]:
        changed = (
            getattr(self, f.name) for f in fields(self) if f.name in _OPTIONAL and getattr(self, f.name) != f.default
        )
        return (*changed, *self.labels, *self.meta)

    def needed(self, *, response: bool, require: Iterable[str] = ()) -> tuple[str, ...]:
        """The columns that must exist; ``require`` adds optional fields by their name here."""
        wanted = (self.task, *((self.response,) if response else ()), *self._renamed())
        return tuple(dict.fromkeys((*wanted, *(getattr(self, name) for name in require))))

    def check(self, header: Iterable[str], file: str, *, response: bool = True, require: Iterable[str] = ()) -> None:
        """:class:`DataError` with near names when a table lacks a column that must exist."""
        known = tuple(header)
        for name in self.needed(response=response, require=require):
            if name not in known:
                near = get_close_matches(name, known, n=2, cutoff=0.5)
                hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
                raise DataError(
                    f"{file}: line 1: there is no column {name!r}; the file has {', '.join(map(repr, known))}.{hint} "
                    "Name the columns with a column mapping."
                )

    def case(
        self,
        record: Mapping[str, Any],
        file: str,
        line: int,
        *,
        dataset: str = "",
        kind: str = "",
        response: bool = True,
        require: Iterable[str] = (),
    ) -> Case | BadRow:
        """The case that ``record`` holds, or what is wrong with it.

        ``kind`` (where the row names none) is one of :data:`KINDS`.  With ``response=False`` the response may be
        absent (it will be made).  ``require`` names optional fields that must not be empty, e.g. ``reference``.
        """
        try:
            return self._case(record, dataset, kind, response, tuple(require))
        except _Bad as bad:
            return BadRow(file, line, None, bad.message, bad.expected, field=bad.field)

    def _case(
        self, record: Mapping[str, Any], dataset: str, kind: str, response: bool, require: tuple[str, ...]
    ) -> Case:
        for name in self.needed(response=response, require=require):
            if name not in record:
                near = get_close_matches(name, list(record), n=1, cutoff=0.6)
                has = f"the row has {', '.join(map(repr, list(record)[:8]))}"
                hint = f"did you mean {near[0]!r}?" if near else f"{has}; `columns` maps names"
                raise _Bad(name, f"the field is missing; {hint}", "a value")
        read = _Reader(record)
        task = read.text(self.task, full=True)
        answer = read.text(self.response, full=response) if response or self.response in record else ""
        references = read.texts(self.reference)
        if "reference" in require and not references:
            raise _Bad(self.reference, "the reference is missing", "a text that answers the task well")
        history = tuple(read.turn(self.history, item) for item in read.items(self.history))
        distractors = tuple(read.weak(self.distractors, item) for item in read.items(self.distractors))
        own_kind = read.text(self.kind) or kind or OPEN
        if own_kind not in (*KINDS, OPEN):
            near = get_close_matches(own_kind, KINDS, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _Bad(self.kind, f"unknown kind {own_kind!r}{hint}", f"one of {', '.join((*KINDS, OPEN))}")
        id_ = read.name(self.id) or digest("row", task, answer, *references)[:16]
        labels = tuple(Label(rater, text) for rater in self.labels if (text := read.name(rater)))
        told = tuple(name for name in TOLD if name in record and name not in self.meta)
        meta = {name: value for name in told if (value := read.name(name))}
        meta |= {name: read.name(name) for name in self.meta} | read.originals
        return Case(
            id=id_,
            task=task,
            response=answer,
            references=references,
            distractors=distractors,
            history=history,
            kind=own_kind,
            dataset=dataset,
            language=read.text(self.language) or "en",
            expected=read.number(self.expected),
            labels=labels,
            cluster=read.name(self.cluster) or id_,
            meta=tuple(sorted(meta.items())),
            source=dataset,
            text_mapped=bool(read.originals),
        )


class _Reader:
    """Reads the fields of one record through the door, and keeps the hash of every text the door changed."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self.originals: dict[str, str] = {}

    def _through(self, field: str, text: str) -> str:
        mapped = door.through(text)
        if mapped.changed:
            self.originals[f"original_sha256/{field}"] = mapped.sha256
        return mapped.text

    def text(self, field: str, *, full: bool = False) -> str:
        value = self._record.get(field)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise _Bad(field, f"found {type(value).__name__}, not text", "a text (in quotes)")
        if full and not value.strip():
            raise _Bad(field, "the text is empty", "a text of at least one visible character")
        return self._through(field, value)

    def name(self, field: str) -> str:
        """A short value that may also be a number or a boolean: an id, a label, a tag."""
        value = self._record.get(field)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return str(value)
        return self.text(field)

    def texts(self, field: str) -> tuple[str, ...]:
        value = self._record.get(field)
        if not isinstance(value, (list, tuple)):
            one = self.text(field)
            return (one,) if one.strip() else ()
        for item in value:
            if not isinstance(item, str) or not item.strip():
                raise _Bad(field, "a reference is empty or not text", "a text, or a list of texts")
        return tuple(self._through(f"{field}/{i}", item) for i, item in enumerate(value))

    def items(self, field: str) -> tuple[Any, ...]:
        value = self._record.get(field)
        if value is None or value == "":
            return ()
        if isinstance(value, str):  # a cell of a CSV file
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise _Bad(field, "not a list", "a list (in a CSV cell: as JSON)") from None
        if not isinstance(value, (list, tuple)):
            raise _Bad(field, f"found {type(value).__name__}", "a list (in a CSV cell: as JSON)")
        return tuple(value)

    def turn(self, field: str, item: Any) -> Turn:
        role = item.get("role") if isinstance(item, Mapping) else None
        text = (item.get("text", item.get("content"))) if isinstance(item, Mapping) else None
        if role not in ("user", "assistant") or not isinstance(text, str):
            raise _Bad(field, "a turn is malformed", 'objects {"role": "user" or "assistant", "text": "..."}')
        return Turn(str(role), self._through(field, text))

    def weak(self, field: str, item: Any) -> Weak:
        if isinstance(item, str):
            item = {"text": item}
        text = item.get("text") if isinstance(item, Mapping) else None
        if not isinstance(text, str) or not text.strip():
            raise _Bad(field, "a distractor is empty or malformed", 'a text, or {"text": "...", "defect": "..."}')
        extra = {k: str(item[k]) for k in ("defect", "verified", "human_check") if item.get(k)}
        return Weak(self._through(field, text), **extra)

    def number(self, field: str) -> float | None:
        value = self._record.get(field)
        if value is None or value == "":
            return None
        try:
            number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise _Bad(field, "not a finite number", "a number, such as 7 or 0.5")
        return number
