"""Control tokens in untrusted text are made visible text: an injection channel of the engine, closed at its door.

``<|im_end|>`` written by a candidate becomes ``<\\|im_end|>``: a backslash after the first character of every
occurrence that touches untrusted characters.  Trusted text keeps its meaning, and nothing else is changed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from robustjudge import door
from robustjudge.nouns import Call, Message

MARK = "\\"


def neutral(message: Message, control: tuple[str, ...]) -> str:
    """The message's text in which no ``control`` token has an untrusted character in it.

    Occurrences across the border of two parts count too.  Lone surrogates and NUL are mapped first.
    """
    text = "".join(door.safe(p.text) for p in message.parts)
    pattern = _pattern(control)
    if pattern is None or not any(p.field for p in message.parts):
        return text
    untrusted = bytearray()
    for part in message.parts:
        untrusted += (b"\1" if part.field else b"\0") * len(door.safe(part.text))
    while True:
        hits = [m.start() for m in pattern.finditer(text) if any(untrusted[m.start() : m.end()])]
        if not hits:
            return text
        cuts = [0, *(at + 1 for at in hits), len(text)]
        spans = list(pairwise(cuts))
        text = MARK.join(text[a:b] for a, b in spans)
        untrusted = bytearray(b"\1".join(untrusted[a:b] for a, b in spans))


def joint(call: Call) -> str:
    """A private-use character that occurs nowhere in the call, to mark forced token borders; empty when there are none."""
    if not any(p.cuts for m in call.messages for p in m.parts):
        return ""
    seen = set().union(*(m.text for m in call.messages))
    return next(chr(c) for c in range(0x10FFFD, 0xE000, -1) if chr(c) not in seen)


def jointed(message: Message, mark: str) -> Message:
    """The message with ``mark`` at every cut."""
    if not mark:
        return message
    parts = []
    for p in message.parts:
        edges = [0, *sorted({c for c in p.cuts if 0 < c < len(p.text)}), len(p.text)]
        parts.append(replace(p, text=mark.join(p.text[a:b] for a, b in pairwise(edges)), cuts=()))
    return replace(message, parts=tuple(parts))


@lru_cache(maxsize=16)
def _pattern(control: tuple[str, ...]) -> re.Pattern[str] | None:
    """All control tokens of two or more characters that a backslash can break, at any (even overlapping) place."""
    usable = sorted({t for t in control if len(t) > 1 and MARK not in t}, key=lambda t: (-len(t), t))
    return re.compile("|".join(map(re.escape, usable))) if usable else None
