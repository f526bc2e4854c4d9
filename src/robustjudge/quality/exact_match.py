"""Exact match of the final answer, for mathematics (T7) and knowledge recall (T8).

The gold answer is the one extracted from the reference: if it cannot be extracted, the item has no quality.  An
answer that cannot be found in the text is unknown, not wrong; a clear answer in the wrong format is right, with the
flag ``format_fault``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robustjudge.nouns import Case
from robustjudge.quality.answers import extract
from robustjudge.quality.base import Evaluator, Rating, rated, unknown
from robustjudge.quality.forms import sameness
from robustjudge.spec import register


def answers_equal(question: str, a: str, b: str, kind: str = "mathematics") -> bool | None:
    """Whether two solutions end in the same answer; ``None`` when either answer cannot be found.

    Pairs for which this is true must not enter clean-correct statistics: their label reflects format, not the answer.
    """
    x, y = extract(question, a, kind), extract(question, b, kind)
    return None if x is None or y is None else bool(sameness(x.text, y.text))


@register("exact_match")
@dataclass(frozen=True)
class ExactMatch(Evaluator):
    """1.0 for the reference's final answer, 0.0 for another, ``None`` when either cannot be extracted."""

    name: ClassVar[str] = "exact_match"

    def score(self, case: Case, text: str) -> Rating:
        gold = extract(case.task, case.reference, case.kind)
        if gold is None:
            return unknown(self.name, "no final answer can be extracted from the reference")
        found = extract(case.task, text, case.kind)
        if found is None:
            return unknown(self.name, "no final answer can be extracted from the text")
        how = sameness(found.text, gold.text)
        flags = ("format_fault",) if found.format_fault else ()
        if how in ("value", "identity"):
            flags = (*flags, f"equal_by_{how}")
        return rated(self.name, 1.0 if how else 0.0, flags=flags)
