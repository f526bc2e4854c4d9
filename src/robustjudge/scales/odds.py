"""Rule 10: the expected score from log-probabilities at the token of the verdict, not at an equal one before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robustjudge.nouns import TokenOdds
from robustjudge.scales.scale import Scale

if TYPE_CHECKING:
    from robustjudge.scales.reader import Reading


def expected_score(tokens: tuple[TokenOdds, ...], reading: Reading, scale: Scale) -> tuple[float | None, str, float]:
    """``(sum of v p(v) over the declared values, reason, mass)`` at the verdict token of a read reply.

    The probabilities are renormalised over the declared values; ``mass`` in [0, 1] is what they had before.  The score
    is None, with the reason, when there is no verdict, no log-probabilities, or no declared value among the
    alternatives.  Labels of a labelled scale count as their positions (0 for the first label).
    """
    if not tokens:
        return None, "no log-probabilities", 0.0
    if reading.status != "ok" or reading.span is None:
        return None, f"no verdict to weigh ({reading.status})", 0.0
    start, end = reading.span
    text = "".join(t.token for t in tokens)
    if not text.startswith(reading.raw[:end]):
        return None, "the tokens do not spell the reply", 0.0
    said = reading.value if scale.numeric else float(scale.labels.index(str(reading.value)))
    at, spot = 0, None
    for token in tokens:  # the last token in the span that itself spells the whole value
        stop = at + len(token.token)
        if stop > start and at < end and _worth(token.token, scale) == said:
            spot = token
        at = stop
    if spot is None:
        return None, "the verdict is spelled by several tokens, which are not weighed", 0.0
    seen = dict(spot.top)
    seen.setdefault(spot.token, spot.logprob)
    weights: dict[float, float] = {}
    for piece, logprob in seen.items():
        worth = _worth(piece, scale)
        if worth is not None and logprob > -math.inf:
            weights[worth] = weights.get(worth, 0.0) + math.exp(min(logprob, 0.0))
    mass = sum(weights.values())
    if mass <= 0.0:
        return None, "no declared value among the alternatives", 0.0
    return sum(v * p for v, p in weights.items()) / mass, "", min(mass, 1.0)


def _worth(token: str, scale: Scale) -> float | None:
    text = token.strip(" \t\n\"'▁Ġ[]")
    if scale.numeric:
        return scale.number(text)
    label = scale.label(text)
    return None if label is None else float(scale.labels.index(label))
