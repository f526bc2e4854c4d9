"""The built-in cases: eight tasks, twelve different situations each, in English, Chinese and German.

All texts are our own.  Every reference passes the check that the case carries, its weak response and its
distractors fail it (``robustjudge.datasets.checks``); no person has looked at them (``human_check``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice

from robustjudge.datasets.base import KINDS
from robustjudge.errors import DataError, UnknownName
from robustjudge.nouns import Case, Weak
from robustjudge.spec import canonical

LICENCE = "Apache-2.0"
SOURCE = "robustjudge built-in"


def builtin(kind: str | None = None, limit: int | None = None) -> Iterator[Case]:
    """Yield the built-in cases of one ``kind``, or of all eight in the order of :data:`KINDS`.

    ``limit`` takes the first so many of *each* kind.  Files are read one line at a time, when asked for.
    Raises :class:`UnknownName` for an unknown kind and :class:`DataError` when a kind holds fewer than ``limit``.
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("task kind", kind, KINDS)
    if limit is not None and limit < 0:
        raise DataError(f"limit is {limit}; it must be 0 or more")
    return _cases(KINDS if kind is None else (kind,), limit)


def _cases(kinds: tuple[str, ...], limit: int | None) -> Iterator[Case]:
    for kind in kinds:
        given = 0
        for case in islice(_read(kind), limit):
            given += 1
            yield case
        if limit is not None and given < limit:
            raise DataError(f"{limit} built-in {kind} cases were asked for; there are {given}")


def _read(kind: str) -> Iterator[Case]:
    path = files("robustjudge").joinpath("datasets", "builtin", f"{kind}.jsonl")
    with path.open("r", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            check = row["verified"]
            yield Case(
                id=row["id"],
                task=row["task"],
                response=row["response"],
                references=(row["reference"],),
                distractors=tuple(Weak(d["text"], d["defect"], check) for d in row["distractors"]),
                kind=kind,
                dataset="builtin",
                language=row["language"],
                defect=row["defect"],
                verified=check,
                meta=tuple(sorted({**row["meta"], "check": canonical(row["check"])}.items())),
                source=SOURCE,
                licence=LICENCE,
            )
