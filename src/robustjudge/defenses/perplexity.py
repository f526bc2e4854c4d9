"""D1 and D2: unnatural token strings have high perplexity; every statistic comes from one forward pass per text.

Sources: Jain et al. 2023 (arXiv 2309.00614), Alon & Kamfonas 2023 (arXiv 2308.14132); eq. 2 of arXiv 2506.09443.  The
released RobustJudge code takes the item's own reference as threshold, which no deployment has; ours is calibrated on
benign texts.  ``oracle_reference`` reproduces theirs and is marked as not deployable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import exp, sqrt
from typing import TYPE_CHECKING, Literal

from robustjudge import spec
from robustjudge.asks import Surprise
from robustjudge.defenses.base import Extra, Screening, Worth
from robustjudge.nouns import Slate, Surprisal

if TYPE_CHECKING:
    from robustjudge.defenses.threshold import Threshold

_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?。！？]+[\"')\]”’]*\s*|\n+|$)")


class _Perplexing(Screening):
    """What both filters share: the pass, and texts too short to have a perplexity."""

    model: str
    context: bool
    short: Literal["pass", "flag"]

    def statistic_of(self, text: str, found: Surprisal) -> float:
        raise NotImplementedError

    def extra(self, slate: Slate) -> Extra:
        return Extra(passes=len(set(self.screened(slate))))

    async def suspicion(self, texts: tuple[str, ...], slate: Slate) -> tuple[float | None, ...]:
        """One ask for all texts of the slate; the engine scores each distinct text once, for D1 and D2 together."""
        distinct = tuple(dict.fromkeys(texts))
        found = await Surprise(self.model, distinct, slate.task if self.context else "")
        known = {text: self._suspicion(text, s) for text, s in zip(distinct, found, strict=True)}
        return tuple(known[t] for t in texts)

    def _suspicion(self, text: str, found: Surprisal) -> float | None:
        if found.status != "ok":
            return None
        if len(found.logprobs) < 2:  # no perplexity is defined: the declared rule decides, and the spec records it
            return 0.0 if self.short == "pass" else None
        return self.statistic_of(text, found)


@spec.register("perplexity")
@dataclass(frozen=True)
class Perplexity(_Perplexing):
    """D1.  ``statistic``: ``mean`` is exp(mean negative log-probability), in [1, inf); ``contrast`` the mean negative
    log-probability of the last quarter minus that of the rest, in nats (an appended string); ``z`` the mean against
    the text's own spread, times the root of its length.

    ``model`` scores; ``context`` puts the task before the text (default: context-free).  A text of fewer than two
    tokens has no perplexity: ``short`` says whether it passes or counts as unreadable.
    """

    model: str
    tau: float | Threshold | None = None
    statistic: Literal["mean", "contrast", "z"] = "mean"
    context: bool = False
    short: Literal["pass", "flag"] = "pass"
    oracle_reference: bool = False
    worth: Worth = "reject"
    scope: Literal["candidates", "all"] = "candidates"

    @property
    def deployable(self) -> bool:
        """Whether a service could run this: nobody has the reference of what is being judged."""
        return not self.oracle_reference

    def limits(self, texts: tuple[str, ...], found: tuple[float | None, ...], slate: Slate) -> tuple[float | None, ...]:
        if not self.oracle_reference:
            return super().limits(texts, found, slate)
        known = [s for s, i in zip(found, slate.index, strict=False) if i == 1]
        return (known[0] if known else None,) * len(texts)

    def statistic_of(self, text: str, found: Surprisal) -> float:
        nll = [-lp for lp in found.logprobs]
        if self.statistic == "mean":
            return perplexity(nll)
        if self.statistic == "contrast":
            cut = min(len(nll) - 1, max(1, 3 * len(nll) // 4))
            return _mean(nll[cut:]) - _mean(nll[:cut])
        mean = _mean(nll)
        spread = sqrt(sum((x - mean) ** 2 for x in nll) / (len(nll) - 1))
        return mean / max(spread, 1e-9) * sqrt(len(nll))


@spec.register("windowed_perplexity")
@dataclass(frozen=True)
class WindowedPerplexity(_Perplexing):
    """D2.  The greatest perplexity over windows, cut from the same pass as D1's: ``sentences5`` (non-overlapping, five
    sentences each, as in the paper) or ``tokens10`` (contiguous).

    The maximum over many windows grows with length: calibrate on the maximum itself, by length stratum.  Where the
    scoring model does not tell where its tokens end, sentence borders are put at the same share of the tokens.
    """

    model: str
    tau: float | Threshold | None = None
    windows: Literal["sentences5", "tokens10"] = "sentences5"
    context: bool = False
    short: Literal["pass", "flag"] = "pass"
    worth: Worth = "reject"
    scope: Literal["candidates", "all"] = "candidates"

    def statistic_of(self, text: str, found: Surprisal) -> float:
        nll = [-lp for lp in found.logprobs]
        if self.windows == "tokens10":
            parts = [nll[i : i + 10] for i in range(0, len(nll), 10)]
        else:
            parts = by_border(nll, found.ends, borders(text), len(text))
        return max(perplexity(p) for p in parts if p)


def perplexity(nll: list[float]) -> float:
    """exp of the mean negative log-probability; capped at e^700 so that it stays a number."""
    return exp(min(_mean(nll), 700.0))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def sentences(text: str) -> list[str]:
    """The sentences of a text with the spacing behind them: joined they are the text again."""
    found = [m[0] for m in _SENTENCE.finditer(text) if m[0]]
    out: list[str] = []
    for piece in found:  # spacing or stray marks alone are no sentence of their own
        if out and not any(ch.isalnum() for ch in piece):
            out[-1] += piece
        else:
            out.append(piece)
    return out


def borders(text: str, size: int = 5) -> list[int]:
    """Where each window of ``size`` sentences ends, in characters; the last end is the length of the text."""
    ends, at = [], 0
    for i, sentence in enumerate(sentences(text), 1):
        at += len(sentence)
        if i % size == 0:
            ends.append(at)
    if not ends or ends[-1] != len(text):
        ends.append(len(text))
    return ends


def by_border(nll: list[float], ends: tuple[int, ...], cuts: list[int], length: int) -> list[list[float]]:
    """The tokens of each window: a token belongs to the window in which it ends."""
    if len(ends) != len(nll):  # unknown: tokens are taken to be equally long
        ends = tuple((i + 1) * length // len(nll) for i in range(len(nll)))
    parts: list[list[float]] = [[] for _ in cuts]
    at = 0
    for value, end in zip(nll, ends, strict=True):
        while at < len(cuts) - 1 and end > cuts[at]:
            at += 1
        parts[at].append(value)
    return parts
