"""What a tracker is given: parameters, metrics, tags and files of a gated run; undefined figures are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence, fingerprint
from robustjudge.nouns import Estimate

FILES = (
    "robustness_report.json",
    "report.json",
    "report.html",
    "report.md",
    "junit.xml",
    "results.sarif",
    "manifest.json",
)


@dataclass(frozen=True)
class Record:
    """One gated run in a tracker's terms."""

    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: tuple[Path, ...]


def record(e: Evidence, d: Decision) -> Record:
    """Rates per category with their bounds as metrics of their own (``asr/<category>``, ``_low``, ``_high``, ``_n``)."""
    metrics: dict[str, float] = {"trials": float(d.planned), "failed": float(sum(o.failed for o in d.outcomes))}
    if d.coverage is not None:
        metrics["coverage"] = d.coverage
    for c in d.categories:
        _estimate(metrics, f"asr/{c.category}", c.bounds.estimate)
        metrics[f"confirmed/{c.category}"] = float(c.confirmed)
    for name in ("flip_rate", "gate"):
        found: Any = d.false_alarm.get(name)
        if found:
            _estimate(metrics, f"false_alarm/{name}", Estimate.from_dict(found))
    for name, total in e.totals.items():
        metrics[f"total/{name}"] = float(total)
    prints = fingerprint(e)
    params = {
        "judge": e.judge,
        "defense": e.defense,
        "prompt_version": e.prompt_version,
        "policy": d.policy.name,
        "robustjudge": str(e.manifest.get("robustjudge", "")),
        **{f"fingerprint.{k}": v for k, v in prints.items()},
    }
    tags = {"gate": d.words, "judge": e.judge, "prompt_version": e.prompt_version}
    files = tuple(p for n in FILES if (p := e.path / n).is_file())
    return Record(e.path.name, {k: v[:250] for k, v in params.items()}, metrics, tags, files)


def _estimate(metrics: dict[str, float], name: str, e: Estimate) -> None:
    for key, value in ((name, e.value), (f"{name}_low", e.low), (f"{name}_high", e.high)):
        if value is not None and e.value is not None:
            metrics[key] = value
    metrics[f"{name}_n"] = float(e.n)
