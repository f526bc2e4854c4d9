"""The alternative annotator test: may this judge stand in for one of the human annotators?  (Calderon et al. 2025)"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from scipy import special

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, Ints, codes, patterns
from robustjudge.measures.bootstrap import cluster_bootstrap, totals
from robustjudge.measures.intervals import wilson
from robustjudge.measures.multiplicity import benjamini_yekutieli
from robustjudge.nouns import Estimate

Scoring = Literal["accuracy", "neg_rmse"]
EPSILON = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""The cost of a human annotator, as the share of items on which the judge may be worse."""


@dataclass(frozen=True, slots=True)
class AltRater:
    """The judge against one rater: ``rho`` is the share of items on which it does at least as well."""

    rater: str
    n: int
    rho: float
    p: float
    adjusted: float
    rejected: bool
    by_sign: bool


@dataclass(frozen=True, slots=True)
class AltTest:
    """``winning_rate`` is the share of raters the judge may replace, ``advantage`` the mean of their rho;
    ``passed`` is None where no rater has enough items."""

    winning_rate: Estimate
    advantage: Estimate
    passed: bool | None
    epsilon: float
    raters: tuple[AltRater, ...]
    skipped: tuple[tuple[str, int], ...]


def alt_test(
    humans: Mapping[str, Mapping[str, Hashable]],
    judge: Mapping[str, Hashable],
    epsilon: float = 0.2,
    q: float = 0.05,
    scoring: Scoring = "accuracy",
    min_items: int = 30,
    clusters: Mapping[str, str] | None = None,
    level: float = LEVEL,
) -> AltTest:
    """Run the test on ``{rater: {item: label}}`` and the judge's ``{item: label}``.

    For rater h and each item that h, the judge and another rater labelled: d = [h at least as good as the judge] -
    [judge at least as good as h] against the remaining raters; one-sided t-test of mean d < epsilon; Benjamini-
    Yekutieli over raters at ``q``; passes at a winning rate >= .5.  ``neg_rmse`` needs numeric labels.  With
    ``clusters`` (item -> cluster) the t-test runs on cluster means.  All d equal: decided by the sign, and said so.
    """
    items = list(dict.fromkeys(i for given in humans.values() for i in given if i in judge))
    columns = [list(map(given.get, items)) for given in humans.values()]
    kinds, kind, _ = patterns([[judge[i] for i in items], *columns], len(items))
    group = None if clusters is None else codes([clusters.get(i, i) for i in items], len(items))
    return alt_test_of(list(humans), kinds, kind, epsilon, q, scoring, min_items, group, level)


def alt_test_of(
    names: Sequence[str],
    kinds: Sequence[Sequence[Hashable]],
    kind: Ints,
    epsilon: float = 0.2,
    q: float = 0.05,
    scoring: Scoring = "accuracy",
    min_items: int = 30,
    clusters: Ints | None = None,
    level: float = LEVEL,
) -> AltTest:
    """:func:`alt_test` where few different things were said of many items: ``kinds`` are the different (judge, rater of
    ``names`` ...) labels and ``kind[k]`` is the one of item k."""
    group = codes(clusters, kind.size)
    found: list[tuple[str, int, float, float, bool]] = []
    skipped = []
    parts: list[tuple[Floats, Ints]] = []
    for h, rater in enumerate(names):
        outcome = np.asarray([_outcome(said, h, scoring) for said in kinds], dtype=np.float64).reshape(-1, 3)
        rows = np.flatnonzero(outcome[kind, 0])
        if rows.size < min_items:
            skipped.append((rater, int(rows.size)))
            continue
        wins, losses = outcome[kind[rows], 1], outcome[kind[rows], 2]
        p, by_sign = _one_sided(losses - wins, None if clusters is None else group[rows], epsilon)
        found.append((rater, int(rows.size), float(wins.mean()), p, by_sign))
        parts.append((wins, group[rows]))
    if not found:
        nothing = Estimate.undefined(f"no rater with {min_items} items", low=0.0, high=1.0, method="alt-test")
        return AltTest(nothing, nothing, None, epsilon, (), tuple(skipped))
    adjusted = benjamini_yekutieli([p for _, _, _, p, _ in found]).tolist()
    raters = tuple(AltRater(r, n, rho, p, a, a <= q, s) for (r, n, rho, p, s), a in zip(found, adjusted))
    won = sum(r.rejected for r in raters)
    weights = np.concatenate([np.full(w.size, 1 / w.size) for w, _ in parts])
    advantage = cluster_bootstrap(
        np.concatenate([w for w, _ in parts]) * weights,
        np.concatenate([g for _, g in parts]),
        weights=weights,
        level=level,
    )
    return AltTest(
        wilson(won, len(raters), level), advantage, won / len(raters) >= 0.5, epsilon, raters, tuple(skipped)
    )


def _outcome(said: Sequence[Hashable], h: int, scoring: Scoring) -> tuple[bool, bool, bool]:
    """(does the item count for rater ``h``, is the judge at least as good, is the rater at least as good) where the
    judge said ``said[0]`` and the raters the rest; None: not labelled."""
    mine, rest = said[h + 1], [v for r, v in enumerate(said[1:]) if r != h and v is not None]
    if mine is None or not rest:
        return False, False, False
    a, b = _score(said[0], rest, scoring), _score(mine, rest, scoring)
    return True, a >= b, b >= a


def _score(label: Hashable, rest: Sequence[Hashable], scoring: Scoring) -> float:
    if scoring == "accuracy":
        return sum(label == other for other in rest) / len(rest)
    try:
        x = float(label)  # type: ignore[arg-type]
        others = [float(v) for v in rest]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise DataError(f"neg_rmse compares numbers, but a label is {label!r}") from None
    return -sqrt(sum((x - v) ** 2 for v in others) / len(others))


def _one_sided(d: Floats, names: Ints | None, epsilon: float) -> tuple[float, bool]:
    """(p of mean d < epsilon, decided by sign because all d are equal)."""
    if names is not None:
        group = codes(names, d.size)
        size = int(group.max()) + 1
        d = totals(group, d, size) / totals(group, np.ones(d.size), size)
    n = d.size
    gap = float(d.mean()) - epsilon
    sd = float(d.std(ddof=1)) if n > 1 else 0.0
    if sd <= 1e-15:
        return (0.0 if gap < 0 else 1.0), True
    return float(special.stdtr(n - 1, gap / (sd / sqrt(n)))), False


def against_majority(
    humans: Mapping[str, Mapping[str, Hashable]], judge: Mapping[str, Hashable]
) -> tuple[list[Hashable], list[Hashable]]:
    """(majority labels, judge labels) over the items whose human majority is not tied."""
    votes: dict[str, dict[Hashable, int]] = {}
    for given in humans.values():
        for item, label in given.items():
            tally = votes.setdefault(item, {})
            tally[label] = tally.get(label, 0) + 1
    majority, verdicts = [], []
    for item, tally in votes.items():
        top = max(tally.values())
        best = [v for v, k in tally.items() if k == top]
        if len(best) == 1 and item in judge:
            majority.append(best[0])
            verdicts.append(judge[item])
    return majority, verdicts
