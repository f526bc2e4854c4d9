"""Plain English words that searches draw from where no tokenizer is at hand (own choice, ``words.txt``)."""

from __future__ import annotations

from importlib.resources import files

VOCABULARY: tuple[str, ...] = tuple((files("robustjudge.attacks") / "words.txt").read_text(encoding="utf-8").split())
"""Words about quality first (the first 64 are the pre-screened list of the quick universal phrase), then plain ones."""
