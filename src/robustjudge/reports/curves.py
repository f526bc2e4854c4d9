"""What attacks used: budget curves of the trials that observed the judge, and the cost of fitting universal attacks."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from robustjudge.measures.budget import budget_curve, first_success
from robustjudge.measures.grid import Panel
from robustjudge.measures.views import SCORED, Settings
from robustjudge.plan import artefact_name
from robustjudge.table import Table
from robustjudge.threat import slug

Key = tuple[str, str, str, int, str]

_SQL = (
    "SELECT judge, defense, protocol, k, threat, attack, queries + losses, access, clean_unit, scale_low, scale_high,"
    " json_extract(detail, '$.curve') FROM trials WHERE queries + losses > 0 AND attack_status IN ('ok', 'exhausted')"
    " AND COALESCE(of, '') = ''"
)


def curves(table: Table, db: sqlite3.Connection, settings: Settings) -> dict[Key, dict[str, Any]]:
    """For each panel, the curve of each attack that spent queries or losses (a control made of an attack runs its search
    anew and has none of its own).  The goal is the declared rise (pointwise), or every order won; for label
    probabilities a win that is likelier than not, on the mean of the orders."""
    if not np.nansum(table["queries"]) and not np.nansum(table["losses"]):
        return {}
    reached: dict[Key, dict[str, list[int | None]]] = defaultdict(lambda: defaultdict(list))
    most: dict[tuple[Key, str], int] = defaultdict(int)
    for judge, defense, protocol, k, threat, attack, used, access, unit, low, high, curve in db.execute(_SQL):
        goal = 1.0 if access in ("VERDICT", "SCORE") else 0.5
        if protocol in SCORED:
            if unit is None or low is None or high is None or high <= low:
                continue
            goal = unit + settings.tau / (high - low)
            if goal > 1 + 1e-9:
                continue  # not attackable: the clean score is at the top already
        key = (judge, defense, protocol, int(k), threat)
        reached[key][attack].append(first_success(json.loads(curve), goal))
        most[key, attack] = max(most[key, attack], int(used))
    return {
        key: {name: budget_curve(found, most[key, name]).as_dict() for name, found in sorted(by.items())}
        for key, by in sorted(reached.items())
    }


def fitted(run: Path, panel: Panel) -> dict[str, dict[str, Any]]:
    """What fitting each universal attack of a panel used, once for all cases, by the artefacts of the run; ``each`` is
    its queries and losses per trial that it was deployed in."""
    out = {}
    for line in panel.lines:
        key = f"{panel.judge}/{panel.defense}/{panel.protocol}/{line.attack}"
        files = [run / "artefacts" / artefact_name(k) for k in (f"{key}/{slug(panel.threat)}", key)]
        file = next((f for f in files if f.is_file()), None)
        kept = json.loads(file.read_text("utf-8")) if file else {}
        if "train" in kept:
            spent = {k: int(n) for k, n in kept["spent"].items()}
            each = (spent["queries"] + spent["losses"]) / max(line.planned, 1)
            out[line.attack] = {"access": "ODDS", "cases": len(kept["train"]), "each": each, **spent}
    return out
