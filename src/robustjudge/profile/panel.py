"""What people said of the items, before any reconciliation: agreement, disputes, and the reference they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from robustjudge.errors import DataError
from robustjudge.measures import raters
from robustjudge.measures.agreement import gwet_ac1, kappa, raw_agreement
from robustjudge.measures.base import Floats
from robustjudge.nouns import Estimate
from robustjudge.profile.table import Groups, Pattern, Table


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which raters differ."""

    item: str
    labels: tuple[tuple[str, str], ...]
    stratum: str


@dataclass(frozen=True)
class People:
    """Agreement of the humans before adjudication; ``floor`` is the figure that the policy's floor is held against."""

    section: dict[str, Any]
    floor: Estimate
    pairs: dict[tuple[str, str], tuple[int, int]]
    disagreements: tuple[Disagreement, ...]


def overlap(t: Table) -> int:
    """Items that two or more people labelled."""
    return sum(n for p, n in t.groups.counted() if len(p.labels) >= 2)


def agreement(t: Table, labels: Sequence[str], ordinal: bool = False) -> People:
    """Kappa of two raters, else pooled Fleiss; alpha, AC1 and raw agreement beside it; who disagrees where.

    On an ``ordinal`` scale one step apart is nearly agreement: there the floor is held against the quadratically weighted
    kappa of two raters, else against ordinal alpha.
    """
    g = t.groups
    tables = {
        (g.raters[a], g.raters[b]): table
        for a, b in combinations(range(len(g.raters)), 2)
        if (table := _crossed(((p.said[a], p.said[b], n) for p, n in g.counted()), labels)).any()
    }
    counts = _counts(g, labels)
    figures: dict[str, Estimate] = {
        "alpha": raters.krippendorff_alpha(counts),
        "fleiss_pooled": raters.fleiss_kappa(counts),
        "fleiss_item_mean": raters.fleiss_kappa(counts, "item_mean"),
    }
    if len(g.raters) == 2:
        table = tables.get((g.raters[0], g.raters[1]), np.zeros((len(labels), len(labels))))
        figures |= {"kappa": kappa(table), "ac1": gwet_ac1(table), "raw": raw_agreement(table)}
        floor = figures["kappa"]
    else:
        figures |= {"ac1": raters.gwet_ac(counts), "raw": raters.pairwise_agreement(counts)}
        floor = figures["fleiss_pooled"]
    if ordinal:
        floor = figures["alpha_ordinal"] = raters.krippendorff_alpha(counts, "ordinal")
        if len(g.raters) == 2:
            floor = figures["qwk"] = kappa(table, "quadratic")
    used = np.asarray(counts.sum(0))
    section = {
        "raters": len(g.raters),
        "stage": "independent",
        "agreement": figures,
        "label_shares": {v: float(n / used.sum()) if used.sum() else None for v, n in zip(labels, used)},
        "n_items": len(counts),
        "n_overlap": overlap(t),
    }
    split = _disagreements(g)
    section["disputed"] = {"n": len(split), "by_label": _by_label(split), "by_stratum": _by_stratum(t, split)}
    pairs = {k: (round(float(np.trace(v))), round(float(v.sum()))) for k, v in tables.items()}
    return People(section, floor, pairs, split)


def _by_label(split: Sequence[Disagreement]) -> dict[str, int]:
    """Which labels are taken for each other, most often first."""
    found = Counter(" / ".join(sorted({v for _, v in d.labels})) for d in split)
    return dict(found.most_common())


def _by_stratum(t: Table, split: Sequence[Disagreement]) -> dict[str, dict[str, int]]:
    """Disputed and all items of each stratum (tag); empty without strata."""
    if not t.stratum:
        return {}
    disputed = Counter(d.stratum for d in split)
    return {s: {"disputed": disputed[s], "items": n} for s, n in sorted(Counter(t.stratum.values()).items())}


def _crossed(pairs: Iterable[tuple[str | None, str | None, int]], labels: Sequence[str]) -> Floats:
    """The cross table of two raters, from how often each pair of labels occurs."""
    place = _places(labels)
    out = np.zeros((len(labels), len(labels)))
    for a, b, n in pairs:
        if a is not None and b is not None:
            out[place(a), place(b)] += n
    return out


def _places(labels: Sequence[str]) -> Callable[[str], int]:
    at = {v: k for k, v in enumerate(labels)}

    def place(label: str) -> int:
        if label not in at:
            raise DataError(f"label {label!r} is not among {', '.join(map(repr, labels))}")
        return at[label]

    return place


def _counts(g: Groups, labels: Sequence[str]) -> Floats:
    """Labelled items x labels: how many raters gave each label."""
    place = _places(labels)
    of_kind = np.zeros((len(g.kinds), len(labels)))
    for k, p in enumerate(g.kinds):
        for label in p.labels:
            of_kind[k, place(label)] += 1
    rows = of_kind[g.kind] if len(g.kinds) else of_kind
    return np.asarray(rows[rows.any(1)])


def _disagreements(g: Groups) -> tuple[Disagreement, ...]:
    split = {k: tuple(sorted(set(p.labels))) for k, p in enumerate(g.kinds) if len(set(p.labels)) > 1}
    often: Counter[tuple[str, ...]] = Counter()
    for k, pair in split.items():
        often[pair] += g.sizes[k]
    told = {k: tuple((r, v) for r, v in zip(g.raters, g.kinds[k].said) if v is not None) for k in split}
    found = [(i, k) for i, k in zip(g.items, g.kind.tolist()) if k in split]
    found.sort(key=lambda x: (-often[split[x[1]]], x[0]))
    return tuple(Disagreement(i, told[k], g.kinds[k].stratum or "") for i, k in found)


@dataclass(frozen=True)
class Reference:
    """The label that each item is held against: of each pattern (None: no label, or a tie) and of each item."""

    of_kind: tuple[str | None, ...]
    of_item: dict[str, str]
    how: str
    ties: int


def reference(t: Table) -> Reference:
    """The adjudicated label where there is one, else the untied majority of the people's."""
    g = t.groups
    found = tuple(_settled(p) for p in g.kinds)
    of_item = {i: v for i, k in zip(g.items, g.kind.tolist()) if (v := found[k]) is not None}
    ties = sum(n for (p, n), v in zip(g.counted(), found) if v is None and p.labels)
    how = "third rater or adjudication, else majority" if t.adjudicated else "majority; ties stay ties"
    return Reference(found, of_item, how, ties)


def _settled(p: Pattern) -> str | None:
    if p.adjudicated is not None or not p.labels:
        return p.adjudicated
    (first, most), *more = Counter(p.labels).most_common(2)
    return None if more and more[0][1] == most else first
