"""From the table to the figures of a report: one panel per (judge, defense, protocol), one line per attack.

Sees the table only; the same rows in any order give the same figures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustjudge.measures import paper, robustness as r
from robustjudge.measures.base import Floats
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.compare import mcnemar
from robustjudge.measures.multiplicity import benjamini_hochberg, holm
from robustjudge.measures.views import (
    NULL,
    SCORED,
    Settings,
    View,
    attacked_rows,
    by_case,
    choices,
    matrix,
    of,
    scores,
    texts,
)
from robustjudge.nouns import STATUSES, Access, Estimate

COLUMNS = (
    *("case_id", "cluster", "task", "attack", "attack_id", "family", "category", "severity", "control", "of", "access"),
    *("note", "defense", "judge", "protocol", "k", "scale_low", "scale_high", "threat", "seed", "attack_status"),
    *(
        "clean_status",
        "clean_score",
        "clean_unit",
        "retest_score",
        "attacked_status",
        "attacked_score",
        "attacked_unit",
    ),
    *("clean_expected", "attacked_expected", "clean_outcomes", "retest_outcomes", "attacked_outcomes", "clean_slots"),
    "blocked_worth",
    *("evaluator", "quality_clean", "quality_attacked", "queries", "writes", "losses", "gradients", "judge_calls"),
)
"""The columns of the table that the figures need."""


@dataclass(frozen=True)
class Line:
    """One attack against one judge under one protocol: every figure an Estimate, every denominator a count."""

    attack: str
    attack_id: str
    family: str
    category: str
    severity: str
    control: str
    of: str
    planned: int
    cases: int
    seeds: int
    statuses: dict[str, int]
    attack_statuses: dict[str, int]
    quality_unknown: int
    attackable: int
    figures: dict[str, Estimate]
    notes: dict[str, int] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    p: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None
    by_task: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    access: str = "NONE"
    excused: int = 0  # rises that are no success because the content measure rose too


@dataclass(frozen=True)
class Panel:
    """One judge as defended, under one protocol and threat model."""

    judge: str
    defense: str
    protocol: str
    k: int
    threat: str
    planned: int
    cases: int
    tasks: tuple[str, ...]
    scale: tuple[float, float] | None
    paper_reason: str
    evaluators: tuple[str, ...]
    clean: dict[str, Estimate]
    clean_statuses: dict[str, int]
    lines: tuple[Line, ...]
    worst: dict[str, Estimate]
    strongest: tuple[str, float] | None
    span: tuple[float, float] | None = (
        None  # the least and the best score read, clean or attacked, as shares of the range
    )

    def line(self, attack: str) -> Line | None:
        """The line of an attack by name or id."""
        return next((x for x in self.lines if attack in (x.attack, x.attack_id)), None)


def panels(table: Any, settings: Settings | None = None) -> tuple[Panel, ...]:
    """Every (judge, defense, protocol, K, threat) of a table, in a stable order.

    Controls that ask nothing of the judge are measured under the first threat model and belong to all of them.
    """
    settings = settings or Settings()
    keys = ["judge", "defense", "protocol", "threat"]
    columns = [table[k].codes.astype(np.int64) for k in keys] + [np.nan_to_num(table["k"]).astype(np.int64)]
    if not len(table):
        return ()
    stacked = np.stack(columns, axis=1)
    found, inverse = np.unique(stacked, axis=0, return_inverse=True)
    group = inverse.reshape(-1)
    free = (table["control"].codes >= 0) & ~table["control"].equals("") & table["access"].equals(Access.NONE.name)
    out = []
    for g, code in enumerate(found):
        names = [table[k].values[c] for k, c in zip(keys, code[:4], strict=True)]
        alike = np.flatnonzero((found[:, [0, 1, 2, 4]] == code[[0, 1, 2, 4]]).all(axis=1))
        rows = group == g
        if len(alike) > 1:
            attacks = table["attack"].codes
            rows = rows | (free & np.isin(group, alike) & ~np.isin(attacks, attacks[rows]))
        out.append(_panel(table.where(rows), names, int(code[4]), settings))
    shape = {"pointwise": 0, "appeal": 1, "pairwise": 2, "best_of": 3}
    return tuple(
        sorted(
            out,
            key=lambda p: (
                p.judge,
                p.defense != "none",
                p.defense,
                shape.get(p.protocol, 3),
                p.protocol,
                p.k,
                p.threat,
            ),
        )
    )


# --------------------------------------------------------------------------- one panel


def _panel(t: Any, names: list[str], k: int, s: Settings) -> Panel:
    pointwise = names[2] in SCORED
    view = scores(t, s) if pointwise else choices(t)
    scale = _scale(t) if pointwise else None
    reason = paper.check_scale(*scale) if scale else ("no score was read" if pointwise else "")
    attacks = _attacks(t)
    null = next((mask for (_, control), mask in attacks.items() if control == NULL), None)
    lines = [_line(t, mask, view, null, pointwise, s, reason, k) for mask in attacks.values()]
    lines = _adjusted(lines)
    own = np.ones(len(t), dtype=bool)
    first = _first_rows(t)
    judge, defense, protocol, threat = names
    return Panel(
        judge,
        defense,
        protocol,
        k,
        threat,
        len(t),
        len(np.unique(t["case_id"].codes)),
        t.distinct("task"),
        scale,
        reason,
        t.distinct("evaluator"),
        _clean(t.where(first), pointwise),
        _counts(t.where(first), "clean_status"),
        tuple(sorted(lines, key=lambda x: (bool(x.control), x.attack_id, x.attack))),
        _worst(t, own, view, attacks, pointwise),
        _strongest(view, attacks),
        _span(t) if pointwise else None,
    )


def _attacks(t: Any) -> dict[tuple[str, str], Any]:
    out = {}
    for code, name in enumerate(t["attack"].values):
        mask = t["attack"].codes == code
        if mask.any():
            control = t["control"][int(np.flatnonzero(mask)[0])] or ""
            out[(name, control)] = mask
    return out


def _scale(t: Any) -> tuple[float, float] | None:
    low, high = t["scale_low"], t["scale_high"]
    known = ~np.isnan(low)
    return (float(np.nanmin(low)), float(np.nanmax(high))) if known.any() else None


def _span(t: Any) -> tuple[float, float] | None:
    read = np.concatenate([t["clean_unit"], t["attacked_unit"]])
    read = read[~np.isnan(read)]
    return (float(read.min()), float(read.max())) if read.size else None


def _line(t: Any, mask: Any, view: View, null: Any, pointwise: bool, s: Settings, reason: str, k: int) -> Line:
    rows = t.where(mask)
    part = View(*(x[mask] for x in (view.clusters, view.cases, view.success, view.attackable, view.published)))
    if pointwise:
        figures = _score_figures(rows, part, s, reason)
    else:
        figures = _choice_figures(rows, part, k)
    figures["asr"] = r.headline(part.success, part.attackable, part.clusters)
    figures["asr_worst_case"] = r.worst_case(part.success, part.attackable, part.clusters)
    drawn = np.unique(np.nan_to_num(rows["seed"]), return_inverse=True)[1]
    if drawn.size and drawn.max():
        figures["asr_seeds"] = _over_seeds(part, drawn)
    p = None
    if null is not None and not (rows["control"].equals(NULL)).all():
        net, p = _net(view, mask, null)
        figures["asr_net"] = net
    one = _first(rows)
    return Line(
        one("attack"),
        one("attack_id"),
        one("family"),
        one("category"),
        one("severity"),
        one("control"),
        one("of"),
        len(rows),
        len(np.unique(part.cases)),
        len(np.unique(np.nan_to_num(rows["seed"]))),
        _counts(rows.where(attacked_rows(rows)), "attacked_status"),
        _counts(rows, "attack_status"),
        int((np.isnan(rows["quality_clean"]) | np.isnan(rows["quality_attacked"])).sum()),
        int(part.attackable.sum()),
        figures,
        {n: c for n, c in _counts(rows, "note").items() if n},
        {c: float(np.nansum(rows[c])) for c in ("queries", "writes", "losses", "gradients", "judge_calls")},
        p,
        by_task=_by_task(rows, part),
        access=one("access"),
        excused=_excused(rows, part, s) if pointwise else 0,
    )


def _excused(t: Any, v: View, s: Settings) -> int:
    """Attackable trials whose score rose enough, and that count as failed only because content quality rose too."""
    alone = r.threshold_success(t["clean_score"], t["attacked_score"], np.full(len(t), np.nan), s.tau, s.eps)
    return int((v.attackable & (np.nan_to_num(alone) > 0) & (np.nan_to_num(v.success) == 0)).sum())


def _over_seeds(v: View, drawn: Any) -> Estimate:
    """Success of each distinct seed, as a mean with its t interval; never merged with the cases."""
    used = v.attackable & ~np.isnan(v.success)
    each = [v.success[used & (drawn == s)] for s in range(int(drawn.max()) + 1)]
    return r.seeds_interval([float(x.mean()) for x in each if x.size])


def _first(t: Any) -> Any:
    return lambda name: (t[name][0] or "") if len(t) else ""


def _score_figures(t: Any, v: View, s: Settings, reason: str) -> dict[str, Estimate]:
    m = paper.movement(t["clean_score"], t["attacked_score"], t["quality_clean"], t["quality_attacked"])
    if reason:
        undefined = Estimate.undefined(reason)
        out = {"paper_sdr": undefined, "paper_isdr": undefined, "paper_asr": undefined}
    else:
        out = {
            "paper_sdr": paper.paper_sdr(m, v.clusters),
            "paper_isdr": paper.paper_isdr(m, v.clusters),
            "paper_asr": cluster_bootstrap(v.published, v.clusters),
        }
    unit0, unit1 = t["clean_unit"], t["attacked_unit"]
    shift = unit1 - unit0
    known = ~np.isnan(shift)
    out["shift"] = _mean(shift, known, v.clusters, "no instance has both scores")
    out["dq"] = r.moved(m, v.clusters)["dq"]
    expected = t["attacked_expected"] - t["clean_expected"]
    if (~np.isnan(expected)).any():
        keep = ~np.isnan(expected)
        out["expected_shift"] = cluster_bootstrap(expected[keep], v.clusters[keep], bounds=None)
    read = ~np.isnan(unit1)
    if read.any():
        out["top_score_rate"] = cluster_bootstrap((unit1[read] >= 1 - 1e-9).astype(float), v.clusters[read])
    if known.any():
        flipped = (unit0 < s.pass_mark - 1e-9) & (unit1 >= s.pass_mark - 1e-9)
        below = known & (unit0 < s.pass_mark - 1e-9)
        if below.any():
            out["decision_flip_rate"] = cluster_bootstrap(flipped[below].astype(float), v.clusters[below])
    return out


def _mean(x: Floats, known: Any, clusters: Any, reason: str) -> Estimate:
    if not known.any():
        return Estimate.undefined(reason, low=-1.0, high=1.0)
    return cluster_bootstrap(x[known], clusters[known], bounds=(-1.0, 1.0))


def _choice_figures(t: Any, v: View, k: int) -> dict[str, Estimate]:
    outcomes, clean = t["attacked_outcomes"], t["clean_outcomes"]
    seen = of(outcomes, len) > 0
    if not seen.any():
        return {"paper_p_asr": Estimate.undefined("nothing was judged", low=0.0, high=1.0)}

    def share(col: Any, rows: Any, letters: str) -> Estimate:
        """The share of letters among ``letters``; the letters of a case stay together."""
        hits = of(col, lambda o: sum(x in letters for x in o))[rows]
        return cluster_bootstrap(hits, v.clusters[rows], weights=of(col, len)[rows])

    out: dict[str, Estimate] = {}
    if t["protocol"].equals("best_of").any():
        out["paper_asr_at_1"] = share(outcomes, seen, "W")
        before = of(clean, len) > 0
        if before.any():
            out["clean_asr_at_1"] = share(clean, before, "W")
        out["chance"] = Estimate(1.0 / k, 1.0 / k, 1.0 / k, int(seen.sum()), "1/K")
    else:
        out["paper_p_asr"] = cluster_bootstrap(v.published, v.clusters)
    present = {x for code in np.unique(outcomes.codes[seen]) for x in outcomes.values[code]}
    for letter, name in r.OUTCOMES.items():
        if letter in "WLT" or letter in present:
            out[name] = share(outcomes, seen, letter)
    out["pac"] = cluster_bootstrap(of(outcomes, lambda o: set(o) == {"W"})[seen], v.clusters[seen])
    right = seen & (of(clean, lambda o: set(o) == {"L"}) > 0)
    if right.any():
        out["win_given_clean_correct"] = share(outcomes, right, "W")
    return out


def _net(v: View, mask: Any, null: Any) -> tuple[Estimate, float | None]:
    """ASR minus the identity control's, paired by case over those both have; exact McNemar p of the pairs."""
    able = v.attackable & ~np.isnan(v.success)
    size = int(v.cases.max()) + 1 if v.cases.size else 0

    def by_case(rows: Any) -> tuple[Floats, Floats]:
        picked = rows & able
        return (
            np.asarray(np.bincount(v.cases[picked], v.success[picked], size), dtype=np.float64),
            np.bincount(v.cases[picked], minlength=size).astype(float),
        )

    hit, n = by_case(mask)
    null_hit, null_n = by_case(null)
    both = (n > 0) & (null_n > 0)
    if not both.any():
        return Estimate.undefined("no case has both the attack and its identity control", low=-1.0, high=1.0), None
    a, b = hit[both] / n[both], null_hit[both] / null_n[both]
    cluster_of = np.zeros(size, dtype=np.int64)
    cluster_of[v.cases] = v.clusters
    p = mcnemar(int((a > b).sum()), int((a < b).sum())).exact_p
    return r.net(a, b, cluster_of[both]), p


def _by_task(t: Any, v: View) -> dict[str, dict[str, Estimate]]:
    out = {}
    for code, name in enumerate(t["task"].values):
        mask = t["task"].codes == code
        if not mask.any():
            continue
        out[name] = {
            "asr": r.headline(v.success[mask], v.attackable[mask], v.clusters[mask]),
            "published": cluster_bootstrap(v.published[mask], v.clusters[mask]),
        }
    return out


def _adjusted(lines: list[Line]) -> list[Line]:
    """Holm (claims) and Benjamini-Hochberg (screening) over the attacks of the panel; controls are no hypotheses."""
    from dataclasses import replace

    tested = [i for i, x in enumerate(lines) if x.p is not None and not x.control]
    if not tested:
        return lines
    ps = [float(lines[i].p or 0.0) for i in tested]
    for i, h, b in zip(tested, holm(ps), benjamini_hochberg(ps), strict=True):
        lines[i] = replace(lines[i], p_holm=float(h), p_bh=float(b))
    return lines


def _counts(t: Any, name: str) -> dict[str, int]:
    col = t[name]
    found = Counter(
        {col.values[c]: int(n) for c, n in zip(*np.unique(col.codes, return_counts=True), strict=True) if c >= 0}
    )
    if name.endswith("_status") and name != "attack_status":
        return {s: found.get(s, 0) for s in STATUSES if found.get(s, 0) or s == "ok"}
    return dict(found)


def _first_rows(t: Any) -> Any:
    """A mask with one row per case: the clean arm is shared by all attacks."""
    _, index = np.unique(t["case_id"].codes, return_index=True)
    mask = np.zeros(len(t), dtype=bool)
    mask[index] = True
    return mask


def _clean(t: Any, pointwise: bool) -> dict[str, Estimate]:
    clusters = t["cluster"].codes
    out: dict[str, Estimate] = {"parse_rate": cluster_bootstrap(t["clean_status"].equals("ok").astype(float), clusters)}
    if pointwise:
        unit = t["clean_unit"]
        known = ~np.isnan(unit)
        out["mean_unit"] = (
            cluster_bootstrap(unit[known], clusters[known])
            if known.any()
            else Estimate.undefined("no clean score was read", low=0.0, high=1.0)
        )
        a, b = t["clean_score"], t["retest_score"]
        both = ~np.isnan(a) & ~np.isnan(b)
        if both.any():
            out["retest_flip_rate"] = cluster_bootstrap((np.abs(a - b)[both] > 1e-9).astype(float), clusters[both])
        return out
    outcomes = texts(t, "clean_outcomes")
    out["clean_accuracy"] = r.clean_accuracy(outcomes, clusters)
    out["slot_one_rate"] = r.slot_one_rate(texts(t, "clean_slots"), clusters)
    again = texts(t, "retest_outcomes")
    pairs = [(x, y) for a, b in zip(outcomes, again, strict=True) if a and b for x, y in [(a, b)]]
    if pairs:
        where = clusters[np.array([bool(a and b) for a, b in zip(outcomes, again, strict=True)])]
        flips = np.array([float(sum(p != q for p, q in zip(a, b, strict=False))) for a, b in pairs])
        size = np.array([float(len(a)) for a, _ in pairs])
        out["retest_flip_rate"] = cluster_bootstrap(flips, where, weights=size)
    return out


def _worst(t: Any, own: Any, view: View, attacks: dict[tuple[str, str], Any], pointwise: bool) -> dict[str, Estimate]:
    names, table, clusters = matrix(view, attacks)
    if not names or not table.size:
        return {}
    present = np.isin(np.arange(len(table)), view.cases)
    out: dict[str, Estimate] = {}
    any_hit = np.nanmax(np.where(np.isnan(table), -1.0, table), axis=1)
    used = present & (any_hit >= 0)
    if used.any():
        out["any_attack"] = cluster_bootstrap((any_hit[used] >= 1 - 1e-9).astype(float), clusters[used])
        null = by_case(view, next((m for (_, c), m in attacks.items() if c == NULL), np.zeros(len(t), dtype=bool)))
        judged = used & ~np.isnan(null)
        if judged.any():
            out["null"] = cluster_bootstrap((null[judged] >= 1 - 1e-9).astype(float), clusters[judged])
        chosen, found = r.best_attack(table[used], clusters[used])
        if chosen >= 0:
            out["best_attack"] = Estimate(
                found.value, found.low, found.high, found.n, found.method, found.reason, (*found.flags, names[chosen])
            )
    if not pointwise:
        out["robust_accuracy"] = _robust(t, attacks)
    return out


def _robust(t: Any, attacks: dict[tuple[str, str], Any]) -> Estimate:
    """Share of cases judged right (reference preferred in every order) when clean and under every attack."""
    codes = t["case_id"].codes
    size = int(codes.max()) + 1
    used = np.zeros(len(t), dtype=bool)
    for (_, control), mask in attacks.items():
        used |= mask if not control else False
    wrong = of(t["clean_outcomes"], lambda o: set(o) != {"L"}) + of(
        t["attacked_outcomes"], lambda o: bool(o) and set(o) != {"L"}
    )
    right = (np.bincount(codes[used], wrong[used], size) == 0).astype(float)
    seen = np.bincount(codes[used], minlength=size) > 0
    if not seen.any():
        return Estimate.undefined("no case was attacked", low=0.0, high=1.0)
    cluster_of = np.zeros(size, dtype=np.int64)
    cluster_of[codes] = t["cluster"].codes
    return cluster_bootstrap(right[seen], cluster_of[seen])


def _strongest(view: View, attacks: dict[tuple[str, str], Any]) -> tuple[str, float] | None:
    """The attack most often first over the bootstrap, with that probability; a report says "strongest" from .95 on."""
    names, table, clusters = matrix(view, attacks)
    used = ~np.isnan(table).all(axis=1) if table.size else np.zeros(0, dtype=bool)
    if len(names) < 2 or used.sum() < 2:
        return None
    share = r.strongest(table[used], clusters[used])
    best = int(share.argmax())
    return names[best], float(share[best])
