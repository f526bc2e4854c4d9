"""BLEU: token-level BLEU for code where CodeBLEU cannot run, and corpus BLEU whose shape of references is checked.

Papineni et al. 2002, as implemented by sacrebleu.  A text that shares no token with the reference is worth exactly
0.0 whatever the smoothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from robustjudge.errors import DataError
from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, Rating, rated
from robustjudge.spec import register

_CODE_TOKEN = re.compile(r"\w+|[^\w\s]")


def corpus_bleu(candidates: Sequence[str], references: Sequence[str]) -> float:
    """BLEU in [0, 1] of a set of candidates, ``references[i]`` being the one of ``candidates[i]``.

    Raises :class:`~robustjudge.errors.DataError` when the lengths differ; the nested shape that sacrebleu wants
    (one list per reference *set*) is built here and nowhere else.
    """
    if isinstance(candidates, str) or isinstance(references, str):
        raise DataError("corpus BLEU takes two lists of texts, not one text")
    if len(candidates) != len(references):
        raise DataError(f"{len(candidates)} candidates but {len(references)} references: one for each is needed")
    if not candidates or not all(isinstance(r, str) for r in references):
        raise DataError("corpus BLEU needs at least one pair of texts, each reference one text")
    from sacrebleu import corpus_bleu as bleu

    return float(bleu(list(candidates), [list(references)]).score) / 100


@lru_cache(maxsize=1)
def _metric() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize="none", effective_order=True)


@register("token_bleu")
@dataclass(frozen=True)
class TokenBleu(Evaluator):
    """Sentence BLEU over code tokens (names, numbers, single marks), exponential smoothing, best reference."""

    name: ClassVar[str] = "token_bleu"

    def score(self, case: Case, text: str) -> Rating:
        references = [" ".join(_CODE_TOKEN.findall(r)) for r in case.references if r.strip()]
        return rated(
            self.name, float(_metric().sentence_score(" ".join(_CODE_TOKEN.findall(text)), references).score) / 100
        )
