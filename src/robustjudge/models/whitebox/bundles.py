"""Which token sequences are run together: rows that share a prefix compute it once.  Pure integers, no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def homes(rows: Sequence[Row], known: Sequence[Ids], worth: int = WORTH) -> dict[int, list[int]]:
    """Which rows (by number) run behind which known sequence; -1 stands for none.

    The sequence that saves most is taken first, another one where it saves ``worth`` tokens more.
    """
    depth = [0] * len(rows)
    home = [-1] * len(rows)
    reach = [[covered(ids, row) for row in rows] for ids in known]
    while reach:
        gains = [sum(max(0, n - d) for n, d in zip(line, depth, strict=True)) for line in reach]
        best = max(range(len(reach)), key=gains.__getitem__)
        if gains[best] < (worth if any(depth) else 1):
            break
        for i, n in enumerate(reach[best]):
            if n > depth[i]:
                depth[i], home[i] = n, best
    out: dict[int, list[int]] = {}
    for i, at in enumerate(home):
        out.setdefault(at, []).append(i)
    return out


def covered(known: Ids, row: Row) -> int:
    """How many tokens of a row need not be run behind a known sequence: what is read must be run."""
    return min(common(known, row.ids), row.reads[0])


def bundles(rows: Sequence[Row], worth: int = WORTH, known: Ids = ()) -> list[Bundle]:
    """Split rows wherever a part of them shares so much more than the whole that ``worth`` tokens are saved.

    For two orders of candidates this separates the orders; for swaps of one suffix it finds the bins of positions
    whose rows share the suffix up to the swap.  What rows share with a ``known`` sequence is saved without a split.
    """
    order = sorted(range(len(rows)), key=lambda i: rows[i].ids)
    links = [common(rows[a].ids, rows[b].ids) for a, b in pairwise(order)]
    free = [covered(known, row) for row in rows]
    out: list[Bundle] = []
    stack = [(order, links)] if order else []
    while stack:
        members, gaps = stack.pop()
        here = min(gaps, default=len(rows[members[0]].ids))
        best: tuple[int, int, int] | None = None  # (saved, start, end)
        start, end = 0, len(members)
        while end - start > 1:
            start, end, depth = _largest(gaps, start, end)
            saved = sum(max(0, depth - max(here, free[i])) for i in members[start + 1 : end])
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


def chunks(rows: Sequence[Row], members: Sequence[int], tokens: int, wide: int) -> list[tuple[int, ...]]:
    """Rows in calls of equal length and reads (so that nothing is padded) of at most ``tokens`` tokens and ``wide``
    positions read."""
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for i in members:
        groups.setdefault((len(rows[i].ids), rows[i].reads), []).append(i)
    out = []
    for (length, reads), alike in sorted(groups.items()):
        size = max(1, min(tokens // length, wide // max(1, len(reads))))
        out += [tuple(alike[i : i + size]) for i in range(0, len(alike), size)]
    return out


def packs(rows: Sequence[Row], starts: Mapping[int, int], tokens: int, wide: int) -> list[tuple[int, ...]]:
    """Rows, each run from its start, in calls of about equally many tokens, at most ``tokens`` and ``wide`` positions
    read where a single row does not exceed them; rows of similar length together."""
    order = sorted(starts, key=lambda i: len(rows[i].ids) - starts[i])
    total = sum(len(rows[i].ids) - starts[i] for i in order)
    fair = total / max(1, -(-total // tokens))
    out: list[list[int]] = []
    new = read = 0
    for i in order:
        size, reads = len(rows[i].ids) - starts[i], len(rows[i].reads)
        if not out or new + size / 2 > fair or new + size > tokens or read + reads > wide:
            out.append([])
            new = read = 0
        out[-1].append(i)
        new, read = new + size, read + reads
    return [tuple(pack) for pack in out]
