"""What each defense of a run buys and costs, for the reports: empty where the run compares none."""

from __future__ import annotations

from typing import Any

from robustjudge.measures.tradeoff import tradeoff
from robustjudge.measures.views import Settings
from robustjudge.table import Table

COLUMNS = ("easr", "delta_asr", "bur", "bur_detection", "bdr", "break_even", "adaptive_minus_static")


def shields(table: Table, settings: Settings) -> dict[str, Any]:
    """The trade-off of every panel that has a defense, the no-defense row first; ``said`` is the paired comparison with
    it at equal weighting."""
    names = [n for n in table.distinct("defense") if n != "none"]
    if not names or "none" not in table.distinct("defense"):
        return {}
    found = tradeoff(table, settings)
    for p in found["panels"]:
        said = {x["defense"]: x["said"] for x in p["ranking"]}
        for d in p["defenses"]:
            d["said"] = said[d["defense"]]
    found["panels"] = [p for p in found["panels"] if len(p["defenses"]) > 1]
    return found


def plot(panel: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """Points (defense, utility lost, residual attack success, on the Pareto front) of one panel."""
    return [
        (d["defense"], 1.0 - d["bur"]["value"], d["easr"]["value"], d["defense"] in panel["pareto"])
        for d in panel["defenses"]
        if d["bur"]["value"] is not None and d["easr"]["value"] is not None
    ]
