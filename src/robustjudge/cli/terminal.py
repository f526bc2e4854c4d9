"""Hostile text on a terminal: control and direction characters are shown as visible escapes, never sent."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"


def visible(text: str, limit: int | None = None) -> str:
    """``text`` safe to print: no control, format or surrogate character but line break and tab, which become spaces
    when ``limit`` asks for one short line (then long text is cut and its length told)."""
    if limit is not None:
        text = text.replace("\n", " ").replace("\t", " ")
    out = "".join(
        c if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else _escape(c)
        for c in text
    )
    if limit is not None and len(out) > limit:
        return f"{out[: max(0, limit - 1)]}… ({len(text)} characters)"
    return out


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) <= 0xFFFF else f"\\U{ord(c):08x}"
