"""What a defense buys and what it costs: residual and prevented attack success, honest authors lost, risk by prevalence.

Sees tables only.  Every figure of a defense stands beside the no-defense row on the same trials; by the paper's equal
weighting that row (BDR 29.87) beats all eight published defenses, so "best" always names the prevalence it holds for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from robustjudge.errors import NotComparable
from robustjudge.measures import paper
from robustjudge.measures.base import Floats, bounded
from robustjudge.measures.bootstrap import DRAWS, cluster_bootstrap, paired_bootstrap
from robustjudge.measures.matched import MODES, NONE, Benign, Trials, Worth, benign, trials, worths
from robustjudge.measures.views import Settings, of
from robustjudge.nouns import Estimate

PREVALENCES = tuple(round(i / 20, 2) for i in range(21))
UNREAD = "detector_unparsed"
UNIT = (-1.0, 1.0)
CHUNK = 250
"""Resamples held at once."""


@dataclass(frozen=True)
class Tradeoff:
    """One defense of one judge under one protocol; rates are fractions, costs are means per trial beyond the baseline.

    ``bur`` is the utility that honest authors keep: 0 where the defense withholds the verdict, else max(0, 1 - zeta
    |change|) or, for choices, the share unchanged.  ``bur_detection`` (share accepted) and ``bur_ratio`` are the other
    definitions; ``noise_floor`` is the same figure between two clean replicas of the bare judge.  ``modes`` holds eASR
    by what the attacker was answered by, ``families`` by attack family; ``risk`` is R(pi) on :data:`PREVALENCES`.
    """

    judge: str
    protocol: str
    k: int
    defense: str
    trials: int
    benign: int
    unmatched: int
    asr_none: Estimate
    easr: Estimate
    easr_worst_case: Estimate
    delta_asr: Estimate
    bur: Estimate
    bur_detection: Estimate
    bur_ratio: Estimate
    noise_floor: Estimate
    bdr: Estimate
    break_even: Estimate
    blocked_attacked: Estimate
    adaptive_minus_static: Estimate
    detector_unparsed: int
    modes: dict[str, Estimate] = field(default_factory=dict)
    families: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    languages: dict[str, Estimate] = field(default_factory=dict)
    costs: dict[str, float | None] = field(default_factory=dict)
    risk: tuple[float | None, ...] = ()
    risk_difference: tuple[Estimate, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for reports and JSON."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value.as_dict()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value


def tradeoffs(table: Any, settings: Settings | None = None, worth: Worth = "") -> tuple[Tradeoff, ...]:
    """Every defense of every (judge, protocol, K), the ``none`` row first; ``worth`` of a blocked honest text
    as the rows declare it, or one for all, as in :func:`~robustjudge.measures.matched.benign`.

    Raises :class:`NotComparable` where a defended judge has no no-defense rows at all.
    """
    settings = settings or Settings()
    out: list[Tradeoff] = []
    for judge in table.distinct("judge"):
        for protocol in table.distinct("protocol"):
            part = table.only(judge=judge, protocol=protocol)
            for k in np.unique(np.nan_to_num(part["k"])) if len(part) else ():
                rows = part.where(np.nan_to_num(part["k"]) == k)
                out += _panel(rows, judge, protocol, int(k), settings, worth)
    return tuple(out)


def tradeoff(table: Any, settings: Settings | None = None, worth: Worth = "") -> dict[str, Any]:
    """The plain structure that reports print: per panel the defenses, the risk curve's lower envelope, the Pareto front
    and the ranking at equal weighting."""
    rows = tradeoffs(table, settings, worth)
    panels = []
    for key in dict.fromkeys((t.judge, t.protocol, t.k) for t in rows):
        here = [t for t in rows if (t.judge, t.protocol, t.k) == key]
        panels.append(
            {
                "judge": key[0],
                "protocol": key[1],
                "k": key[2],
                "defenses": [t.as_dict() for t in here],
                "envelope": [{"prevalence": p, "defense": d, "risk": v} for p, d, v in envelope(here)],
                "pareto": list(pareto(here)),
                "ranking": [_plain(x.__dict__) for x in ranked(here)],
            }
        )
    said = ", ".join(sorted(set(worths(table.where(table["clean_status"].equals("blocked")), worth)))) or "reject"
    return {"blocked_worth": said, "prevalences": list(PREVALENCES), "modes": list(MODES), "panels": panels}


def _panel(rows: Any, judge: str, protocol: str, k: int, settings: Settings, worth: Worth) -> list[Tradeoff]:
    bare = rows.only(defense=NONE)
    names = [d for d in rows.distinct("defense") if d != NONE]
    if names and not len(bare):
        raise NotComparable(
            f"judge {judge} under {protocol} has the defenses {', '.join(names)} and no rows without defense:"
            " delta-ASR and break-even need them; add `none` to the plan's defenses"
        )
    if not len(bare):
        return []
    made = []
    for name in (NONE, *names):
        defended = bare if name == NONE else rows.only(defense=name)
        attacked, unmatched = trials(defended, bare, settings)
        made.append(_row((judge, protocol, k, name), defended, attacked, benign(defended, bare, worth), unmatched))
    return made


# --------------------------------------------------------------------------- one defense


def _row(name: tuple[str, str, int, str], t: Any, a: Trials, b: Benign, unmatched: int) -> Tradeoff:
    known = ~np.isnan(b.kept)
    none = name[3] == NONE
    easr = _rate(a.hit, a.clusters, "no attacked trial has its no-defense baseline")
    bur = _rate(b.kept[known], b.clusters[known], "no clean trial has a score on both sides")
    if none:  # by definition: nothing is withheld and nothing is changed
        bur = Estimate(1.0, 1.0, 1.0, bur.n, "by definition")
    accepted = _rate(b.accepted, b.clusters, "no clean trial")
    base = _rate(a.base, a.clusters, "no matched baseline")
    delta = _difference(a.base, a.hit, a.clusters)
    risks = Joint.of(a, b, none)
    row: dict[str, Any] = {
        "asr_none": base,
        "easr": easr,
        "easr_worst_case": _rate(a.worst, a.clusters, "no attacked trial"),
        "delta_asr": delta,
        "bur": bur,
        "bur_detection": accepted,
        "bur_ratio": _rate(b.ratio[~np.isnan(b.ratio)], b.clusters[~np.isnan(b.ratio)], "defined for scores only"),
        "noise_floor": _rate(b.noise[~np.isnan(b.noise)], b.clusters[~np.isnan(b.noise)], "no second clean replica"),
        "bdr": risks.risk(0.5, easr, bur),
        "break_even": even(delta, bur, none),
        "blocked_attacked": _rate(a.blocked, a.clusters, "no attacked trial"),
        "adaptive_minus_static": _by_mode(a),
    }
    return Tradeoff(
        *name,
        trials=len(a.hit),
        benign=int(known.sum()),
        unmatched=unmatched,
        **row,
        detector_unparsed=_unread(t),
        modes={m: _rate(a.hit[a.mode == i], a.clusters[a.mode == i], f"no {m} attack") for i, m in enumerate(MODES)},
        families=_families(a),
        languages=_languages(b),
        costs={"judge_calls": _mean(a.calls), "latency": _mean(a.latency), "tokens": _mean(a.tokens)},
        risk=tuple(_value(easr, bur, p) for p in PREVALENCES),
        risk_difference=() if none else tuple(risks.difference(p, delta, bur) for p in PREVALENCES),
    )


def _rate(x: Floats, clusters: Any, reason: str) -> Estimate:
    return cluster_bootstrap(x, clusters) if len(x) else Estimate.undefined(reason, low=0.0, high=1.0)


def _difference(first: Floats, second: Floats, clusters: Any) -> Estimate:
    if not len(first):
        return Estimate.undefined("no matched baseline", low=-1.0, high=1.0)
    return paired_bootstrap(first, second, clusters, bounds=UNIT)


def _mean(x: Floats) -> float | None:
    known = x[~np.isnan(x)]
    return float(known.mean()) if known.size else None


def _unread(t: Any) -> int:
    try:
        return int(of(t["reason"], lambda r: float(UNREAD in r)).sum())
    except KeyError:
        return 0


def _families(a: Trials) -> dict[str, dict[str, Estimate]]:
    out = {}
    for code, family in enumerate(a.family.values):
        rows = a.family.codes == code
        if rows.any():
            out[family] = {
                "easr": _rate(a.hit[rows], a.clusters[rows], ""),
                "delta_asr": _difference(a.base[rows], a.hit[rows], a.clusters[rows]),
            }
    return out


def _languages(b: Benign) -> dict[str, Estimate]:
    if b.language is None:
        return {}
    return {
        name: _rate(1.0 - b.accepted[b.language.codes == code], b.clusters[b.language.codes == code], "")
        for code, name in enumerate(b.language.values)
        if (b.language.codes == code).any()
    }


def _by_mode(a: Trials) -> Estimate:
    """ASR_adaptive - ASR_static, paired by case over the cases that have both."""
    size = int(a.cases.max()) + 1 if a.cases.size else 0
    cluster_of = np.zeros(size, dtype=np.int64)
    cluster_of[a.cases] = a.clusters
    sums, counts = [], []
    for i in (0, 2):
        rows = a.mode == i
        sums.append(np.bincount(a.cases[rows], a.hit[rows], size))
        counts.append(np.bincount(a.cases[rows], minlength=size))
    both = (counts[0] > 0) & (counts[1] > 0)
    if not both.any():
        return Estimate.undefined("no case has both a static and an adaptive attack", low=-1.0, high=1.0)
    static, adaptive = (s[both] / n[both] for s, n in zip(sums, counts, strict=True))
    return paired_bootstrap(adaptive, static, cluster_of[both], bounds=UNIT)


# --------------------------------------------------------------------------- risk


def _value(easr: Estimate, bur: Estimate, prevalence: float) -> float | None:
    if easr.value is None or bur.value is None:
        return None
    return paper.risk(prevalence, easr.value, bur.value)


def even(delta: Estimate, bur: Estimate, none: bool = False) -> Estimate:
    """The prevalence from which the defense beats none, with the interval that its two parts imply."""
    if none:
        return Estimate.undefined("this is the row it would be compared with")
    if delta.value is None or bur.value is None:
        return Estimate.undefined("no matched baseline or no benign trial")
    value = paper.break_even(delta.value, bur.value)
    if value is None:
        return Estimate.undefined("never: the defense does not lower attack success", n=delta.n)
    if delta.low is None or delta.high is None or bur.low is None or bur.high is None:
        return Estimate(value, None, None, delta.n, "break-even")
    low = paper.break_even(delta.high, bur.high)
    high = paper.break_even(delta.low, bur.low)
    return bounded(
        value, low or 0.0, 1.0 if high is None else high, delta.n, "break-even, ends from the parts' intervals"
    )


@dataclass(frozen=True)
class Joint:
    """Bootstrap replicas of attack success with and without the defense and of the utility lost: whole cases are
    resampled once, so that all three belong together."""

    hit: Floats
    base: Floats
    lost: Floats
    clusters: int

    @classmethod
    def of(cls, a: Trials, b: Benign, none: bool, draws: int = DRAWS, seed: int = 0) -> Joint:
        known = ~np.isnan(b.kept)
        groups = np.unique(np.concatenate((a.clusters, b.clusters[known])))
        at, bt = np.searchsorted(groups, a.clusters), np.searchsorted(groups, b.clusters[known])
        lost = np.zeros(int(known.sum())) if none else 1.0 - b.kept[known]
        g = len(groups)
        columns = [np.bincount(at, x, g) for x in (a.hit, a.base, np.ones(len(at)))]
        columns += [np.bincount(bt, x, g) for x in (lost, np.ones(len(bt)))]
        sums = np.stack(columns, axis=1).astype(np.float64)
        rng = np.random.default_rng(seed)
        found = []
        for start in range(0, draws if g > 1 else 0, CHUNK):
            found.append(rng.multinomial(g, np.full(g, 1.0 / g), size=min(CHUNK, draws - start)) @ sums)
        drawn = np.concatenate(found) if found else np.zeros((0, 5))
        drawn = drawn[(drawn[:, 2] > 0) & (drawn[:, 4] > 0)]
        return cls(drawn[:, 0] / drawn[:, 2], drawn[:, 1] / drawn[:, 2], drawn[:, 3] / drawn[:, 4], g)

    def risk(self, prevalence: float, easr: Estimate, bur: Estimate) -> Estimate:
        """R(pi) with its interval over clusters."""
        value = _value(easr, bur, prevalence)
        if value is None:
            return Estimate.undefined("attack success or utility is undefined", low=0.0, high=1.0)
        ends = (
            _mix(prevalence, easr.low, None if bur.high is None else 1 - bur.high),
            _mix(prevalence, easr.high, None if bur.low is None else 1 - bur.low),
        )
        return self._interval(value, prevalence * self.hit + (1 - prevalence) * self.lost, ends, (0.0, 1.0))

    def difference(self, prevalence: float, delta: Estimate, bur: Estimate) -> Estimate:
        """R(pi) minus R_none(pi) on the same cases; below 0 the defense is better."""
        if delta.value is None or bur.value is None:
            return Estimate.undefined("no matched baseline or no benign trial", low=-1.0, high=1.0)
        value = -prevalence * delta.value + (1 - prevalence) * (1 - bur.value)
        drawn = prevalence * (self.hit - self.base) + (1 - prevalence) * self.lost
        ends = (
            _mix(prevalence, None if delta.high is None else -delta.high, None if bur.high is None else 1 - bur.high),
            _mix(prevalence, None if delta.low is None else -delta.low, None if bur.low is None else 1 - bur.low),
        )
        return self._interval(value, drawn, ends, UNIT)

    def _interval(
        self, value: float, drawn: Floats, ends: tuple[float | None, float | None], span: tuple[float, float]
    ) -> Estimate:
        if drawn.size == 0 or float(np.ptp(drawn)) <= 1e-12:  # nothing varies: the parts' own intervals do not vanish
            low, high = (span[i] if ends[i] is None else ends[i] for i in (0, 1))
            return bounded(value, low or 0.0, high or 0.0, self.clusters, "from the parts' intervals", span=span)
        low, high = np.quantile(drawn, (0.025, 0.975))
        method = f"cluster bootstrap ({DRAWS} draws, {self.clusters} clusters)"
        return bounded(value, float(low), float(high), self.clusters, method, span=span)


def _mix(prevalence: float, first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else prevalence * first + (1 - prevalence) * second


# --------------------------------------------------------------------------- choosing


@dataclass(frozen=True)
class Ranked:
    """One place of a ranking: the risk at ``prevalence``, its paired difference to no defense, and what may be said."""

    defense: str
    prevalence: float
    risk: float | None
    difference: Estimate
    said: str


def ranked(rows: Iterable[Tradeoff], prevalence: float = 0.5) -> tuple[Ranked, ...]:
    """Defenses (or stacks) by risk at one prevalence of attackers, lowest first, ``none`` among them.

    ``better`` or ``worse`` than none is said only where the paired interval of the difference excludes zero.
    """
    at = PREVALENCES.index(round(prevalence * 20) / 20)
    out = []
    for t in rows:
        if t.defense == NONE:
            zero = Estimate(0.0, 0.0, 0.0, t.asr_none.n, "by definition")
            out.append(Ranked(NONE, PREVALENCES[at], t.risk[at], zero, "the baseline"))
            continue
        d = t.risk_difference[at]
        said = "undefined" if d.value is None else "no significant difference from none"
        if d.high is not None and d.value is not None and d.high < 0:
            said = "better than none"
        if d.low is not None and d.value is not None and d.low > 0:
            said = "worse than none"
        out.append(Ranked(t.defense, PREVALENCES[at], t.risk[at], d, said))
    return tuple(sorted(out, key=lambda x: (x.risk is None, x.risk or 0.0, x.defense != NONE, x.defense)))


def envelope(rows: Sequence[Tradeoff]) -> tuple[tuple[float, str, float], ...]:
    """(prevalence, defense of least risk, its risk) on :data:`PREVALENCES`; ``none`` wins ties."""
    out = []
    for i, p in enumerate(PREVALENCES):
        known = [(v, t.defense != NONE, t.defense) for t in rows if (v := t.risk[i]) is not None]
        if known:
            value, _, name = min(known)
            out.append((p, name, value))
    return tuple(out)


def pareto(rows: Sequence[Tradeoff]) -> tuple[str, ...]:
    """Defenses that no other beats or equals in attack success, utility *and* extra judge calls with one of them better."""
    points = {
        t.defense: (t.easr.value, 1 - t.bur.value, t.costs.get("judge_calls") or 0.0)
        for t in rows
        if t.easr.value is not None and t.bur.value is not None
    }
    return tuple(
        name
        for name, mine in points.items()
        if not any(
            all(x <= y + 1e-12 for x, y in zip(other, mine, strict=True))
            and any(x < y - 1e-12 for x, y in zip(other, mine, strict=True))
            for other in points.values()
        )
    )
