"""One panel of the report: its lines, denominators, heat map, shift distribution, and true rates where known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robustjudge.measures.grid import Line, Panel
from robustjudge.measures.views import SCORED
from robustjudge.nouns import STATUSES, Estimate
from robustjudge.reports import words
from robustjudge.table import Table

BINS = 21
CLAIM = 0.95
"""An attack is called strongest only from this bootstrap probability on."""


def panel_dict(p: Panel, table: Table, flags: list[dict[str, Any]], truth: Mapping[str, Any]) -> dict[str, Any]:
    """A panel as report.json holds it."""
    known = truth.get(p.protocol, {})
    return {
        "judge": p.judge,
        "defense": p.defense,
        "protocol": p.protocol,
        "k": p.k,
        "threat": p.threat,
        "planned": p.planned,
        "cases": p.cases,
        "tasks": sorted(p.tasks),
        "scale": list(p.scale) if p.scale else None,
        "paper_reason": p.paper_reason or None,
        "evaluators": sorted(e for e in p.evaluators if e),
        "flags": [dict(f) for f in flags],
        "clean": _estimates(p.clean),
        "clean_statuses": {s: p.clean_statuses.get(s, 0) for s in STATUSES},
        "worst": _estimates(p.worst),
        "strongest": _strongest(p),
        "lines": [_line(x, known) for x in p.lines],
        "shifts": shifts(p, table) if p.protocol in SCORED else None,
        "truth_figure": words.TRUTH.get(p.protocol, "asr") if known else None,
        "budget": {},
    }


def _estimates(found: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: e.as_dict() for name, e in sorted(found.items())}


def _strongest(p: Panel) -> dict[str, Any] | None:
    """The attack that ranks first most often; ``said`` is whether a report may call it the strongest."""
    if p.strongest is None:
        return None
    name, share = p.strongest
    return {"attack": name, "probability": round(share, 6), "said": bool(share >= CLAIM)}


def _line(x: Line, truth: Mapping[str, Any]) -> dict[str, Any]:
    asked = sum(x.statuses.values())
    rate = truth.get(x.attack, truth.get(x.attack_id))
    return {
        "attack": x.attack,
        "attack_id": x.attack_id,
        "family": x.family,
        "category": x.category,
        "severity": x.severity,
        "access": x.access,
        "control": x.control,
        "of": x.of,
        "counts": {
            "planned": x.planned,
            "asked": asked,
            "attackable": x.attackable,
            "cases": x.cases,
            **{s: x.statuses.get(s, 0) for s in STATUSES},
            "no_candidate": x.attack_statuses.get("no_candidate", 0),
            "attack_error": x.attack_statuses.get("error", 0),
            "exhausted": x.attack_statuses.get("exhausted", 0),
            "quality_unknown": x.quality_unknown,
            "coverage": x.statuses.get("ok", 0) / x.planned if x.planned else None,
        },
        "seeds": x.seeds,
        "figures": _estimates(x.figures),
        "p": x.p,
        "p_holm": x.p_holm,
        "p_bh": x.p_bh,
        "by_task": {task: _estimates(found) for task, found in sorted(x.by_task.items())},
        "notes": dict(sorted(x.notes.items())),
        "spent": x.spent,
        "truth": float(rate) if isinstance(rate, (int, float)) and not isinstance(rate, bool) else None,
    }


def shifts(p: Panel, table: Table) -> dict[str, Any] | None:
    """Histogram of attacked minus clean score over all attacks, and of the identity control beside it, in scale points;
    each bin is a share of its own group."""
    if p.scale is None:
        return None
    span = p.scale[1] - p.scale[0]
    t = table.only(judge=p.judge, defense=p.defense, protocol=p.protocol, threat=p.threat)
    moved = (t["attacked_unit"] - t["clean_unit"]) * span
    control = t["control"]
    groups = {"attacks": control.equals("") | (control.codes < 0), "identity": control.equals("identity")}
    whole = float(span).is_integer() and span <= 20
    edges = np.arange(-span - 0.5, span + 1) if whole else np.linspace(-span, span, BINS + 1)
    out: dict[str, Any] = {"centres": [float(x) for x in (edges[:-1] + edges[1:]) / 2]}
    for name, mask in groups.items():
        seen = moved[mask & ~np.isnan(moved)]
        counts: Sequence[int] = np.histogram(np.clip(seen, edges[0], edges[-1]), bins=edges)[0].tolist()
        out[name] = {"n": int(seen.size), "counts": [int(c) for c in counts]}
    return out
