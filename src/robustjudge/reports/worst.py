"""The ten worst cases: the trials that moved their verdict most, with every text behind them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from robustjudge.measures.views import scored
from robustjudge.reports.texts import changed, cut, shown
from robustjudge.table import Table, content, details

COUNT = 10
_GRAVITY = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def gains(table: Table) -> Any:
    """How far each trial moved its verdict towards the author, in [-1, 1]; NaN where either verdict is not ok, and for
    controls."""
    gain = table["attacked_unit"] - table["clean_unit"]
    choice = ~scored(table)
    gain = np.where(choice, _won(table["attacked_outcomes"]) - _won(table["clean_outcomes"]), gain)
    control = ~table["control"].equals("") & (table["control"].codes >= 0)
    return np.where(control, np.nan, gain)


def _won(column: Any) -> Any:
    share = [o.count("W") / len(o) if o and set(o) <= set("WLT") else np.nan for o in column.values]
    return np.array([*share, np.nan])[column.codes]


def picked(table: Table, count: int = COUNT) -> list[int]:
    """Row numbers of the worst trials, gravest first: by gain, severity, then row; at most one per (judge, defense,
    protocol, attack) as long as there are others."""
    gain = gains(table)
    rows = np.flatnonzero(np.nan_to_num(gain, nan=-1.0) > 1e-9)
    if not rows.size:
        return []
    gravity = np.array([*[_GRAVITY.get(v, 9) for v in table["severity"].values], 9])[table["severity"].codes[rows]]
    order = rows[np.lexsort((rows, gravity, -np.round(gain[rows], 9)))]
    keys = ("judge", "defense", "protocol", "attack")
    group = np.stack([table[k].codes[order] for k in keys], axis=1)
    _, first = np.unique(group, axis=0, return_index=True)
    leading = np.zeros(order.size, dtype=bool)
    leading[first] = True
    chosen = [*order[leading][:count], *order[~leading][: max(0, count - int(leading.sum()))]]
    return [int(i) for i in chosen[:count]]


def worst(table: Table, db: sqlite3.Connection, redact: bool = False, count: int = COUNT) -> list[dict[str, Any]]:
    """The worst trials with their texts.  ``table`` must hold all rows of ``db`` in the order of their keys."""
    gain = gains(table)
    rows = picked(table, count)
    cells = [db.execute("SELECT cell FROM trials ORDER BY cell LIMIT 1 OFFSET ?", (i,)).fetchone()[0] for i in rows]
    found = details(db, cells)
    return [_one(table, i, cell, float(gain[i]), found[cell], db, redact) for i, cell in zip(rows, cells, strict=True)]


def _one(
    table: Table, i: int, cell: str, gain: float, detail: dict[str, Any], db: sqlite3.Connection, redact: bool
) -> dict[str, Any]:
    names = ("case_id", "task", "language", "judge", "defense", "protocol", "attack", "family", "category", "severity")
    weak = content(db, detail.get("response"))
    (hashed,) = db.execute("SELECT text_hash FROM trials WHERE cell = ?", (cell,)).fetchone()
    attacked = content(db, hashed)
    parts = None
    if weak is not None and attacked is not None and not redact:
        parts = cut(changed(weak, attacked))
    references: Sequence[str] = detail.get("references", ())
    return {
        "cell": cell,
        **{n: table[n][i] or "" for n in names},
        "gain": round(gain, 6),
        "clean_score": _number(table["clean_score"][i]),
        "attacked_score": _number(table["attacked_score"][i]),
        "clean_outcomes": table["clean_outcomes"][i] or "",
        "attacked_outcomes": table["attacked_outcomes"][i] or "",
        "quality_clean": _number(table["quality_clean"][i]),
        "quality_attacked": _number(table["quality_attacked"][i]),
        "task_text": shown(content(db, detail.get("task"))),
        "weak": shown(weak),
        "attacked": shown(attacked, redact),
        "parts": parts,
        "reference": shown(content(db, references[0])) if references else None,
        "verdicts": [_verdict(s, db, redact) for s in detail["shown"] if _told(s)],
    }


def _told(s: dict[str, Any]) -> bool:
    """The first replica of each arm is enough to understand a case."""
    return s["arm"] != "clean" or str(s["replica"]).endswith("/0")


def _picked(choice: int, arm: str) -> str:
    """The candidate behind a choice; the first is the author's text, which the clean arm shows unattacked."""
    if choice > 1:
        return f"distractor {choice - 1}"
    return {0: "weak text" if arm == "clean" else "attacked text", 1: "reference", -1: "tie"}[choice]


def _verdict(s: dict[str, Any], db: sqlite3.Connection, redact: bool) -> dict[str, Any]:
    value = s.get("score", s.get("label", s.get("choice")))
    attacked = redact and s["arm"] != "clean"
    return {
        "arm": s["arm"],
        "order": s["order"],
        "replica": s["replica"],
        "status": s["status"],
        "value": value,
        "choice": _picked(s["choice"], s["arm"]) if "choice" in s else "",
        "fooled": bool(s.get("fooled", False)),
        "reason": s.get("reason", ""),
        "rationale": shown(content(db, s["rationale"]), attacked),
        "calls": [
            {
                "model": c["resolved"] or c["model"],
                "role": c["role"],
                "status": c["status"],
                "input": shown(content(db, c["prompt"]), attacked),
                "reply": shown(content(db, c["reply"]), redact),
            }
            for c in s["calls"]
        ],
    }


def _number(x: float) -> float | None:
    return None if x != x else float(x)
