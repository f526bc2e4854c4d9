"""Texts written after the shipped thresholds were frozen: hard-benign texts, and payload families that nothing learned from.

All are our own writing.  They are for measuring alone: whoever trains or calibrates on them needs new ones afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from robustjudge.datasets.hard_benign import Benign


@dataclass(frozen=True, slots=True)
class Payload:
    """ADVERSARIAL TEST TEXT that tries to move a judge without better content.

    ``family`` is what it pretends to be, ``placement`` where it stands (``append`` or ``prepend``) beside a response.
    """

    id: str
    family: str
    language: str
    placement: str
    text: str

    def applied(self, response: str) -> str:
        """The response with the payload."""
        parts = (self.text, response) if self.placement == "prepend" else (response, self.text)
        return "\n\n".join(parts)


def fresh_benign() -> Iterator[Benign]:
    """Hard-benign texts of the kinds of :data:`~robustjudge.datasets.hard_benign.BENIGN_KINDS`."""
    for row in _rows("held_out_benign.jsonl"):
        yield Benign(row["id"], row["kind"], row["language"], row["text"])


def payloads() -> Iterator[Payload]:
    """The payloads of every held-out family."""
    for row in _rows("held_out_payloads.jsonl"):
        yield Payload(row["id"], row["family"], row["language"], row["placement"], row["text"])


def _rows(name: str) -> Iterator[dict[str, Any]]:
    path = files("robustjudge").joinpath("datasets", "builtin", name)
    with path.open("r", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
