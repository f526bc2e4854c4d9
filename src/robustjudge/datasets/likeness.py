"""How like its reference a text is, without a model: the yardstick of weak candidates when no evaluator is given."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from robustjudge.nouns import Case

ORDER = 6  # character n-grams of length 1..6, recall counted twice as much as precision (chrF, Popovic 2015)
BETA2 = 4.0


@lru_cache(maxsize=256)
def _grams(text: str) -> tuple[Counter[str], ...]:
    body = "".join(text.split())
    return tuple(Counter(body[i : i + n] for i in range(len(body) - n + 1)) for n in range(1, ORDER + 1))


def likeness(reference: str, text: str) -> float:
    """Mean character n-gram F2 of ``text`` against ``reference`` in [0, 1]; 1 for equal texts, 0 for an empty one."""
    scores: list[float] = []
    for want, have in zip(_grams(reference), _grams(text), strict=True):
        total, given = want.total(), have.total()
        if not total:
            continue
        hit = (want & have).total()
        scores.append((1 + BETA2) * hit / (BETA2 * total + given) if hit else 0.0)
    return sum(scores) / len(scores) if scores else 0.0


def by_likeness(case: Case, text: str) -> float | None:
    """The likeness of ``text`` to the case's reference, in the shape of a quality function; ``None`` without one."""
    return likeness(case.reference, text) if case.reference else None
