"""chrF: character n-gram F-score, the fallback for translation and the default for open tasks.

Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation", as implemented by sacrebleu (character
order 6, beta 2, whitespace ignored), divided by 100.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, Rating, rated
from robustjudge.spec import register


@lru_cache(maxsize=1)
def _metric() -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def chrf(text: str, references: tuple[str, ...]) -> float:
    """chrF of one text against its best-matching reference, in [0, 1]."""
    return float(_metric().sentence_score(text, list(references)).score) / 100


@register("chrf")
@dataclass(frozen=True)
class Chrf(Evaluator):
    """chrF / 100 against all references of the case (the best one counts)."""

    name: ClassVar[str] = "chrf"

    def score(self, case: Case, text: str) -> Rating:
        return rated(self.name, chrf(text, tuple(r for r in case.references if r.strip())))
