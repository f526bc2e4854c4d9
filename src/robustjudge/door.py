"""The door: the one mapping every text goes through when it enters (lone surrogates and NUL become visible), and the one
it goes through when people see it (control and direction characters become visible)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from hashlib import sha256

from robustjudge.nouns import Case

_UNSAFE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Mapped:
    """``text`` is valid UTF-8 without NUL; ``changed`` says whether the mapping did anything;
    ``sha256`` is the hash of the original (surrogates passed through), so the original can be recognised."""

    text: str
    changed: bool
    sha256: str


def _visible(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def safe(text: str) -> str:
    """``text`` with every lone surrogate and NUL shown as ``\\uXXXX``; anything else is untouched."""
    return _UNSAFE.sub(_visible, text) if _UNSAFE.search(text) else text


_KEPT = "\n\t"
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def visible(text: str) -> str:
    """``text`` as it may be shown on a terminal or a page: control, format (direction), private-use and surrogate
    characters as escapes; line break and tab stay, a carriage return before a line break goes."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if all(c in _KEPT or c.isprintable() for c in text):
        return text
    return "".join(c if c in _KEPT or unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text)


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) <= 0xFFFF else f"\\U{ord(c):08x}"


def through(text: str) -> Mapped:
    """Map ``text`` at the door and keep the hash of the original."""
    mapped = safe(text)
    return Mapped(mapped, mapped is not text, digest(text))


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal; lone surrogates are hashed as they are."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def admitted(case: Case) -> Case:
    """A case as it may enter a run: every text through the door.  Most cases are the same object afterwards; one that
    was changed is flagged, and its ``meta`` keeps the hash of each original."""
    texts = (case.id, case.task, case.response, case.kind, case.language, *case.references)
    texts += tuple(w.text for w in case.distractors) + tuple(t.text for t in case.history)
    texts += tuple(x for pair in case.meta for x in pair)
    unsafe = [t for t in texts if _UNSAFE.search(t)]
    if not unsafe:
        return case
    originals = tuple((f"original_sha256/{i}", digest(t)) for i, t in enumerate(unsafe))
    return replace(
        case,
        id=safe(case.id),
        task=safe(case.task),
        response=safe(case.response),
        kind=safe(case.kind),
        language=safe(case.language),
        references=tuple(map(safe, case.references)),
        distractors=tuple(replace(w, text=safe(w.text)) for w in case.distractors),
        history=tuple(replace(t, text=safe(t.text)) for t in case.history),
        meta=(*((safe(k), safe(v)) for k, v in case.meta), *originals),
        text_mapped=True,
    )
