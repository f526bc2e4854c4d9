"""Untrusted text in documents: one visible line, long text shortened with its length told, changes marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustjudge import door
from robustjudge.door import visible as visible

LIMIT = 20_000
"""Characters of one text that a report shows; the whole text stays in ``run.sqlite``."""


def one_line(text: str, limit: int = 120) -> str:
    """``text`` as one visible line of at most ``limit`` characters."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def shortened(text: str, limit: int = LIMIT) -> str:
    """Head and tail of a text longer than ``limit``, with what was left out and the whole length in between."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 5, limit * 2 // 5
    left = len(text) - head - tail
    return f"{text[:head]}\n[... {left:,} of {len(text):,} characters left out ...]\n{text[-tail:]}"


def fingerprint(text: str) -> str:
    """The hash that stands for a redacted text: the first 32 hexadecimal digits of its SHA-256, as in ``run.sqlite``."""
    return door.digest(text)[:32]


def shown(text: str | None, redact: bool = False) -> dict[str, Any] | None:
    """A text as report.json holds it: the text (shortened if need be), its length, its hash.  ``None``: not stored."""
    if text is None:
        return None
    found: dict[str, Any] = {"length": len(text), "hash": fingerprint(text)}
    if redact:
        return {**found, "text": None, "redacted": True}
    return {**found, "text": shortened(text), "shortened": len(text) > LIMIT}


def changed(before: str, after: str) -> list[list[str]]:
    """``after`` in parts ``[kind, text]``: kind ``same`` as ``before`` or ``new`` (between the common start and the common
    end; both are drawn back to the edge of a word)."""
    start = 0
    for a, b in zip(before, after):
        if a != b:
            break
        start += 1
    stop = 0
    for a, b in zip(reversed(before[start:]), reversed(after[start:])):
        if a != b:
            break
        stop += 1
    if start < len(after) and start < len(before):
        while start and after[start - 1].isalnum() and after[start : start + 1].isalnum():
            start -= 1
    end = len(after) - stop
    parts = [["same", after[:start]], ["new", after[start:end]], ["same", after[end:]]]
    return [p for p in parts if p[1]]


def cut(parts: Sequence[Sequence[str]], limit: int = LIMIT) -> list[list[str]]:
    """Every part of a marked text shortened on its own."""
    return [[kind, shortened(text, limit)] for kind, text in parts]
