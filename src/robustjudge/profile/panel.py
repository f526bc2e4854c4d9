"""The label table of one calibration and what people and judge said in it, item by item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from typing import Any

import numpy as np

from robustjudge.errors import DataError
from robustjudge.measures import raters
from robustjudge.measures.agreement import cross_table, gwet_ac1, kappa, raw_agreement
from robustjudge.measures.alttest import Scoring, alt_test
from robustjudge.measures.base import Floats
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.confusion import Confusion, coverage, rates
from robustjudge.measures.drift import two_windows
from robustjudge.measures.intervals import wilson
from robustjudge.nouns import Estimate
from robustjudge.profile.longform import BadLabel, LabelRow
from robustjudge.profile.package import Check
from robustjudge.spec import canonical


@dataclass
class Table:
    """First independent human labels, adjudications and judge verdicts by item; the rest is kept for the checks."""

    human: dict[str, dict[str, str]] = field(default_factory=dict)  # rater -> item -> label
    repeats: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # rater -> item -> later labels
    adjudicated: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, str | None] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # the judge's probability of the positive label
    items: dict[str, None] = field(default_factory=dict)
    stratum: dict[str, str] = field(default_factory=dict)
    probability: dict[str, float] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)  # only where it is not the item itself
    attacked: dict[str, dict[str, str | None]] = field(default_factory=dict)  # attack -> item -> verdict
    sitting: dict[str, list[tuple[str, int, str, float | None]]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    types: Counter[str] = field(default_factory=Counter)
    rejected: list[BadLabel] = field(default_factory=list)
    judge_id: str = ""

    @property
    def raters(self) -> tuple[str, ...]:
        return tuple(sorted(self.human))

    def drop(self, items: Iterable[str]) -> None:
        """Forget items (leaks) everywhere."""
        for item in items:
            self.items.pop(item, None)
            for given in self.human.values():
                given.pop(item, None)
            for later in self.repeats.values():
                later.pop(item, None)
            for under in self.attacked.values():
                under.pop(item, None)
            for store in (
                self.adjudicated,
                self.verdicts,
                self.status,
                self.scores,
                self.stratum,
                self.probability,
                self.cluster,
            ):
                store.pop(item, None)


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


def collect(rows: Iterable[LabelRow | BadLabel]) -> Table:
    """Sort rows into a table; duplicates are an error with their lines, before any computation."""
    t = Table()
    lines: dict[tuple[str, ...], int] = {}
    doubled: list[str] = []
    judges: set[str] = set()
    for row in rows:
        if isinstance(row, BadLabel):
            t.rejected.append(row)
            continue
        key = row.key
        if key in lines:
            doubled.append(f"{row.item_id} by {row.rater_id} in lines {lines[key]} and {row.line}")
            continue
        lines[key] = row.line
        _put(t, row, judges)
    if doubled:
        more = f" and {len(doubled) - 5} more" if len(doubled) > 5 else ""
        raise DataError(f"labelled twice: {'; '.join(doubled[:5])}{more}")
    if len(judges) > 1:
        raise DataError(f"one profile describes one judge, but the file holds {', '.join(sorted(judges))}")
    t.judge_id = next(iter(judges), "").removeprefix("judge:")
    return t


def _put(t: Table, row: LabelRow, judges: set[str]) -> None:
    item, label, kind = row.item, row.label, row.rater_kind
    if item not in t.items:
        t.items[item] = None
    if row.stratum:
        t.stratum[item] = row.stratum
    if row.inclusion_prob is not None:
        t.probability[item] = row.inclusion_prob
    if row.cluster and row.cluster != row.item_id:
        t.cluster[item] = row.cluster
    if label is not None:
        who = row.rater_id if kind == "human" else kind
        used = t.seen.get(who)
        if used is None:
            used = t.seen[who] = set()
        used.add(label)
        t.types[row.label_type] += 1
    if kind == "judge":
        judges.add(row.rater_id)
        if row.attack:
            t.attacked.setdefault(row.attack, {}).setdefault(item, label)
        elif row.repeat == 0 and item not in t.verdicts:
            t.verdicts[item] = label
            t.status[item] = row.status if label is not None or row.status != "ok" else "unparsed"
            if row.score is not None:
                t.scores[item] = row.score
    elif kind == "adjudicated":
        if label is not None:
            t.adjudicated[item] = label
    elif label is not None and row.stage == "independent":
        if row.repeat:
            t.repeats.setdefault(row.rater_id, {}).setdefault(item, []).append(label)
        else:
            given = t.human.get(row.rater_id)
            if given is None:
                given = t.human[row.rater_id] = {}
            given[item] = label
        if row.position is not None:
            t.sitting.setdefault(row.rater_id, []).append((row.session, row.position, item, row.seconds))


def address(t: Table) -> str:
    """Content hash of the labels, for tables that came from no file."""
    body = canonical({"human": t.human, "adjudicated": t.adjudicated, "verdicts": t.verdicts})
    return sha256(body.encode()).hexdigest()


def anchors(t: Table) -> str:
    """Hash of what people said of which items: it names a frozen anchor set, whatever judge is held against it."""
    return sha256(canonical({"human": t.human, "adjudicated": t.adjudicated}).encode()).hexdigest()


def overlap(t: Table) -> int:
    """Items that two or more people labelled."""
    count: Counter[str] = Counter(i for given in t.human.values() for i in given)
    return sum(n >= 2 for n in count.values())


def agreement(t: Table, labels: Sequence[str]) -> People:
    """Kappa of two raters, else pooled Fleiss; alpha, AC1 and raw agreement beside it; who disagrees where."""
    names = t.raters
    pairs: dict[tuple[str, str], tuple[int, int]] = {}
    tables: dict[tuple[str, str], Floats] = {}
    for a, b in combinations(names, 2):
        other = t.human[b]
        both = [(v, other[i]) for i, v in t.human[a].items() if i in other]
        if both:
            tables[a, b] = table = _crossed(both, labels)
            pairs[a, b] = (round(float(np.trace(table))), len(both))
    counts = _counts(t, labels)
    figures: dict[str, Estimate] = {
        "alpha": raters.krippendorff_alpha(counts),
        "fleiss_pooled": raters.fleiss_kappa(counts),
        "fleiss_item_mean": raters.fleiss_kappa(counts, "item_mean"),
    }
    if len(names) == 2:
        table = tables.get((names[0], names[1]), np.zeros((len(labels), len(labels))))
        figures |= {"kappa": kappa(table), "ac1": gwet_ac1(table), "raw": raw_agreement(table)}
        floor = figures["kappa"]
    else:
        figures |= {"ac1": raters.gwet_ac(counts), "raw": raters.pairwise_agreement(counts)}
        floor = figures["fleiss_pooled"]
    used = np.asarray(counts.sum(0))
    section = {
        "raters": len(names),
        "stage": "independent",
        "agreement": figures,
        "label_shares": {v: float(n / used.sum()) if used.sum() else None for v, n in zip(labels, used)},
        "n_items": int(np.sum(counts.sum(1) >= 1)),
        "n_overlap": overlap(t),
    }
    split = _disagreements(t)
    section["disputed"] = {"n": len(split), "by_label": _by_label(split), "by_stratum": _by_stratum(t, split)}
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


def _crossed(both: Sequence[tuple[str, str]], labels: Sequence[str]) -> Floats:
    """The cross table of pairs of labels, counted before it is a matrix."""
    place = {v: k for k, v in enumerate(labels)}
    out = np.zeros((len(labels), len(labels)))
    for (a, b), n in Counter(both).items():
        if a not in place or b not in place:
            raise DataError(f"label {(b if a in place else a)!r} is not among {', '.join(map(repr, labels))}")
        out[place[a], place[b]] += n
    return out


def _counts(t: Table, labels: Sequence[str]) -> Floats:
    """Items x labels counts of all raters."""
    row: dict[str, int] = {}
    place = {v: k for k, v in enumerate(labels)}
    width = len(labels)
    at = [
        row.setdefault(item, len(row)) * width + place[label]
        for given in t.human.values()
        for item, label in given.items()
    ]
    return np.bincount(np.asarray(at, dtype=np.int64), minlength=len(row) * width).reshape(-1, width).astype(np.float64)


def _disagreements(t: Table) -> tuple[Disagreement, ...]:
    """Items whose raters differ: found by comparing with the first label, told in full only for those."""
    first: dict[str, str] = {}
    split: dict[str, None] = {}
    for rater in t.raters:
        for item, label in t.human[rater].items():
            if first.setdefault(item, label) != label:
                split[item] = None
    told = {i: tuple((r, t.human[r][i]) for r in t.raters if i in t.human[r]) for i in split}
    kind = {i: tuple(sorted({v for _, v in g})) for i, g in told.items()}
    often = Counter(kind.values())
    order = sorted(split, key=lambda i: (-often[kind[i]], i))
    return tuple(Disagreement(i, told[i], t.stratum.get(i, "")) for i in order)


def fatigue(t: Table) -> list[Check]:
    """Drift within a sitting: label rate first against last third, repeats, seconds; flagged, never corrected."""
    out = []
    again = [
        (t.human[r][i], later[0]) for r, g in t.repeats.items() for i, later in g.items() if i in t.human.get(r, {})
    ]
    same = wilson(sum(a == b for a, b in again), len(again), reason="no hidden repeats")
    labelled = sum(len(g) for g in t.human.values())
    if not again:
        out.append(Check("intra_rater", "not_run", "no hidden repeats (at least 10 % of items are advised)"))
    else:
        share = len(again) / max(labelled, 1)
        told = f"{same.value:.2f} [{same.low:.2f}, {same.high:.2f}] on {len(again)} repeats ({share:.0%} of labels)"
        out.append(Check("intra_rater", "fail" if (same.high or 0) < 0.8 else "pass", told))
    drifted, slow = [], []
    for rater, rows in sorted(t.sitting.items()):
        rows = sorted(rows)
        third = len(rows) // 3
        if third < 5:
            continue
        labels = [t.human.get(rater, {}).get(item, "") for _, _, item, _ in rows]
        top = Counter(labels).most_common(1)[0][0]
        first, last = labels[:third], labels[-third:]
        w = two_windows(first.count(top), third, last.count(top), third)
        if w.fisher_p is not None and w.fisher_p < 0.01:
            d = w.difference
            drifted.append(f"{rater}: share of {top!r} changed by {-(d.value or 0):+.2f} from first to last third")
        times = [s for _, _, _, s in rows if s is not None]
        if len(times) == len(rows) and float(np.median(times[-third:])) < 0.5 * float(np.median(times[:third])):
            slow.append(f"{rater}: last third took under half the time per item")
    ran = any(len(rows) >= 15 for rows in t.sitting.values())
    found = "; ".join(drifted + slow)
    out.append(Check("fatigue", "fail" if found else "pass" if ran else "not_run", found))
    return out


def reference(t: Table) -> tuple[dict[str, str], str, int]:
    """(item -> reference label, how, tied items): adjudicated where there is one, else the untied majority."""
    votes: dict[str, list[str]] = {}
    for given in t.human.values():
        for item, label in given.items():
            votes.setdefault(item, []).append(label)
    out: dict[str, str] = {}
    ties = 0
    for item in dict.fromkeys((*votes, *t.adjudicated)):
        if item in t.adjudicated:
            out[item] = t.adjudicated[item]
            continue
        cast = votes[item]
        if len(set(cast)) == 1:
            out[item] = cast[0]
            continue
        best = Counter(cast).most_common(2)
        if best[0][1] == best[1][1]:
            ties += 1
        else:
            out[item] = best[0][0]
    how = "third rater or adjudication, else majority" if t.adjudicated else "majority; ties stay ties"
    return out, how, ties


def _confusion(pairs: Iterable[tuple[str, str | None]], positive: str) -> Confusion:
    n = Counter((truth == positive, None if said is None else said == positive) for truth, said in pairs)
    return Confusion(n[True, True], n[False, True], n[True, False], n[False, False], n[True, None], n[False, None])


def _judged(t: Table, truth: Mapping[str, str]) -> list[tuple[str, str | None]]:
    return [(v, t.verdicts[i]) for i, v in truth.items() if i in t.verdicts]


def binary(t: Table, truth: Mapping[str, str], positive: str) -> tuple[Confusion, Counter[str]]:
    """The judge against a reference, one label against the rest, with the statuses of unread verdicts."""
    unread = Counter(t.status[i] for i in truth if i in t.verdicts and t.verdicts[i] is None)
    return _confusion(_judged(t, truth), positive), unread


def per_rater(t: Table, positive: str) -> tuple[Mapping[str, Any], ...]:
    """The judge against each single person; person against person is the ceiling beside it."""
    out = []
    for rater in t.raters:
        c = _confusion(_judged(t, t.human[rater]), positive)
        found = rates(c)
        others = [
            (t.human[rater][i], v) for r in t.raters if r != rater for i, v in t.human[r].items() if i in t.human[rater]
        ]
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


def stratum_confusions(t: Table, truth: Mapping[str, str], positive: str) -> dict[str, Confusion]:
    """Confusion by stratum; empty without strata."""
    names = sorted({t.stratum[i] for i in truth if i in t.stratum})
    pairs: dict[str, list[tuple[str, str | None]]] = {s: [] for s in names}
    for item, label in truth.items():
        if item in t.stratum and item in t.verdicts:
            pairs[t.stratum[item]].append((label, t.verdicts[item]))
    return {s: _confusion(p, positive) for s, p in pairs.items()}


def by_stratum(t: Table, truth: Mapping[str, str], positive: str) -> tuple[Mapping[str, Any], ...]:
    """TPR, FPR and prevalence of each stratum."""
    out = []
    for name, c in stratum_confusions(t, truth, positive).items():
        found = rates(c)
        out.append({"stratum": name, "n": round(c.n)} | {k: found[k] for k in ("tpr", "fpr", "prevalence")})
    return tuple(out)


def clustered(t: Table, truth: Mapping[str, str], positive: str) -> dict[str, Estimate]:
    """TPR, FPR and prevalence with whole clusters resampled; empty where every item is its own cluster."""
    if not t.cluster:
        return {}
    read = [i for i in truth if t.verdicts.get(i) is not None]
    out = {}
    for name, kept in (
        ("tpr", [i for i in read if truth[i] == positive]),
        ("fpr", [i for i in read if truth[i] != positive]),
    ):
        said = [float(t.verdicts[i] == positive) for i in kept]
        reason = "no_positives" if name == "tpr" else "no_negatives"
        e = cluster_bootstrap(said, [t.cluster.get(i, i) for i in kept])
        out[name] = e if kept else Estimate.undefined(reason, low=0.0, high=1.0, method=e.method)
    out["prevalence"] = cluster_bootstrap(
        [float(truth[i] == positive) for i in read], [t.cluster.get(i, i) for i in read]
    )
    return out


def under_attack(t: Table, truth: Mapping[str, str], positive: str) -> dict[str, Any]:
    """TPR and FPR of each attack's verdicts against the same items' reference: a stratum of its own."""
    out: dict[str, Any] = {}
    for attack, given in sorted(t.attacked.items()):
        c = _confusion([(truth[i], v) for i, v in given.items() if i in truth], positive)
        found = rates(c)
        out[attack] = {"n": round(c.n), "tpr": found["tpr"], "fpr": found["fpr"], "coverage": coverage(c)}
    return out


def alternative(t: Table, epsilon: float, scoring: Scoring) -> dict[str, Any]:
    """The alternative annotator test, when two or more people labelled enough items."""
    read = {i: v for i, v in t.verdicts.items() if v is not None}
    clusters = {i: t.cluster.get(i, i) for i in read} if t.cluster else None
    result = alt_test(t.human, read, epsilon, scoring=scoring, clusters=clusters)
    return {
        "winning_rate": result.winning_rate,
        "advantage": result.advantage,
        "passed": result.passed,
        "epsilon": epsilon,
        "raters": [{"rater": r.rater, "n": r.n, "rho": r.rho, "p": r.p, "rejected": r.rejected} for r in result.raters],
    }


def matrix(t: Table, truth: Mapping[str, str], labels: Sequence[str]) -> list[list[int]]:
    """K x K counts, rows = reference, over read verdicts."""
    read = [(v, said) for v, said in _judged(t, truth) if said is not None]
    table = cross_table([a for a, _ in read], [b for _, b in read], labels)
    return [[int(n) for n in row] for row in table]


def multiclass(t: Table, truth: Mapping[str, str], labels: Sequence[str]) -> dict[str, Estimate]:
    """Kappa and AC1 over all declared labels."""
    table = np.asarray(matrix(t, truth, labels), dtype=np.float64)
    return {"kappa": kappa(table), "ac1": gwet_ac1(table)}


def weighted(t: Table, truth: Mapping[str, str], labels: Sequence[str]) -> Estimate:
    """Quadratically weighted kappa."""
    return kappa(np.asarray(matrix(t, truth, labels), dtype=np.float64), "quadratic")


def numbers(t: Table, truth: Mapping[str, str]) -> tuple[Floats, Floats]:
    """Human and judge values of an ordinal scale, read verdicts only."""
    read = [(float(v), float(said)) for v, said in _judged(t, truth) if said is not None]
    return np.asarray([a for a, _ in read]), np.asarray([b for _, b in read])


def judge_totals(t: Table, positive: str) -> tuple[int, int]:
    """(judge positives, read verdicts) over all items, labelled or not."""
    read = [v for v in t.verdicts.values() if v is not None]
    return sum(v == positive for v in read), len(read)


def unlabelled(t: Table, truth: Mapping[str, str], positive: str) -> tuple[int, int]:
    """(judge positives, read verdicts) over the items without a reference."""
    read = [v for i, v in t.verdicts.items() if v is not None and i not in truth]
    return sum(v == positive for v in read), len(read)


def weighted_cells(
    t: Table, truth: Mapping[str, str], positive: str
) -> tuple[list[float], list[float], list[float], list[float], list[float]]:
    """(stratum sizes, tp, fn, fp, tn) by inclusion probability: items of one stratum and probability go together."""
    cells: dict[tuple[str, float], list[float]] = {}
    for item, label in truth.items():
        said = t.verdicts.get(item)
        if said is None:
            continue
        row = cells.setdefault((t.stratum.get(item, ""), t.probability[item]), [0.0] * 4)
        row[(0 if said == positive else 1) if label == positive else (2 if said == positive else 3)] += 1
    sizes = [sum(row) / p for (_, p), row in cells.items()]
    columns = list(zip(*cells.values())) or [(), (), (), ()]
    tp, fn, fp, tn = (list(map(float, c)) for c in columns)
    return sizes, tp, fn, fp, tn
