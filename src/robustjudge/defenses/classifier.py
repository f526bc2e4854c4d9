"""X5 classifier: a text-to-probability model as a detector; ours is logistic regression on character and word n-grams.

Trained by ``scripts/make_classifier.py`` on the shipped payload families, against honest texts of which half look like
attacks; what it was tried on after it was frozen is :mod:`robustjudge.datasets.held_out`.  Long texts: the maximum over
overlapping windows, so calibrate on that maximum.  No model call, standard library only.
"""

from __future__ import annotations

import json
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import exp, log1p, sqrt
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from robustjudge import spec
from robustjudge.defenses.base import Extra, Screening, Worth
from robustjudge.nouns import Slate

if TYPE_CHECKING:
    from robustjudge.defenses.threshold import Threshold

WINDOW, STRIDE = 120, 60
SIZES = (3, 4, 5)
"""Lengths of character n-grams."""
RUNS = (1, 2)
"""Lengths of runs of words and marks."""
BUCKETS = 16384
_WORD = re.compile(r"\w+|[^\w\s]")
_SPACE = re.compile(r"\s+")


@spec.register("classifier")
@dataclass(frozen=True)
class Classifier(Screening):
    """The shipped baseline.  Suspicion: the greatest probability over windows, in [0, 1]."""

    tau: float | Threshold | None = 0.5
    worth: Worth = "reject"
    scope: Literal["candidates", "all"] = "candidates"

    def key(self) -> str:
        """Besides the settings, the weights: a threshold of other weights is refused."""
        return spec.digest(super().key(), shipped().hash)

    def extra(self, slate: Slate) -> Extra:
        return Extra()

    async def suspicion(self, texts: tuple[str, ...], slate: Slate) -> tuple[float | None, ...]:
        return tuple(score(t) for t in texts)


@dataclass(frozen=True)
class Weights:
    """Intercept, one weight per bucket, the payload families they were trained on, and the hash of their file."""

    intercept: float
    weights: tuple[float, ...]
    trained: tuple[str, ...]
    hash: str = ""


@lru_cache(maxsize=1)
def shipped() -> Weights:
    """The shipped weights (8-bit)."""
    path = files("robustjudge.defenses").joinpath("data", "classifier.json")
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    raw = b64decode(data["weights"])
    weights = tuple((b - 256 if b > 127 else b) * data["scale"] for b in raw)
    return Weights(data["intercept"], weights, tuple(data["trained"]), spec.digest(text))


def learned_from(case_id: str) -> bool:
    """Whether the shipped weights were trained on this built-in case: a third of them by hash, to be left out of any
    calibration or evaluation of the classifier."""
    return crc32(f"classifier {case_id}".encode()) % 3 == 0


def learned_from_hard(text_id: str) -> bool:
    """The same of a hard-benign text: half of them by hash; the other half calibrates."""
    return crc32(f"classifier {text_id}".encode()) % 2 == 0


def normal(text: str) -> str:
    """Width forms folded, invisible characters dropped, lower case, one space for any spacing."""
    folded = unicodedata.normalize("NFKC", text)
    shown = "".join(ch for ch in folded if unicodedata.category(ch) != "Cf")
    return _SPACE.sub(" ", shown).strip().lower()


def windows(text: str) -> Iterator[str]:
    """Overlapping windows of a normal text; a short text is one window."""
    last = max(len(text) - WINDOW, 0)
    for start in range(0, last + STRIDE, STRIDE):
        yield text[min(start, last) : min(start, last) + WINDOW]
        if start >= last:
            return


def features(window: str) -> dict[int, float]:
    """Hashed n-grams of characters and of words: damped counts, scaled to length 1."""
    counts: dict[int, int] = {}
    padded, words = f" {window} ", _WORD.findall(window)
    grams = [padded[i : i + n] for n in SIZES for i in range(len(padded) - n + 1)]
    grams += ["w " + " ".join(words[i : i + n]) for n in RUNS for i in range(len(words) - n + 1)]
    for gram in grams:
        at = crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS
        counts[at] = counts.get(at, 0) + 1
    damped = {at: log1p(c) for at, c in counts.items()}
    norm = sqrt(sum(v * v for v in damped.values())) or 1.0
    return {at: v / norm for at, v in damped.items()}


def score(text: str, model: Weights | None = None) -> float:
    """Greatest probability over the windows of a text; 0 for a blank one."""
    model = model or shipped()
    shown = normal(text)
    if not shown:
        return 0.0
    best = max(sum(model.weights[at] * v for at, v in features(w).items()) for w in windows(shown))
    return 1 / (1 + exp(-max(min(best + model.intercept, 500.0), -500.0)))
