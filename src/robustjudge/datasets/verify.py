"""Verifies weak candidates: measurably worse, with the intended defect, in the right language, no reference inside."""

from __future__ import annotations

import re
from dataclasses import dataclass

from robustjudge.datasets import answers
from robustjudge.datasets.base import ANSWER_KINDS, Quality
from robustjudge.datasets.defects.base import Defect, words
from robustjudge.datasets.defects.worked import other_answer
from robustjudge.datasets.degrade import material
from robustjudge.datasets.likeness import by_likeness
from robustjudge.nouns import Case

MARGINS = {"code_translation": 0.20, "code_generation": 0.20, "logic": 0.5, "mathematics": 0.5, "knowledge": 0.5}
"""How far quality must fall below that of the reference; 0.15 for every other kind."""

LEAK = 0.9
"""The share of the reference's word 4-grams that a weak candidate may hold."""

_REFUSAL = re.compile(
    r"\s*(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|won't)|as an ai\b|sorry,|"
    r"es tut mir leid|ich kann (?:das|dies|dir|ihnen|leider)? ?nicht|als ki\b|"
    r"(?:很)?抱歉|对不起|我(?:无法|不能))",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_PROSE = ("translation", "summarization", "code_summarization", "open")


@dataclass(frozen=True, slots=True)
class Verification:
    """``ok`` or the ``reason`` against; ``method`` says how it was measured, ``drop`` by how much quality fell."""

    ok: bool
    reason: str = ""
    method: str = ""
    drop: float | None = None


def verify(
    case: Case, text: str, defect: Defect | None, *, quality: Quality | None = None, others: tuple[str, ...] = ()
) -> Verification:
    """Is ``text`` fit to be a weak candidate of ``case``?

    ``defect`` is the intended one (``None``: written by a model, so its presence shows only in the quality).
    ``quality`` measures text and reference alike; without it the final answer decides for mathematics, logic and
    knowledge, and likeness to the reference for every other kind.  What cannot be decided is not verified.
    """
    if not text.strip():
        return Verification(False, "empty")
    if _REFUSAL.match(text):
        return Verification(False, "a refusal")
    if not (defect and defect.foreign) and not right_language(case, text):
        return Verification(False, "wrong language")
    if defect and not defect.present(material(case, others), text):
        return Verification(False, "the intended defect is absent")
    if case.kind not in ANSWER_KINDS and leak(case.reference, text) > LEAK:
        return Verification(False, "holds the reference")
    if quality is None and case.kind in ANSWER_KINDS:
        return _by_answer(case, text)
    return _by_quality(case, text, quality or by_likeness)


def _by_answer(case: Case, text: str) -> Verification:
    m = material(case)
    if not m.gold:
        return Verification(False, "no gold answer to compare with")
    if not answers.last(text, m.form):
        return Verification(False, "states no final answer")
    return (
        Verification(True, method="final_answer") if other_answer(m, text) else Verification(False, "answer is right")
    )


def _by_quality(case: Case, text: str, quality: Quality) -> Verification:
    best, got = quality(case, case.reference), quality(case, text)
    if best is None or got is None:
        return Verification(False, "quality unknown")
    drop = best - got
    if drop < MARGINS.get(case.kind, 0.15) - 1e-9:
        return Verification(False, "not clearly worse", drop=drop)
    return Verification(True, method="quality_drop", drop=drop)


def right_language(case: Case, text: str) -> bool:
    """Is ``text`` in the script of the case's language (Chinese or not)?  Anything goes for code and answers."""
    letters = sum(c.isalpha() for c in text)
    if case.kind not in _PROSE or not letters:
        return True
    han = len(_HAN.findall(text)) / letters
    return han >= 0.3 if case.language == "zh" else han <= 0.3


def leak(reference: str, text: str) -> float:
    """The share of the reference's word 4-grams (shorter for a shorter reference) that stand in ``text``, in [0, 1]."""
    want = words(reference)
    n = min(4, len(want))
    if not n:
        return 0.0
    have_words = words(text)
    have = {tuple(have_words[i : i + n]) for i in range(len(have_words) - n + 1)}
    grams = [tuple(want[i : i + n]) for i in range(len(want) - n + 1)]
    return sum(g in have for g in grams) / len(grams)
