"""What each defense of a run buys and costs, for the reports: empty where the run compares none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from robustjudge.defenses.threshold import Threshold
from robustjudge.measures.tradeoff import tradeoff
from robustjudge.measures.views import Settings
from robustjudge.spec import load
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


def detectors(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calibrated thresholds that the run's defenses used, with the hash of each frozen artefact."""
    out = []
    for name, given in sorted(manifest.get("defenses", {}).items()):
        for detector in _thresholded(given):
            frozen: Threshold = load(detector["tau"])
            low, high = frozen.spread()
            out.append(
                {
                    "defense": name,
                    "detector": frozen.detector,
                    "model": frozen.model,
                    "hash": frozen.hash,
                    "alpha": frozen.alpha,
                    "threshold": frozen.value,
                    "languages": list(frozen.languages),
                    "calibration_texts": frozen.n,
                    "calibration_hard_benign_texts": frozen.hard_n,
                    "expected_false_positive_rate_95": [low, high],
                    "warnings": list(frozen.warnings()),
                }
            )
    return out


def _thresholded(spec: Any) -> Iterator[Mapping[str, Any]]:
    """Every dumped defense with a calibrated threshold."""
    if isinstance(spec, Mapping):
        if isinstance(spec.get("tau"), Mapping):
            yield spec
        for value in spec.values():
            yield from _thresholded(value)
    elif isinstance(spec, list):
        for part in spec:
            yield from _thresholded(part)


def plot(panel: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """Points (defense, utility lost, residual attack success, on the Pareto front) of one panel."""
    return [
        (d["defense"], 1.0 - d["bur"]["value"], d["easr"]["value"], d["defense"] in panel["pareto"])
        for d in panel["defenses"]
        if d["bur"]["value"] is not None and d["easr"]["value"] is not None
    ]
