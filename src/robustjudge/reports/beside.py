"""Side by side: each attack under every threat model, and an appeal turn by turn next to repeating and resubmitting."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from math import nan
from typing import Any

from robustjudge.measures.grid import Line, Panel
from robustjudge.measures.robustness import headline, threshold_success
from robustjudge.measures.views import Settings
from robustjudge.nouns import Estimate
from robustjudge.protocols import Appeal
from robustjudge.reports import words

_SQL = (
    "SELECT attack, control, cluster, clean_score, clean_unit, json_extract(detail, '$.shown') FROM trials"
    " WHERE judge = ? AND defense = ? AND threat = ? AND protocol = ? AND k = ? AND attack_status IN ('ok', 'exhausted')"
    " ORDER BY attack, cell"
)


def beside(panels: Sequence[Panel], db: sqlite3.Connection, settings: Settings) -> list[dict[str, Any]]:
    """The tables of attack success: one per judge and protocol that several threat models were run on, and one per
    judge that was appealed to.  ``cells`` stand under ``columns``, null where nothing was measured."""
    alike: dict[tuple[str, str, str, int], list[Panel]] = defaultdict(list)
    for p in panels:
        alike[p.judge, p.defense, p.protocol, p.k].append(p)
    out = [_threats(found) for found in alike.values() if len(found) > 1]
    longest: dict[tuple[str, str, str], Panel] = {}
    for p in panels:
        if p.protocol == Appeal.label:
            key = (p.judge, p.defense, p.threat)
            longest[key] = max(p, longest.get(key, p), key=lambda x: x.k)
    return out + [_turns(p, panels, db, settings) for p in longest.values()]


def _threats(panels: Sequence[Panel]) -> dict[str, Any]:
    """Attacks x threat models; an attack that asks nothing of a judge has one figure."""
    plain = sorted(panels, key=lambda p: (p.threat != "victim", p.threat))
    names = {x.attack: x for p in plain for x in p.lines}
    lines = [_told(x, [_asr(p.line(x.attack)) for p in plain]) for x in _ordered(names.values())]
    columns = [words.threat_words(p.threat) or PLAIN for p in plain]
    first = plain[0]
    title = f"{words.shielded(first.judge, first.defense)}, {words.protocol_words(first.protocol, first.k)}"
    return _table("threat", first, f"{title}: success by threat model", columns, lines)


PLAIN = "tuned on this very judge, or on none"


def _turns(p: Panel, panels: Sequence[Panel], db: sqlite3.Connection, s: Settings) -> dict[str, Any]:
    """Pleas x turns, and beside them what submitting again reaches (pointwise, no conversation)."""
    rows: dict[str, list[tuple[str, float, float, list[float]]]] = defaultdict(list)
    for attack, _, cluster, clean, unit, shown in db.execute(_SQL, (p.judge, p.defense, p.threat, Appeal.label, p.k)):
        if clean is not None and unit is not None:
            rows[attack].append((cluster, clean, unit, _scores(json.loads(shown or "[]"), p.k)))
    lines = []
    for x in _ordered(p.lines):
        found = rows[x.attack]
        able = [unit < 1 - 1e-9 for _, _, unit, _ in found]
        cells: list[Estimate | None] = []
        for turn in range(p.k + 1):
            hit = threshold_success([f[1] for f in found], [f[3][turn] for f in found], [nan] * len(found), s.tau)
            cells.append(headline(hit, able, [f[0] for f in found]))
        lines.append(_told(x, cells))
    columns = ["first verdict", *(f"after plea {i + 1}" for i in range(p.k))]
    plain = [
        q for q in panels if (q.judge, q.defense, q.threat, q.protocol) == (p.judge, p.defense, p.threat, "pointwise")
    ]
    again = [x for q in plain for x in _ordered(q.lines) if x.attack_id == "Resubmit"]
    if again:
        lines = [{**x, "cells": [*x["cells"], None]} for x in lines]
        lines += [_told(x, [*[None] * len(columns), _asr(x)]) for x in again]
        columns.append("resubmitted, no conversation")
    title = ", ".join(filter(None, [words.shielded(p.judge, p.defense), words.threat_words(p.threat)]))
    return _table("turn", p, f"{title}: success turn by turn", columns, lines)


def _scores(shown: Sequence[dict[str, Any]], turns: int) -> list[float]:
    """The score after each turn, NaN where it could not be read; an author who stops keeps the last one."""
    said = {int(s["order"]): s.get("score") for s in shown if s["arm"] != "clean"}
    out = [nan]
    for turn in range(turns + 1):
        score = said.get(turn, out[-1])
        out.append(nan if score is None else float(score))
    return out[1:]


def _ordered(lines: Any) -> list[Line]:
    return sorted(lines, key=lambda x: (bool(x.control), x.attack_id, x.attack))


def _asr(x: Line | None) -> Estimate | None:
    return None if x is None else x.figures.get("asr")


def _told(x: Line, cells: Sequence[Estimate | None]) -> dict[str, Any]:
    return {"attack": x.attack, "control": x.control, "cells": [None if e is None else e.as_dict() for e in cells]}


def _table(by: str, p: Panel, title: str, columns: list[str], lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {"by": by, "judge": p.judge, "defense": p.defense, "title": title, "columns": columns, "lines": lines}
