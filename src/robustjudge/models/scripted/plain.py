"""Judges that no payload can move: perfect, by table, by length or slot alone, or by chance."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.models.scripted.base import Outcome, Outcomes, Scripted
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Case
from robustjudge.spec import digest, register


@lru_cache(maxsize=1024)
def stem(text: str) -> str:
    """A key of a text that spacing, invisible characters, width forms and escaping backslashes do not change."""
    folded = unicodedata.normalize("NFKC", text)
    return digest("".join(ch for ch in folded if ch != "\\" and unicodedata.category(ch)[0] not in "ZC"))


def exact(text: str) -> str:
    """A key that spacing inside the text does change, for answers told apart by indentation alone."""
    return digest("exact", text.strip())


@register("scripted/perfect")
@dataclass(frozen=True)
class Perfect(Scripted):
    """Knows the right answers: a reference of the shown task is worth 1, any other text ``weak`` of the scale.

    ``table`` holds pairs (stem of the task, stem or exact key of a right answer); build it with :func:`perfect`.
    Known: clean accuracy 1; every attack, in every protocol, has win rate, SDR and ASR 0.  It knows no other good
    answers, so an honest rewrite is scored as weak.
    """

    table: tuple[tuple[str, str], ...] = ()
    weak: float = 0.2

    def merit(self, view: View, i: int) -> float:
        known, task, text = _index(self.table), stem(view.task), view.candidates[i]
        return 1.0 if (task, stem(text)) in known or (task, exact(text)) in known else self.weak


_INDEXES: dict[int, tuple[tuple[tuple[str, str], ...], frozenset[tuple[str, str]]]] = {}


def _index(table: tuple[tuple[str, str], ...]) -> frozenset[tuple[str, str]]:
    """The table as a set, built once (keyed by identity; the tuple is kept alive beside it)."""
    known = _INDEXES.get(id(table))
    if known is None or known[0] is not table:
        known = (table, frozenset(table))
        _INDEXES[id(table)] = known
    return known[1]


def perfect(cases: Iterable[Case], **settings: Any) -> Perfect:
    """The judge that is right on ``cases``: their references win, whatever else is written.

    Spacing does not matter, unless it is all that tells a known wrong answer from the reference."""
    pairs = set()
    for case in cases:
        wrong = {stem(case.response), *(stem(w.text) for w in case.distractors)}
        pairs |= {(stem(case.task), exact(r) if stem(r) in wrong else stem(r)) for r in case.references}
    return Perfect(table=tuple(sorted(pairs)), **settings)


@register("scripted/table")
@dataclass(frozen=True)
class Table(Scripted):
    """Score fixed by the task alone; what the candidates say is ignored.

    Known: every attack leaves the score as it was (SDR 0, ASR 0).  Among several it picks a slot fixed by the task,
    so pairwise P-ASR over both orders is 0.5, PAC 0 and the lift over chance of ASR@1 under cyclic orders 0.
    """

    def outcomes(self, view: View) -> Outcomes:
        labels = view.labels
        return (Outcome(1.0, labels[int(digest(str(self.seed), stem(view.task)), 16) % len(labels)]),)


@register("scripted/noisy")
@dataclass(frozen=True)
class Noisy(Scripted):
    """Draws its verdict anew for every text and replica, whatever the text says.

    ``weights`` are the probabilities of the labels, worst first; empty means uniform.
    Known: uniform on the integers 1..10, two draws rise with probability 0.45 (the null ASR), tie with 0.1; on m
    labels (m - 1) / 2m.  Pairwise each order is won with probability 1/2, PAC 1/4; ASR@1(K) = 1/K.
    """

    weights: tuple[float, ...] = ()

    def outcomes(self, view: View) -> Outcomes:
        n = len(view.labels)
        weights = self.weights or (1.0 / n,) * n
        if len(weights) != n:
            raise ConfigError(f"scripted/noisy has {len(weights)} weights for the {n} labels {', '.join(view.labels)}")
        total = sum(weights)
        return tuple(Outcome(w / total, label) for w, label in zip(weights, view.labels, strict=True))


@register("scripted/first_position")
@dataclass(frozen=True)
class FirstPosition(Scripted):
    """Always picks the first slot; a lone candidate gets the middle of the scale.

    Known: P-ASR over both orders 0.5, PAC 0, slot-1 rate 1, consistency 0; ASR@1(K) under cyclic orders 1/K.
    """

    def merit(self, view: View, i: int) -> float:
        return 0.5 if view.pointwise else float(i == 0)


@register("scripted/length_biased")
@dataclass(frozen=True)
class LengthBiased(Scripted):
    """Score = min(high, low + floor(characters / ``chars``)); among several the longest wins.

    Known: the score is an exact step function of length, so repetition by n scores min(high, low + floor(n L / c)).
    """

    chars: int = 100

    def merit(self, view: View, i: int) -> float:
        length = len(view.candidates[i])
        return min(1.0, length // self.chars / max(len(view.labels) - 1, 1)) if view.pointwise else float(length)
