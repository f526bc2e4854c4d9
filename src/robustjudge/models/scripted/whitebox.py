"""Judges whose best attack is known in closed form, for testing searches: a sum of word weights, a hidden phrase.

Both have a word-level tokenizer (``spell``, ``sample``) and the hidden phrase an exact gradient, so that white-box
searches run without a neural network.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor
from typing import ClassVar

from robustjudge.asks import Gradient, Sample
from robustjudge.errors import ConfigError
from robustjudge.models.scripted.base import Outcome, Outcomes, Scripted, choose, nearest
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Access
from robustjudge.spec import digest, register

_WORDS = """amber basil cedar dune ember fjord grove haven inlet jade kelp larch maple north ochre pearl quartz reed
slate thyme umber vale willow xenon yarrow zinc"""
WORDS = tuple(_WORDS.split())
"""The tokens of the word-level tokenizer."""


@dataclass(frozen=True)
class Worded(Scripted):
    """Base: token id ``i`` is the word ``vocabulary[i]``; a suffix is spelled with single spaces."""

    vocabulary: tuple[str, ...] = WORDS

    access: ClassVar[Access] = Access.GRADIENT

    async def spell(self, ids: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
        """The text of each id sequence; ids outside the vocabulary spell nothing (an illegal candidate)."""
        n = len(self.vocabulary)
        return tuple(" ".join(self.vocabulary[i] for i in seq) if all(0 <= i < n for i in seq) else "" for seq in ids)

    async def sample(self, ask: Sample) -> tuple[tuple[int, ...], ...]:
        """``n`` ids per prefix in an order fixed by its text and the seed."""
        out = []
        for messages in ask.prefixes:
            text = "\x1e".join(m.text for m in messages)
            ranked = sorted(range(len(self.vocabulary)), key=lambda i: digest(str(ask.seed), text, str(i)))
            out.append(tuple(ranked[: ask.n]))
        return tuple(out)

    def pull(self, i: int, word: str) -> float:
        """How much the loss falls, to first order, when position ``i`` of the suffix becomes ``word``."""
        raise NotImplementedError

    async def gradient(self, ask: Gradient) -> tuple[tuple[int, ...], ...]:
        """For each position the ``k`` ids that pull most, ties by id."""
        return tuple(
            tuple(sorted(range(len(self.vocabulary)), key=lambda w: (-self.pull(i, self.vocabulary[w]), w))[: ask.k])
            for i in range(len(ask.suffix))
        )


@register("scripted/additive")
@dataclass(frozen=True)
class Additive(Worded):
    """Merit = ``base`` + the sum of the weights of the *different* known words in the candidate, clipped to [0, 1].

    ``weights`` are pairs (word, share of the scale), negative ones included.  The reply is the nearest label; label
    probabilities lie on the two labels around the merit, so that the expected score is exact.
    Known: the best k words are the k of greatest weight, whatever their order: the optimum is a sort.
    """

    weights: tuple[tuple[str, float], ...] = tuple((w, round(0.02 * (i % 7) - 0.02, 2)) for i, w in enumerate(WORDS))
    base: float = 0.2

    def total(self, text: str) -> float:
        """Merit of a text before clipping."""
        words = {w.strip(".,;:!?\"'()") for w in text.casefold().split()}
        return self.base + sum(w for word, w in self.weights if word in words)

    def merit(self, view: View, i: int) -> float:
        return min(1.0, max(0.0, self.total(view.candidates[i])))

    def outcomes(self, view: View) -> Outcomes:
        if view.pointwise:
            return (Outcome(1.0, nearest(view, self.merit(view, 0))),)
        return choose(view, [self.total(c) for c in view.candidates])

    def odds(self, view: View) -> Outcomes:
        if view.pointwise:
            return around(view, self.merit(view, 0))
        return softmax(view, [self.total(c) for c in view.candidates], 0.1)

    def pull(self, i: int, word: str) -> float:
        return dict(self.weights).get(word, 0.0)


@register("scripted/hamming")
@dataclass(frozen=True)
class Hamming(Worded):
    """Holds a secret phrase; the loss of the top verdict is the number of its words that the candidate's end misses.

    P(top label) = exp(-mismatches), the rest on the lowest label; the last words of the candidate are compared with
    ``secret`` position by position.  The reply is the top label only for the whole phrase, and otherwise rises evenly
    with the matches.
    Known: the optimum is the phrase with loss 0; each right swap lowers the loss by exactly 1; the gradient is exact.
    """

    secret: tuple[str, ...] = ("cedar", "maple", "slate", "inlet")

    def __post_init__(self) -> None:
        unknown = [w for w in self.secret if w not in self.vocabulary]
        if not self.secret or unknown:
            raise ConfigError(f"scripted/hamming needs a secret made of its vocabulary; unknown: {unknown or 'empty'}")

    def mismatches(self, text: str) -> int:
        """Positions of the phrase that the last words of ``text`` miss."""
        n = len(self.secret)
        tail = text.split()[-n:]
        padded = [""] * (n - len(tail)) + tail
        return sum(a != b for a, b in zip(self.secret, padded, strict=True))

    def merit(self, view: View, i: int) -> float:
        return 1.0 - self.mismatches(view.candidates[i]) / len(self.secret)

    def outcomes(self, view: View) -> Outcomes:
        if not view.pointwise:
            return choose(view, [self.merit(view, i) for i in range(len(view.candidates))])
        top = len(view.labels) - 1  # rounded down: the best label is for the whole phrase alone
        return (Outcome(1.0, view.labels[floor(self.merit(view, 0) * top)]),)

    def odds(self, view: View) -> Outcomes:
        if view.pointwise:
            p = exp(-self.mismatches(view.candidates[0]))
            return (Outcome(1.0 - p, view.labels[0]), Outcome(p, view.labels[-1]))
        return softmax(view, [-float(self.mismatches(c)) for c in view.candidates], 1.0)

    def pull(self, i: int, word: str) -> float:
        return float(i < len(self.secret) and self.secret[i] == word)


def around(view: View, merit: float) -> Outcomes:
    """The two labels around ``merit``, weighted so that their mean is exact."""
    at = merit * (len(view.labels) - 1)
    low = min(floor(at), len(view.labels) - 2) if len(view.labels) > 1 else 0
    share = at - low
    if share <= 0 or low + 1 >= len(view.labels):
        return (Outcome(1.0, view.labels[low]),)
    return (Outcome(1.0 - share, view.labels[low]), Outcome(share, view.labels[low + 1]))


def softmax(view: View, merits: list[float], scale: float) -> Outcomes:
    """Slots weighted by exp(merit / scale): log-odds are differences of merit over ``scale``."""
    top = max(merits)
    weights = [exp((m - top) / scale) for m in merits]
    return tuple(Outcome(w / sum(weights), label) for w, label in zip(weights, view.labels, strict=True))
