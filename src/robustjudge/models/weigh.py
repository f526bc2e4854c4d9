"""Label probabilities from the top log-probabilities of a generated reply.

Chat endpoints take no forced start of the reply, so the reply is generated and the *verdict position* is looked up:
the token that begins the text after the last occurrence of the lead ("VERDICT:"), or the first visible token when the
lead is empty.  Never the first token that merely equals a label: that may stand in the reasoning.

Floor rule: a label outside the returned list gets an upper bound, marked ``floored``: the smaller of the lowest listed
probability and the probability mass that the list leaves over; or, if a listed token is a proper start of the label
("1" of "10"), the probability of that token.
"""

from __future__ import annotations

import math
from dataclasses import replace

from robustjudge.nouns import Call, Completion, LabelCall, TokenOdds, Weights

TOP = 20
"""Alternatives per token asked for: the most that the API takes."""

_MARKS = " \t\r\n*_`\"'[("
"""Layout and marks that may stand between the lead and the label."""

FIRST_TOKEN_LIMIT = 16
"""Token limit when the verdict is the first token: some endpoints refuse less."""


def request(ask: LabelCall, top: int = TOP) -> Call:
    """The call to generate: the same one, with log-probabilities and, without a lead, a short limit."""
    sampling = replace(ask.call.sampling, top_logprobs=top)
    if not ask.lead.strip():
        sampling = replace(sampling, max_tokens=min(sampling.max_tokens, FIRST_TOKEN_LIMIT))
    return replace(ask.call, sampling=sampling)


def at_verdict(completion: Completion, labels: tuple[str, ...], lead: str) -> Weights:
    """Natural-log probabilities of ``labels`` at the verdict position; any other status says why there are none."""
    if completion.status in ("refused", "error"):
        return Weights(status=completion.status, reason=completion.reason)
    if not completion.tokens:
        return Weights(status="error", reason="no_logprobs")
    place = _position(completion.tokens, lead)
    if place is None:
        cut = completion.status == "truncated" and lead.strip() != ""
        return Weights(status="truncated" if cut else "unparsed", reason="no_verdict_position")
    odds = _alternatives(completion.tokens, place, labels)
    listed = [odds.get(label) for label in labels]
    if all(x is None for x in listed):
        return Weights(status="unparsed", reason="no_label_among_alternatives")
    bound = _bound(completion.tokens[place])
    return Weights(
        tuple(x if x is not None else _floor(label, odds, bound) for label, x in zip(labels, listed, strict=True)),
        tuple(x is None for x in listed),
    )


def _position(tokens: tuple[TokenOdds, ...], lead: str) -> int | None:
    """Index of the token that begins the verdict, or ``None``."""
    text = "".join(t.token for t in tokens)
    key = lead.strip()
    start = 0
    if key:
        found = text.rfind(key)
        if found < 0:
            return None
        start = found + len(key)
    start += len(text[start:]) - len(text[start:].lstrip(_MARKS))
    if start >= len(text):
        return None
    end = 0
    for i, token in enumerate(tokens):
        end += len(token.token)
        if end > start:
            # a token that also holds the end of the lead (":8") has alternatives that are no bare labels
            indent = len(token.token) - len(token.token.lstrip(_MARKS))
            return i if end - len(token.token) + indent == start else None
    return None


def _bare(token: str) -> str:
    return token.lstrip(_MARKS).rstrip(_MARKS + "]).,;")


def _alternatives(tokens: tuple[TokenOdds, ...], place: int, labels: tuple[str, ...]) -> dict[str, float]:
    """Summed log-probability of each alternative, stripped of blanks; a label that the tokenizer spells in several
    tokens is followed along the generated path."""
    here = tokens[place]
    top = here.top or ((here.token, here.logprob),)
    if here.token not in {t for t, _ in top}:
        top = (*top, (here.token, here.logprob))
    odds: dict[str, float] = {}
    for token, logprob in top:
        name = _bare(token)
        if not name:
            continue
        odds[name] = _add(odds[name], logprob) if name in odds else logprob
    start = _bare(here.token)
    longer = [x for x in labels if start and x.startswith(start) and x != start and x not in odds]
    if longer and place + 1 < len(tokens) and start in odds:
        rest = {t.strip(): p for t, p in tokens[place + 1].top if t and not t[0].isspace()}
        base = odds[start]
        for label in longer:
            tail = rest.get(label[len(start) :])
            if tail is not None:
                odds[label] = base + tail
                left = -math.expm1(tail) if tail < 0 else 0.0
                odds[start] = base + (math.log(left) if left > 0 else -745.0)
    return odds


def _bound(token: TokenOdds) -> float:
    top = token.top or ((token.token, token.logprob),)
    mass = math.fsum(math.exp(p) for _, p in top)
    rest = math.log(1.0 - mass) if mass < 1.0 else -745.0  # exp(-745) is the smallest double above 0
    return min(rest, *(p for _, p in top))


def _floor(label: str, odds: dict[str, float], bound: float) -> float:
    starts = [p for t, p in odds.items() if t and t != label and label.startswith(t)]
    return max(starts, default=bound)


def _add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))
