"""What the figures need of a table's rows, as arrays: success, attackable, published success, and cases by attack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustjudge.measures import paper, robustness as r
from robustjudge.measures.base import Floats

NULL = "identity"

SCORED = ("pointwise", "appeal")
"""Protocols whose verdict is a score of one candidate; in the others a candidate is chosen."""


@dataclass(frozen=True)
class Settings:
    """Thresholds that are declared, never fitted: ``tau`` scale points of rise that count (default 1), ``eps`` content
    gain that is tolerated, ``pass_mark`` in [0, 1] of the scale's range for the decision flip rate."""

    tau: float = 1.0
    eps: float = 0.02
    pass_mark: float = 0.5


def scored(t: Any) -> Any:
    """A boolean array: rows whose verdict is a score of one candidate."""
    found = t["protocol"].equals(SCORED[0])
    for name in SCORED[1:]:
        found = found | t["protocol"].equals(name)
    return found


@dataclass(frozen=True)
class View:
    """What the figures need of some rows, as arrays."""

    clusters: Any
    cases: Any
    success: Floats  # corrected success in [0, 1]; NaN where the attacked verdict is not ok
    attackable: Any
    published: Floats  # success as the paper counts it; no NaN


def scores(t: Any, s: Settings) -> View:
    clean, attacked, unit = t["clean_score"], t["attacked_score"], t["clean_unit"]
    m = paper.movement(clean, attacked, t["quality_clean"], t["quality_attacked"])
    success = r.threshold_success(clean, attacked, np.where(m.dq_known, m.dq, np.nan), s.tau, s.eps)
    attackable = ~np.isnan(clean) & (np.nan_to_num(unit, nan=1.0) < 1 - 1e-9) & attacked_rows(t)
    return View(t["cluster"].codes, t["case_id"].codes, success, attackable, paper.paper_success(m))


def attacked_rows(t: Any) -> Any:
    """Trials whose attack gave a text: no_candidate and error are a success in no view and no fault of the judge."""
    return t["attack_status"].equals("ok") | t["attack_status"].equals("exhausted")


def _letters(clean: str, attacked: str) -> tuple[float, bool, float]:
    """Corrected success (share of orders won, NaN when one has no verdict), attackable, published success."""
    if not attacked:
        return float("nan"), False, 0.0
    read = all(x in "WLT" for x in attacked)
    won = sum(x == "W" for x in attacked) / len(attacked)
    base = bool(clean) and all(x in "WLT" for x in clean) and set(clean) != {"W"}
    published = sum(x not in paper.LOST for x in attacked) / len(attacked)
    return (won if read else float("nan")), base, published


def texts(t: Any, name: str) -> list[str]:
    col = t[name]
    lookup = [*col.values, ""]
    return [lookup[c] for c in col.codes]


def of(col: Any, f: Callable[[str], float]) -> Floats:
    """``f`` of each row's text (missing is the empty text), computed once per distinct text."""
    values: Floats = np.array([*(f(v) for v in col.values), f("")], dtype=np.float64)
    return np.asarray(values[col.codes])


def choices(t: Any) -> View:
    before, after = t["clean_outcomes"], t["attacked_outcomes"]
    width = len(after.values) + 1
    pair = (before.codes.astype(np.int64) + 1) * width + after.codes + 1
    found, inverse = np.unique(pair, return_inverse=True)
    names = [("", *before.values)[p // width] for p in found], [("", *after.values)[p % width] for p in found]
    letters = np.array([_letters(a, b) for a, b in zip(*names, strict=True)], dtype=np.float64).reshape(-1, 3)
    success, able, published = letters[inverse.reshape(-1)].T
    attacked = attacked_rows(t)
    return View(
        t["cluster"].codes,
        t["case_id"].codes,
        success,
        (able > 0) & attacked,
        np.where(attacked, published, 0.0),
    )


def by_case(view: View, rows: Any) -> Floats:
    """Corrected success of each case among ``rows`` (mean over seeds); NaN where none is attackable and read."""
    size = int(view.cases.max()) + 1 if view.cases.size else 0
    mask = rows & view.attackable & ~np.isnan(view.success)
    n = np.bincount(view.cases[mask], minlength=size)
    hit = np.bincount(view.cases[mask], view.success[mask], size)
    return np.where(n > 0, hit / np.maximum(n, 1), np.nan)


def matrix(view: View, attacks: dict[tuple[str, str], Any]) -> tuple[list[str], Floats, Any]:
    """Instances x attacks of corrected success (mean over seeds), controls left out; rows are cases."""
    names = [name for (name, control) in attacks if not control]
    size = int(view.cases.max()) + 1 if view.cases.size else 0
    table = np.full((size, len(names)), np.nan)
    for j, name in enumerate(names):
        table[:, j] = by_case(view, attacks[(name, "")])
    cluster_of = np.zeros(size, dtype=np.int64)
    cluster_of[view.cases] = view.clusters
    return names, table, cluster_of
