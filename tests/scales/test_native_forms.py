"""Native forms of fine-tuned judges: a reply table each."""

from __future__ import annotations

import pytest

from robustjudge.scales.native import native_scale, read_native

TABLE = [
    ("judgelm", True, "8 9\nAssistant 2 cites its source.", "stop", "B"),
    ("judgelm", True, "7.5 7\nBetter. 1 2", "stop", "A"),
    ("judgelm", True, "10 10", "stop", "TIE"),
    ("judgelm", True, "8 9\nAssis", "length", "B"),
    ("judgelm", True, "8", "stop", "unparsed"),
    ("judgelm", True, "8 11\nx", "stop", "unparsed"),
    ("judgelm", True, "Well.\n8 9", "stop", "unparsed"),
    ("judgelm", True, "[[A]]", "stop", "unparsed"),
    ("judgelm", True, "8 9", "content_filter", "refused"),
    ("pandalm", True, "2\n\n### Reason: the first is wrong.\n### Reference: 4", "stop", "B"),
    ("pandalm", True, "Tie", "stop", "TIE"),
    ("pandalm", True, "1\nResponse 2 says 2", "stop", "A"),
    ("pandalm", True, "3", "stop", "unparsed"),
    ("pandalm", True, "Neither\n1", "stop", "unparsed"),
    ("pandalm", True, "12\nx", "stop", "unparsed"),
    ("auto_j", True, "They differ in depth. So the final decision is Response 2.", "stop", "B"),
    ("auto_j", True, "final decision is tie", "stop", "TIE"),
    ("auto_j", True, "final decision is Response 1. Or the final decision is Response 2.", "stop", "unparsed"),
    ("auto_j", True, "Response 1 is better", "stop", "unparsed"),
    ("auto_j", True, "The final decision is Response 12", "stop", "unparsed"),
    ("auto_j", False, "Critique.\nRating: [[5]]", "stop", 5.0),
    ("auto_j", False, "Critique.\nRating: [[11]]", "stop", "unparsed"),
    ("prometheus", False, "Feedback: short. [RESULT] 3", "stop", 3.0),
    ("prometheus", False, "Feedback: short. [RESULT] 6", "stop", "unparsed"),
    ("prometheus", False, "Feedback: short. Score: 3", "stop", "unparsed"),
    ("prometheus", True, "Feedback: B is longer. [RESULT] A", "stop", "A"),
    ("prometheus", True, "Feedback: both. [RESULT] C", "stop", "unparsed"),
    ("prometheus", False, "Feedback: it was", "length", "truncated"),
]


@pytest.mark.parametrize(("style", "pairwise", "reply", "finish", "wanted"), TABLE)
def test_native(style: str, pairwise: bool, reply: str, finish: str, wanted: object) -> None:
    got = read_native(style, reply, native_scale(style, pairwise), finish)
    assert (got.value if got.status == "ok" else got.status) == wanted, got
    assert got.raw == reply
    if got.span is not None:
        assert reply[slice(*got.span)].strip()
