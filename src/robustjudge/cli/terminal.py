"""Hostile text on a terminal: control and direction characters are shown as visible escapes, never sent."""

from __future__ import annotations

from robustjudge import door


def visible(text: str, limit: int | None = None) -> str:
    """``text`` safe to print: no control, format or surrogate character but line break and tab, which become spaces
    when ``limit`` asks for one short line (then long text is cut and its length told)."""
    if limit is not None:
        text = text.replace("\n", " ").replace("\t", " ")
    out = door.visible(text)
    if limit is not None and len(out) > limit:
        return f"{out[: max(0, limit - 1)]}… ({len(text)} characters)"
    return out
