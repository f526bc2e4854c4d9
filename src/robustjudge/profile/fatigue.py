"""Does a person tire or drift within a sitting?  First third against last, and hidden repeats: flagged, never corrected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from robustjudge.measures.drift import TwoWindows, two_windows
from robustjudge.measures.intervals import wilson
from robustjudge.profile.package import Check
from robustjudge.profile.table import Pattern, Sitting, Table

FEWEST = 5
"""Items that a third of a sitting must hold to be looked at."""
Place: TypeAlias = tuple[str, int, str, float | None]
"""Session, position, item and seconds."""
SURE = 0.01
"""Fisher's p below which a change within the sitting is flagged."""


def fatigue(t: Table) -> tuple[list[Check], dict[str, Any]]:
    """The checks ``intra_rater`` and ``fatigue``, and by rater the figures behind them.

    By rater: ``repeats`` (intra-rater agreement on hidden repeats), and over the first and the last third of every
    sitting of 15 items or more, last minus first: ``label`` (share of the label the person gives most often) and
    ``agreement`` (share of items on which most of the others say the same), each with Newcombe's interval; ``seconds``
    holds the median of both.
    """
    figures: dict[str, Any] = {}
    flagged: list[str] = []
    kind = dict(zip(t.groups.items, t.groups.kind.tolist())) if t.sitting else {}
    for rater in t.raters:
        mine = _figures(t, rater, kind, flagged)
        if mine:
            figures[rater] = mine
    ran = any("label" in f for f in figures.values())
    told = "; ".join(flagged)
    return [_repeats(t), Check("fatigue", "fail" if told else "pass" if ran else "not_run", told)], figures


def _repeats(t: Table) -> Check:
    again = [pair for r in t.repeats for pair in _again(t, r)]
    if not again:
        return Check("intra_rater", "not_run", "no hidden repeats (at least 10 % of items are advised)")
    same = wilson(sum(a == b for a, b in again), len(again))
    share = len(again) / max(sum(len(g) for g in t.human.values()), 1)
    told = f"{same.value:.2f} [{same.low:.2f}, {same.high:.2f}] on {len(again)} repeats ({share:.0%} of labels)"
    return Check("intra_rater", "fail" if (same.high or 0) < 0.8 else "pass", told)


def _again(t: Table, rater: str) -> list[tuple[str, str]]:
    """(first label, label of the repeat) of the items a person saw twice."""
    given = t.human.get(rater, {})
    return [(given[i], later[0]) for i, later in t.repeats.get(rater, {}).items() if i in given]


def _figures(t: Table, rater: str, kind: Mapping[str, int], flagged: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if again := _again(t, rater):
        out["repeats"] = wilson(sum(a == b for a, b in again), len(again))
    first: list[Place] = []
    last: list[Place] = []
    for rows in _sittings(t.sitting.get(rater)):
        third = len(rows) // 3
        if third >= FEWEST:
            first += rows[:third]
            last += rows[-third:]
    if not first:
        return out
    given = t.human.get(rater, {})
    top = Counter(given.values()).most_common(1)[0][0] if given else ""
    ends = [[given.get(item) == top for _, _, item, _ in rows] for rows in (first, last)]
    label = two_windows(sum(ends[1]), len(last), sum(ends[0]), len(first))
    agrees = [_with_others(p, t.raters.index(rater)) for p in t.groups.kinds]
    same = [[v for _, _, item, _ in rows if (v := agrees[kind[item]]) is not None] for rows in (first, last)]
    agreement = two_windows(sum(same[1]), len(same[1]), sum(same[0]), len(same[0]))
    out |= {"top_label": top, "label": label.difference, "agreement": agreement.difference}
    for told, w in ((f"share of {top!r}", label), ("agreement with the others", agreement)):
        flagged += _said(rater, told, w)
    times = [[s for _, _, _, s in rows if s is not None] for rows in (first, last)]
    if all(times):
        early, late = (float(np.median(s)) for s in times)
        out["seconds"] = [early, late]
        if late < 0.5 * early:
            flagged.append(f"{rater}: last third took under half the time per item ({late:.0f} s after {early:.0f} s)")
    return out


def _said(rater: str, what: str, w: TwoWindows) -> list[str]:
    d = w.difference
    if w.fisher_p is None or w.fisher_p >= SURE or d.value is None:
        return []
    return [f"{rater}: {what} changed by {d.value:+.2f} [{d.low:+.2f}, {d.high:+.2f}] from first to last third"]


def _sittings(places: Sitting | None) -> Iterator[Sequence[Place]]:
    """The rows of each sitting, in order."""
    for _, rows in groupby(places.rows() if places else (), key=itemgetter(0)):
        yield list(rows)


def _with_others(p: Pattern, at: int) -> bool | None:
    """Whether at least half of the others say of an item what the person at place ``at`` says; ``None`` where nobody
    else, or not this person, labelled it."""
    mine, others = p.said[at], [v for k, v in enumerate(p.said) if k != at and v is not None]
    return None if mine is None or not others else 2 * sum(v == mine for v in others) >= len(others)
