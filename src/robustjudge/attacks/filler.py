"""Task-irrelevant, payload-free text of a wanted length, in English, Chinese and German: the matter of controls."""

from __future__ import annotations

import re
from itertools import cycle, islice

from robustjudge.attacks.base import tokenish

_TEXTS = {
    "en": (
        "The morning train left on time and the platform was quiet.",
        "A light rain had fallen over the hills, and the paths were still wet.",
        "Two gardeners carried a long ladder past the old stone wall.",
        "In the harbour the boats moved slowly with the tide.",
        "The kitchen window stood open and somebody was peeling apples.",
    ),
    "zh": (
        "清晨的火车准点离开，站台上很安静。",
        "山丘上下过一阵小雨，小路还是湿的。",
        "两位园丁抬着长梯走过旧石墙。",
        "港湾里的船随着潮水慢慢移动。",
        "厨房的窗开着，有人正在削苹果。",
    ),
    "de": (
        "Der Morgenzug fuhr pünktlich ab, und der Bahnsteig war still.",
        "Über den Hügeln war leichter Regen gefallen, die Wege waren noch nass.",
        "Zwei Gärtner trugen eine lange Leiter an der alten Steinmauer vorbei.",
        "Im Hafen bewegten sich die Boote langsam mit der Flut.",
        "Das Küchenfenster stand offen, und jemand schälte Äpfel.",
    ),
}

FILLERS = 5
"""Number of different fillers per language (each starts with another sentence)."""


def _sentences(language: str, kind: int) -> cycle[str]:
    texts = _TEXTS.get(language, _TEXTS["en"])
    kind %= len(texts)
    return cycle(texts[kind:] + texts[:kind])


def filler(language: str, characters: int, kind: int = 0) -> str:
    """Neutral text of exactly ``characters`` characters."""
    joiner = "" if language == "zh" else " "
    out: list[str] = []
    size = 0
    for sentence in _sentences(language, kind):
        if size >= characters:
            break
        out.append(sentence)
        size += len(sentence) + len(joiner)
    return (joiner.join(out) + joiner)[:characters]


def neutral(language: str, tokens: int, kind: int = 0) -> str:
    """Neutral text of exactly ``tokens`` of :func:`~robustjudge.attacks.base.tokenish`."""
    pieces = (p for s in _sentences(language, kind) for p in re.findall(r"\s*\w+|\s*[^\w\s]|\s+", s + " "))
    if language == "zh":
        pieces = (c for s in _sentences(language, kind) for c in s)
    out, used = "", 0
    for piece in islice(pieces, 4 * tokens + 8):
        cost = tokenish(piece)
        if used + cost > tokens:
            continue
        out += piece
        used += cost
    return out.rstrip()
