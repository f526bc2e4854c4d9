"""Labels of several tokens are scored along a trie: "10" is P("1") times P("0" after "1"), never its first token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, log, log1p

Ids = tuple[int, ...]
FLOOR = 1e-12


def split(labels: Sequence[Ids], lead: Ids) -> tuple[Ids, tuple[Ids, ...]]:
    """(tokens shared by the prompt with its lead and with each label, what each label adds to them).

    ``labels`` are the token ids of prompt + lead + label, ``lead`` of prompt + lead: a tokenizer may merge the end of
    the lead into the label (" A"), so the shared part can be shorter than the lead.  Every label adds at least one.
    """
    n = min(len(lead), *(len(x) - 1 for x in labels))
    while n > 0 and any(x[:n] != lead[:n] for x in labels):
        n -= 1
    return lead[:n], tuple(x[n:] for x in labels)


def questions(tails: Sequence[Ids]) -> tuple[Ids, ...]:
    """Every inner node of the trie, shortest first: the places where next-token probabilities are needed."""
    return tuple(sorted({tail[:i] for tail in tails for i in range(len(tail))}, key=lambda t: (len(t), t)))


def wanted(tails: Sequence[Ids], node: Ids) -> frozenset[int]:
    """The tokens that follow ``node`` on the way to some label."""
    n = len(node)
    return frozenset(tail[n] for tail in tails if len(tail) > n and tail[:n] == node)


def read(tails: Sequence[Ids], logprob: Callable[[Ids], Mapping[int, float]]) -> tuple[float, ...]:
    """Natural-log probability of each label; ``logprob(node)`` gives those of the tokens wanted after a node.

    A label that is the start of another one ("1" of "10") ends there: it gets the probability of its tokens times
    that of *not* going on towards a longer label.
    """
    known = {node: logprob(node) for node in questions(tails)}
    out = []
    for tail in tails:
        total = sum(known[tail[:i]][token] for i, token in enumerate(tail))
        if tail in known:
            longer = sum(exp(known[tail][t]) for t in wanted(tails, tail))
            total += log1p(-longer) if longer < 1 - FLOOR else log(FLOOR)
        out.append(total)
    return tuple(out)
