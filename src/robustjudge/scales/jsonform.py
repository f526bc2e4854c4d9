"""JSON objects in a reply: find them whole, string-aware, in one pass, and read the declared verdict key."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from robustjudge.scales.scale import Scale

_OPEN = re.compile(r"\{(?=[ \t\n]{0,64}\")")
_MARK = re.compile(r'["\\{}\[\],]')
_KEY = re.compile(r"[^a-z0-9]")
_MAX_DEPTH = 64

VERDICT_WORDS = ("score", "rating", "grade", "verdict", "answer", "winner", "best", "overall")
_KEYS = frozenset(p + w for w in VERDICT_WORDS for p in ("", "final", "my", "myfinal", "overall")) - {"overalloverall"}
_TALK = frozenset({"answer", "finalanswer", "myanswer", "best", "verdict", "winner"})


class Number(str):
    """A JSON number as it was written."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A JSON object with its keys in order, doubled keys kept."""

    items: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """One object of the text: its span and its content (None when it is no valid JSON)."""

    start: int
    end: int
    content: Pairs | None


class Unclosed(Exception):
    """An object was opened and the text ended."""


def objects(text: str) -> Iterator[Found]:
    """Every outermost JSON object, in order.  Raises :class:`Unclosed` for one that never closes."""
    at = 0
    while (m := _OPEN.search(text, at)) is not None:
        end, body = _close(text, m.start())
        yield Found(m.start(), end, _parse(body))
        at = end


def _close(text: str, start: int) -> tuple[int, str]:
    """The end of the object that opens at ``start`` and its text without trailing commas."""
    depth, in_string, pending = 0, False, -1
    deepest = 0
    commas: list[int] = []
    at = start
    while (m := _MARK.search(text, at)) is not None:
        char, at = m[0], m.end()
        if in_string:
            if char == "\\":
                at += 1
            elif char == '"':
                in_string = False
            continue
        if char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ",":
            pending = m.start()
        elif char in "}]":
            if pending >= 0 and m.start() - pending <= 200 and not text[pending + 1 : m.start()].strip():
                commas.append(pending)
            depth -= 1
            if depth == 0:
                cuts = [start, *(c + 1 for c in commas), at]
                body = "".join(text[a : b - 1] + " " for a, b in itertools.pairwise(cuts[:-1])) + text[cuts[-2] : at]
                return at, body if deepest <= _MAX_DEPTH else ""
    raise Unclosed


def _parse(body: str) -> Pairs | None:
    try:
        content = json.loads(
            body,
            strict=False,
            object_pairs_hook=lambda pairs: Pairs(tuple(pairs)),
            parse_int=Number,
            parse_float=Number,
            parse_constant=lambda name: None,
        )
    except ValueError:
        return None
    return content if isinstance(content, Pairs) else None


def is_verdict_key(key: str) -> bool:
    """Whether ``key`` (any case, any separators) names a verdict."""
    return _KEY.sub("", key.casefold()) in _KEYS


def value_of(item: Any, scale: Scale, key: str = "") -> float | str | None:
    """The value of one JSON item on the scale, or None: booleans, null, lists and objects are no verdict."""
    if isinstance(item, bool):
        return _truth(item, scale, key)
    if not isinstance(item, str):
        return None
    text = item.strip()
    if scale.numeric:
        if isinstance(item, Number) and "e" in text.casefold():
            text = _unscientific(text)
        return scale.number(text)
    label = scale.label(text.rstrip("."))
    if label is None and text.casefold() in ("true", "false"):
        return _truth(text.casefold() == "true", scale, key)
    return label


def _truth(value: bool, scale: Scale, key: str) -> str | None:
    """A truth value as a label: where the labels are pass and fail, or the key is itself one of two labels."""
    if scale.numeric or len(scale.labels) != 2:
        return None
    spoken = scale.label("true" if value else "false")
    if spoken is not None:
        return spoken
    named = scale.label(key.strip())
    if named is None and {x.casefold() for x in scale.labels} == {"pass", "fail"}:
        named = scale.label("pass")
    if named is None:
        return None
    other = next(x for x in scale.labels if x != named)
    return named if value else other


def _unscientific(text: str) -> str:
    if len(text) > 24:
        return text
    value = float(text)
    return repr(value) if abs(value) < 1e15 else text


def verdict(content: Pairs, scale: Scale) -> tuple[bool, float | str | None]:
    """(is there a verdict key, its value or None when it is no verdict): an overall key goes before the others;
    keys that disagree, doubled ones too, are no verdict."""
    overall: list[float | str | None] = []
    others: list[tuple[bool, float | str | None]] = []
    for key, item in content.items:
        name = _KEY.sub("", key.casefold())
        if scale.overall and scale.overall not in ("mean", "min"):
            if key.casefold() == scale.overall.casefold():
                overall.append(value_of(item, scale, key))
            continue
        if name in _KEYS:
            value = value_of(item, scale, key)
            if name.startswith("overall"):
                overall.append(value)
            else:
                talk = value is None and name in _TALK and isinstance(item, str) and not isinstance(item, Number)
                others.append((talk, value))
        elif not scale.numeric and len(scale.labels) == 2 and scale.label(key.strip()) is not None:
            others.append((False, value_of(item, scale, key)))
    found = overall or [v for talk, v in others if not talk] or [v for _, v in others]
    if not found:
        return False, None
    return True, found[0] if all(v == found[0] and type(v) is type(found[0]) for v in found) else None


def sub_scores(content: Pairs, scale: Scale) -> dict[str, float | None]:
    """The declared criteria found in an object, at its top or one level down; None where one is no score or doubled."""
    found: dict[str, float | None] = {}
    wanted = {_KEY.sub("", c.casefold()): c for c in scale.criteria}
    levels = [content, *(v for _, v in content.items if isinstance(v, Pairs))]
    for level in levels:
        for key, item in level.items:
            name = wanted.get(_KEY.sub("", key.casefold()))
            if name is None:
                continue
            value = value_of(item, scale)
            score = value if isinstance(value, float) else None
            found[name] = score if name not in found or found[name] == score else None
    return found
