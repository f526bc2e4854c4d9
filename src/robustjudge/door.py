"""The door: the one mapping every text goes through when it enters (lone surrogates and NUL become visible)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

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


def through(text: str) -> Mapped:
    """Map ``text`` at the door and keep the hash of the original."""
    mapped = safe(text)
    return Mapped(mapped, mapped is not text, digest(text))


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal; lone surrogates are hashed as they are."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
