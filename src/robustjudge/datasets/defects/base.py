"""What a defect is, and the cutting of texts into words, sentences and lines that all defects share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_UNIT = re.compile(r"[\u3400-\u9fff]{1,2}|[^\W\u3400-\u9fff]+|\s+|[^\w\s]")
_PIECE = re.compile(r"[.!?。！？\n]+\s*|[^.!?。！？\n]+")
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Material:
    """What a defect may draw on: the good text, the task, other good texts of the same kind and language, and the
    same content in a wrong language (the untranslated source), where there is one."""

    good: str
    task: str = ""
    language: str = "en"
    code_language: str = ""
    others: tuple[str, ...] = ()
    foreign: str = ""
    gold: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Defect:
    """``spoil`` makes the bad text (``None`` where this good text offers no hold), ``present`` tests for the defect.

    ``foreign`` says that the bad text is in a wrong language by intent.
    """

    name: str
    spoil: Callable[[Material, Random], str | None]
    present: Callable[[Material, str], bool]
    foreign: bool = False


def units(text: str) -> list[str]:
    """Words, pairs of Chinese characters, spaces and marks; joined again they give ``text``."""
    return _UNIT.findall(text)


def words(text: str) -> list[str]:
    """The units that are not space."""
    return [u for u in units(text) if not u.isspace()]


def sentences(text: str) -> list[str]:
    """Sentences with the space behind them; joined again they give ``text``.  A point inside a number ends none."""
    out: list[str] = []
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        pieces.append(piece)
        if piece[0] in ".!?。！？\n" and (piece[-1].isspace() or piece[-1] in "。！？"):
            out.append("".join(pieces))
            pieces = []
    return [*out, "".join(pieces)] if pieces else out


def share(items: list[str], low: float, high: float) -> list[str]:
    """The items from ``low`` to ``high`` (shares of the length), at least one."""
    start, end = int(len(items) * low), int(len(items) * high)
    return items[start : max(end, start + 1)]


def other_number(old: str, rng: Random) -> str:
    """A number of as many digits that differs from ``old``; at most nine digits are drawn, the rest is kept."""
    head, tail = old[:9], old[9:]
    low, high = (0, 9) if len(head) == 1 else (10 ** (len(head) - 1), 10 ** len(head) - 1)
    new = rng.randint(low, high)
    if new == int(head):
        new = low if new == high else new + 1
    return f"{new}{tail}"


def longer_mix(first: list[str], second: list[str]) -> str:
    """The first half of one text and the second half of another."""
    return "".join(share(first, 0, 0.5)) + "".join(share(second, 0.5, 1))
