"""Disguises of a payload: invisible, look-alike, spaced and base64 forms, as a layer over any wording."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

_ALIKE = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")  # Latin to Cyrillic letters of the same look


def _invisible(text: str) -> str:
    """A zero-width space between any two letters of a word."""
    return "".join(a + ("\u200b" if a.isalnum() and b.isalnum() else "") for a, b in zip(text, text[1:] + " "))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


DRESSES: Mapping[str, Callable[[str], str]] = {
    "": lambda text: text,
    "zero_width": _invisible,
    "lookalike": lambda text: text.translate(_ALIKE),
    "tags": lambda text: "".join(chr(0xE0000 + ord(c)) if 0x20 <= ord(c) < 0x7F else c for c in text),
    "spaced": " ".join,
    "base64": _encoded,
}
"""``tags`` maps ASCII to the invisible Unicode tag block, which some tokenizers still read."""
