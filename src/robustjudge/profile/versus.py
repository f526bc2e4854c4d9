"""The judge against the people: confusion counts by pattern of item, and every statistic of a package that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robustjudge.measures.active import Drawn
from robustjudge.measures.agreement import gwet_ac1, kappa
from robustjudge.measures.alttest import Scoring, alt_test_of
from robustjudge.measures.base import codes
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.confusion import Confusion, coverage, rates
from robustjudge.measures.ordinal import icc, ordinal_agreement
from robustjudge.nouns import Estimate
from robustjudge.profile.panel import Reference
from robustjudge.profile.table import Table


def _confusion(pairs: Iterable[tuple[str, str | None, int]], positive: str) -> Confusion:
    """Counts of (reference, verdict, how often); a verdict of None was not read."""
    found: Counter[tuple[bool, bool | None]] = Counter()
    for truth, said, n in pairs:
        found[truth == positive, None if said is None else said == positive] += n
    f = found
    return Confusion(f[True, True], f[False, True], f[True, False], f[False, False], f[True, None], f[False, None])


def _judged(t: Table, truth: Reference) -> Iterator[tuple[str, str | None, int, str | None]]:
    """(reference, verdict, items, stratum) of the patterns that have a reference and were shown to the judge."""
    for (p, n), label in zip(t.groups.counted(), truth.of_kind):
        if label is not None and p.asked:
            yield label, p.verdict, n, p.stratum


def binary(t: Table, truth: Reference, positive: str) -> tuple[Confusion, Counter[str]]:
    """The judge against a reference, one label against the rest, with the statuses of unread verdicts."""
    c = _confusion(((a, b, n) for a, b, n, _ in _judged(t, truth)), positive)
    unread: Counter[str] = Counter()
    if c.unread_positive or c.unread_negative:
        unread.update(t.status[i] for i in truth.of_item if i in t.verdicts and t.verdicts[i] is None)
    return c, unread


def per_rater(t: Table, positive: str) -> tuple[Mapping[str, Any], ...]:
    """The judge against each single person; person against person is the ceiling beside it."""
    out = []
    for k, rater in enumerate(t.groups.raters):
        mine = [(p.said[k], p, n) for p, n in t.groups.counted()]
        c = _confusion(((v, p.verdict, n) for v, p, n in mine if v is not None and p.asked), positive)
        others = [
            (v, w, n) for v, p, n in mine if v is not None for j, w in enumerate(p.said) if j != k and w is not None
        ]
        found = rates(c)
        peer = _confusion(others, positive)
        out.append(
            {
                "rater": rater,
                "n": round(c.n),
                "tpr": found["tpr"],
                "fpr": found["fpr"],
                "kappa": kappa(c.table),
                "human_kappa": kappa(peer.table) if others else Estimate.undefined("no other rater"),
            }
        )
    return tuple(out)


def stratum_confusions(t: Table, truth: Reference, positive: str) -> dict[str, Confusion]:
    """Confusion by stratum; empty without strata."""
    found: dict[str, list[tuple[str, str | None, int]]] = {}
    for label, said, n, stratum in _judged(t, truth):
        if stratum is not None:
            found.setdefault(stratum, []).append((label, said, n))
    return {s: _confusion(pairs, positive) for s, pairs in sorted(found.items())}


def by_stratum(t: Table, truth: Reference, positive: str) -> tuple[Mapping[str, Any], ...]:
    """TPR, FPR and prevalence of each stratum."""
    out = []
    for name, c in stratum_confusions(t, truth, positive).items():
        found = rates(c)
        out.append({"stratum": name, "n": round(c.n)} | {k: found[k] for k in ("tpr", "fpr", "prevalence")})
    return tuple(out)


def clustered(t: Table, truth: Reference, positive: str) -> dict[str, Estimate]:
    """TPR, FPR and prevalence with whole clusters resampled; empty where every item is its own cluster."""
    if not t.cluster:
        return {}
    read = [(i, v, said) for i, v in truth.of_item.items() if (said := t.verdicts.get(i)) is not None]
    out = {}
    for name, kept in (
        ("tpr", [(i, said) for i, v, said in read if v == positive]),
        ("fpr", [(i, said) for i, v, said in read if v != positive]),
    ):
        reason = "no_positives" if name == "tpr" else "no_negatives"
        e = cluster_bootstrap([float(said == positive) for _, said in kept], [t.cluster.get(i, i) for i, _ in kept])
        out[name] = e if kept else Estimate.undefined(reason, low=0.0, high=1.0, method=e.method)
    out["prevalence"] = cluster_bootstrap(
        [float(v == positive) for _, v, _ in read], [t.cluster.get(i, i) for i, _, _ in read]
    )
    return out


def under_attack(t: Table, truth: Reference, positive: str) -> dict[str, Any]:
    """TPR and FPR of each attack's verdicts against the same items' reference: a stratum of its own."""
    out: dict[str, Any] = {}
    for attack, given in sorted(t.attacked.items()):
        c = _confusion(((truth.of_item[i], v, 1) for i, v in given.items() if i in truth.of_item), positive)
        found = rates(c)
        out[attack] = {"n": round(c.n), "tpr": found["tpr"], "fpr": found["fpr"], "coverage": coverage(c)}
    return out


def alternative(t: Table, epsilon: float, scoring: Scoring) -> dict[str, Any]:
    """The alternative annotator test, when two or more people labelled enough items."""
    g = t.groups
    read = np.asarray([bool(p.verdict) for p in g.kinds], dtype=bool)[g.kind]
    clusters = codes([t.cluster.get(i, i) for i in g.items], len(g.items))[read] if t.cluster else None
    kinds = [(p.verdict, *p.said) for p in g.kinds]
    result = alt_test_of(g.raters, kinds, g.kind[read], epsilon, scoring=scoring, clusters=clusters)
    return {
        "winning_rate": result.winning_rate,
        "advantage": result.advantage,
        "passed": result.passed,
        "epsilon": epsilon,
        "raters": [{"rater": r.rater, "n": r.n, "rho": r.rho, "p": r.p, "rejected": r.rejected} for r in result.raters],
    }


def matrix(t: Table, truth: Reference, labels: Sequence[str]) -> list[list[int]]:
    """K x K counts, rows = reference, over read verdicts."""
    place = {v: k for k, v in enumerate(labels)}
    out = [[0] * len(labels) for _ in labels]
    for label, said, n, _ in _judged(t, truth):
        if said is not None:
            out[place[label]][place[said]] += n
    return out


def multiclass(t: Table, truth: Reference, labels: Sequence[str]) -> dict[str, Estimate]:
    """Kappa and AC1 over all declared labels."""
    table = np.asarray(matrix(t, truth, labels), dtype=np.float64)
    return {"kappa": kappa(table), "ac1": gwet_ac1(table)}


def ordinal(t: Table, truth: Reference, labels: Sequence[str]) -> dict[str, Estimate]:
    """The judge's numbers against people's, read verdicts only: weighted kappas, rank correlations, mean bias and error,
    exact and adjacent agreement, and the intraclass correlation (A,1), which a shift of all scores lowers."""
    read = [(float(v), float(said), n) for v, said, n, _ in _judged(t, truth) if said is not None]
    often = [n for _, _, n in read]
    human, judge = np.repeat([a for a, _, _ in read], often), np.repeat([b for _, b, _ in read], often)
    found = ordinal_agreement(human, judge, sorted(map(float, labels)))
    del found["kappa"]  # of all labels, it stands among the main figures
    return found | {"icc": icc(np.column_stack([human, judge])).icc2}


def judge_totals(t: Table, positive: str) -> tuple[int, int]:
    """(judge positives, read verdicts) over all items, labelled or not."""
    return _said(((p.verdict, n) for p, n in t.groups.counted() if p.asked), positive)


def unlabelled(t: Table, truth: Reference, positive: str) -> tuple[int, int]:
    """(judge positives, read verdicts) over the items without a reference."""
    found = zip(t.groups.counted(), truth.of_kind)
    return _said(((p.verdict, n) for (p, n), label in found if p.asked and label is None), positive)


def _said(verdicts: Iterable[tuple[str | None, int]], positive: str) -> tuple[int, int]:
    read = [(v, n) for v, n in verdicts if v is not None]
    return sum(n for v, n in read if v == positive), sum(n for _, n in read)


def _sizes(t: Table) -> dict[tuple[str, float], float]:
    """Items that the drawn ones stand for, by stratum and inclusion probability; a drawn item without a reference (a tie,
    a missing label) still stands for its share."""
    return {k: n / k[1] for k, n in Counter((t.stratum.get(i, ""), t.probability[i]) for i in t.drawn).items()}


def stratified_labels(t: Table, truth: Reference, positive: str) -> tuple[list[float], list[int], list[int]]:
    """(stratum sizes, positives, labels) by stratum and inclusion probability; a stratum of the table without any label
    counts with its items and no label."""
    known = _sizes(t)
    cells: dict[tuple[str, float], list[int]] = {k: [0, 0] for k in known}
    for item, label in truth.of_item.items():
        row = cells[t.stratum.get(item, ""), t.probability[item]]
        row[0] += label == positive
        row[1] += 1
    sizes = list(known.values())
    seen = {s for s, _ in cells}
    empty = Counter(s for s in t.stratum.values() if s not in seen)
    return (
        [*sizes, *map(float, empty.values())],
        [*(x for x, _ in cells.values()), *(0 for _ in empty)],
        [*(n for _, n in cells.values()), *(0 for _ in empty)],
    )


def weighted_cells(
    t: Table, truth: Reference, positive: str
) -> tuple[list[float], list[float], list[float], list[float], list[float]]:
    """(stratum sizes, tp, fn, fp, tn) by inclusion probability: items of one stratum and probability go together."""
    known = _sizes(t)
    cells: dict[tuple[str, float], list[float]] = {k: [0.0] * 4 for k in known}
    for item, label in truth.of_item.items():
        said = t.verdicts.get(item)
        if said is None:
            continue
        row = cells[t.stratum.get(item, ""), t.probability[item]]
        row[(0 if said == positive else 1) if label == positive else (2 if said == positive else 3)] += 1
    seen = {s for s, _ in known}
    empty = Counter(s for s in t.stratum.values() if s not in seen)  # items for which no label stands
    rows = [*cells.values(), *([0.0] * 4 for _ in empty)]
    tp, fn, fp, tn = (list(map(float, c)) for c in zip(*rows)) if rows else ([], [], [], [])
    return [*known.values(), *map(float, empty.values())], tp, fn, fp, tn


def weighted_labels(t: Table, truth: Reference, positive: str) -> Drawn:
    """The items with a reference and a read verdict, each with its own inclusion probability."""
    read = [(i, v, said) for i, v in truth.of_item.items() if (said := t.verdicts.get(i)) is not None]
    return Drawn.of(
        [float(v == positive) for _, v, _ in read],
        [float(said == positive) for _, _, said in read],
        [t.probability[i] for i, _, _ in read],
    )
