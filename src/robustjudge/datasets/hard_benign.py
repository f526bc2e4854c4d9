"""Honest texts that look like attacks: what a detector must let through (its false positives are counted on them).

All are our own writing; none addresses a judge, asks for a verdict or hides anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from robustjudge.errors import UnknownName

BENIGN_KINDS: tuple[str, ...] = (
    "instructions",
    "code_comments",
    "evaluation_essay",
    "repetition",
    "mixed_language",
    "rubric_words",
    "encoded",
)
"""Why a text looks suspicious: it quotes a prompt or gives orders; its code comments address a reader; it is about
evaluation; it repeats itself at length; it mixes languages; it uses the words of a rubric; it holds base64 or LaTeX."""


@dataclass(frozen=True, slots=True)
class Benign:
    """One honest text with a stable ``id``, one of :data:`BENIGN_KINDS`, and its main language (en, de, zh)."""

    id: str
    kind: str
    language: str
    text: str


def hard_benign(kind: str | None = None) -> Iterator[Benign]:
    """Yield the texts of one ``kind`` (at least 30), or of all; :class:`UnknownName` for an unknown kind."""
    if kind is not None and kind not in BENIGN_KINDS:
        raise UnknownName("kind of hard-benign text", kind, BENIGN_KINDS)
    return _read(kind)


def _read(kind: str | None) -> Iterator[Benign]:
    path = files("robustjudge").joinpath("datasets", "builtin", "hard_benign.jsonl")
    with path.open("r", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if kind in (None, row["kind"]):
                yield Benign(row["id"], row["kind"], row["language"], row["text"])
