"""Which token sequences are run together: rows that share a prefix compute it once.  Pure integers, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Ids = tuple[int, ...]
WORTH = 64
"""Tokens that a split must save: one more call cost about 25 tokens' time where it was measured (135M, float32)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A token sequence and the positions (rising) after which next-token log-probabilities are wanted."""

    ids: Ids
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Rows (by number) whose first ``shared`` tokens are equal; every read lies at or behind that point."""

    shared: int
    rows: tuple[int, ...]


def common(a: Ids, b: Ids) -> int:
    """Length of the longest common prefix."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # a[:low] == b[:low], a[:high] != b[:high]
        mid = (low + high) // 2
        if a[:mid] == b[:mid]:
            low = mid
        else:
            high = mid
    return low


def bundles(rows: Sequence[Row], worth: int = WORTH) -> list[Bundle]:
    """Split rows wherever a part of them shares so much more than the whole that ``worth`` tokens are saved.

    For single swaps of one suffix this finds the bins of positions whose rows share the suffix up to the swap; for
    two orders of candidates it separates the orders.
    """
    order = sorted(range(len(rows)), key=lambda i: rows[i].ids)
    links = [common(rows[a].ids, rows[b].ids) for a, b in pairwise(order)]
    out: list[Bundle] = []
    stack = [(order, links)] if order else []
    while stack:
        members, gaps = stack.pop()
        here = min(gaps, default=len(rows[members[0]].ids))
        best: tuple[int, int, int] | None = None  # (saved, start, end)
        start, end = 0, len(members)
        while end - start > 1:
            start, end, depth = _largest(gaps, start, end)
            saved = (end - start - 1) * (depth - here)
            if depth > here and (best is None or saved > best[0]):
                best = (saved, start, end)
        if best is None or best[0] < worth:
            limit = min(rows[i].reads[0] for i in members)
            out.append(Bundle(min(here, limit), tuple(members)))
            continue
        _, a, b = best
        stack.append((members[a:b], gaps[a : b - 1]))
        if a > 0 or b < len(members):
            joint = [min(gaps[a - 1 : b])] if a > 0 and b < len(members) else []
            rest = gaps[: max(0, a - 1)] + joint + gaps[b:]
            stack.append((members[:a] + members[b:], rest))
    return sorted(out, key=lambda x: rows[x.rows[0]].ids)


def _largest(gaps: Sequence[int], start: int, end: int) -> tuple[int, int, int]:
    """The largest group inside [start, end) that shares more than all of it does: its bounds and shared length."""
    least = min(gaps[start : end - 1])
    cuts = [start, *(i + 1 for i in range(start, end - 1) if gaps[i] == least), end]
    a, b = max(pairwise(cuts), key=lambda s: s[1] - s[0])
    return a, b, min(gaps[a : b - 1], default=least)


def chunks(rows: Sequence[Row], bundle: Bundle, tokens: int, wide: int) -> list[tuple[int, ...]]:
    """The rows of a bundle in calls of equal length (so that nothing is padded) of at most ``tokens`` new tokens and
    ``wide`` positions read."""
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for i in bundle.rows:
        groups.setdefault((len(rows[i].ids), rows[i].reads), []).append(i)
    out = []
    for (length, reads), members in sorted(groups.items()):
        size = max(1, min(tokens // max(1, length - bundle.shared), wide // max(1, len(reads))))
        out += [tuple(members[i : i + size]) for i in range(0, len(members), size)]
    return out
