"""A shape: one table of a run beside the paper's, as plain cells; and how two orderings are said to agree."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import combinations
from typing import Any

import numpy as np

from robustjudge.measures.base import Floats
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.grid import Panel, panels
from robustjudge.measures.views import Settings, choices, of, scores
from robustjudge.nouns import Estimate
from robustjudge.reports import origin
from robustjudge.reports.words import percent

NOT_PRINTED = "not printed in the paper"
ENOUGH = 0.8
"""Share of verdicts that must be read before an ordering is compared."""


@dataclass(frozen=True)
class Shape:
    """One table: title, heads, rows of plain text, notes, statements about agreement, and a drawing's curves.

    Cells are text and not markup: names in them come from outside.
    """

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    agreements: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class Curve:
    """A line of a drawing: points (x, value, low, high); ``dashed`` for a reference line without interval.

    Curves of one ``panel`` (a judge) are drawn together.
    """

    panel: str
    label: str
    points: tuple[tuple[float, float, float, float], ...]
    dashed: bool = False


@dataclass(frozen=True)
class Judge:
    """A judge of the run: the name its rows carry, its model and the template of its prompt."""

    name: str
    model: str
    template: str

    @property
    def label(self) -> str:
        """The user's name for it, without the template that a suite crossed it with."""
        return self.name.removesuffix(f" / {self.template}") if self.template else self.name


@dataclass(frozen=True)
class Source:
    """What shapes are made of: the table, the manifest, and the details of the long-suffix trials."""

    table: Any
    manifest: Mapping[str, Any]
    suffixes: tuple[Mapping[str, Any], ...] = ()
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        return panels(self.table, self.settings)

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """The judges in the order of the manifest."""
        known = {j["name"]: j for j in origin.judges(self.manifest)}
        there = set(self.table.distinct("judge"))
        out = []
        for name in (*self.manifest.get("judges", {}), *sorted(there - set(self.manifest.get("judges", {})))):
            if name in there:
                told = known.get(name, {"models": [], "template": ""})
                out.append(Judge(name, told["models"][0]["name"] if told["models"] else name, told["template"]))
        return tuple(out)

    def rows(self, protocol: str = "", task: str = "", judge: str = "", defense: str = "none") -> Any:
        """The rows of one protocol, task, judge and defense (empty: all)."""
        t = self.table
        mask = np.ones(len(t), dtype=bool)
        for name, value in (("protocol", protocol), ("task", task), ("judge", judge), ("defense", defense)):
            if value:
                mask &= t[name].equals(value)
        return t.where(mask)

    def narrowed(self, task: str) -> Source:
        """Only the rows of one task, where the run has any; else everything."""
        t = self.rows(task=task, defense="")
        return self if not len(t) else Source(t, self.manifest, self.suffixes, self.settings)

    def panel(self, judge: str, protocol: str, defense: str = "none", k: int | None = None) -> Panel | None:
        """The panel of the plain threat model."""
        return next(
            (
                p
                for p in self.panels
                if (p.judge, p.protocol, p.defense) == (judge, protocol, defense) and (k is None or p.k == k)
            ),
            None,
        )


@cache
def published() -> dict[str, Any]:
    """The figures that the paper prints."""
    return tomllib.loads(files("robustjudge.suites").joinpath("published.toml").read_text("utf-8"))


# --------------------------------------------------------------------------- pooled figures


def attacks_of(t: Any) -> list[str]:
    """The attacks of some rows by id, in the order of their names; no controls."""
    plain = t.where(t["control"].equals("") | (t["control"].codes < 0))
    return list(plain.distinct("attack"))


def published_rate(t: Any, settings: Settings, wanted: Sequence[str] | None = None) -> Estimate:
    """The published success rate (P-ASR, ASR or ASR@1) pooled over attacks; cases keep their orders and attacks."""
    mask = t["control"].equals("") | (t["control"].codes < 0)
    if wanted is not None:
        picked = np.zeros(len(t), dtype=bool)
        for name in wanted:
            picked |= t["attack"].equals(name)
        mask &= picked
    rows = t.where(mask)
    if not len(rows):
        return Estimate.undefined("not run", low=0.0, high=1.0)
    view = scores(rows, settings) if rows["protocol"].equals("pointwise").all() else choices(rows)
    return cluster_bootstrap(view.published, view.clusters)


def read_rate(t: Any) -> Estimate:
    """Share of verdicts, clean and attacked, that were read; one clean arm per case."""
    if not len(t):
        return Estimate.undefined("not run", low=0.0, high=1.0)
    if t["protocol"].equals("pointwise").all():
        ok = t["attacked_status"].equals("ok").astype(float) + t["clean_status"].equals("ok").astype(float)
        return cluster_bootstrap(ok, t["cluster"].codes, weights=np.full(len(t), 2.0))

    def count(name: str, which: str) -> Floats:
        return of(t[name], lambda o: sum(x in which for x in o))

    hit = count("attacked_outcomes", "WLT") + count("clean_outcomes", "WLT")
    size = count("attacked_outcomes", "WLTurtbe") + count("clean_outcomes", "WLTurtbe")
    return cluster_bootstrap(hit, t["cluster"].codes, weights=size)


def counted(t: Any) -> dict[str, int]:
    """Verdicts by outcome letter (``S`` for a score): every attacked one, and the clean ones once per case and judge."""
    if not len(t):
        return {}
    pairs = t["case_id"].codes.astype(np.int64) * (len(t["judge"].values) + 1) + t["judge"].codes
    _, first = np.unique(pairs, return_index=True)
    clean = t.where(np.isin(np.arange(len(t)), first))
    out = dict.fromkeys("WLTSurtbe", 0)
    if t["protocol"].equals("pointwise").all():
        names = {"ok": "S", "unparsed": "u", "refused": "r", "truncated": "t", "blocked": "b", "error": "e"}
        for status, x in names.items():
            out[x] = int(t["attacked_status"].equals(status).sum() + clean["clean_status"].equals(status).sum())
        return out
    for part, name in ((t, "attacked_outcomes"), (clean, "clean_outcomes")):
        for x in out:
            out[x] += int(of(part[name], lambda o, x=x: o.count(x)).sum())  # type: ignore[misc]
    return out


def truncated(t: Any) -> int:
    """Verdicts that were cut at the token limit."""
    return counted(t).get("t", 0)


# --------------------------------------------------------------------------- words


def cell(e: Estimate | None, unit: str = "%") -> str:
    """``41 % (29 to 54 %, n = 12)``; the reason where there is no value."""
    if e is None:
        return "not run"
    if e.value is None:
        return f"undefined ({e.reason or 'no reason'})"
    if unit == "%":
        between = "" if e.low is None or e.high is None else f"{percent(e.low)} to {percent(e.high)} %, "
        return f"{percent(e.value)} % ({between}n = {e.n})"
    if unit == "points":
        between = "" if e.low is None or e.high is None else f"{100 * e.low:+.0f} to {100 * e.high:+.0f}, "
        return f"{100 * e.value:+.0f} points ({between}n = {e.n})"
    between = "" if e.low is None or e.high is None else f"{_hundredths(e.low)} to {_hundredths(e.high)}, "
    return f"{_hundredths(e.value)} ({between}n = {e.n})"


def _hundredths(x: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{round(x, 2) + 0.0:.2f}"


def agreement(ours: Mapping[str, Estimate], theirs: Mapping[str, float], doubt: str = "") -> str:
    """How our ordering and the printed one relate: *agrees in order*, *differs in order*, or *not comparable* and why.

    Where no two intervals are apart, our order is chance as far as anybody can tell, and is not compared.
    """
    if doubt:
        return f"not comparable: {doubt}"
    known = {k: e for k, e in ours.items() if e.value is not None and k in theirs}
    if len(known) < 2:
        return "not comparable: fewer than two figures of ours have a printed one beside them"
    pairs = [(a, b) for a, b in combinations(known, 2) if theirs[a] != theirs[b]]
    told = [p for p in pairs if _sign(known[p[0]], known[p[1]])]
    if not told:
        return "not comparable: our figures are all equal"
    same = sum(_sign(known[a], known[b]) == np.sign(theirs[a] - theirs[b]) for a, b in told)
    apart = sum(_apart(known[a], known[b]) for a, b in told)
    tied = f", {len(pairs) - len(told)} pairs of ours are equal" if len(told) < len(pairs) else ""
    order = f"{same} of {len(told)} pairs in the printed order"
    if not apart:
        return f"not comparable: no two of our figures have their intervals apart ({order}{tied})"
    counts = f"{order}, {apart} of ours with intervals apart{tied}"
    return f"{'agrees' if same == len(told) else 'differs'} in order ({counts})"


def sign(ours: Estimate | None, positive: bool, doubt: str = "") -> str:
    """Whether a figure has the printed sign; an interval that holds 0 settles nothing."""
    if doubt or ours is None or ours.value is None:
        return f"not comparable: {doubt or (ours.reason if ours else 'not run')}"
    settled = (
        "" if ours.low is None or ours.high is None or not ours.low <= 0 <= ours.high else " (its interval holds 0)"
    )
    return f"{'agrees' if (ours.value > 0) == positive else 'differs'} in sign{settled}"


def _sign(a: Estimate, b: Estimate) -> float:
    return float(np.sign((a.value or 0.0) - (b.value or 0.0)))


def _apart(a: Estimate, b: Estimate) -> bool:
    if None in (a.low, a.high, b.low, b.high):
        return False
    return bool(a.high < b.low or b.high < a.low)  # type: ignore[operator]


def doubt(t: Any, panel: Panel | None) -> str:
    """Why no ordering of this judge should be compared: it is hardly read, or cannot tell good from weak when clean."""
    read = read_rate(t)
    if read.value is None or read.value < ENOUGH:
        share = "nothing" if read.value is None else f"only {percent(read.value)} % of the verdicts"
        return f"{share} could be read"
    right = panel.clean.get("clean_accuracy") if panel else None
    if right is not None and right.value is not None and right.value < 0.5:
        return f"the clean judge prefers the reference in both orders for only {percent(right.value)} % of the cases"
    return ""
