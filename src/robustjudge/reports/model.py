"""The report as one plain dictionary (``robustjudge.report/1``): a pure function of a run's table and manifest."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robustjudge import sanity
from robustjudge.engine.folder import Folder
from robustjudge.measures.grid import COLUMNS, panels
from robustjudge.measures.views import Settings
from robustjudge.nouns import STATUSES
from robustjudge.reports import origin, words
from robustjudge.reports.beside import beside
from robustjudge.reports.curves import curves, fitted
from robustjudge.reports.panel import panel_dict
from robustjudge.reports.shields import detectors, shields
from robustjudge.reports.texts import one_line
from robustjudge.reports.worst import worst
from robustjudge.table import Table, open_run

SCHEMA = "robustjudge.report/1"
NOTES = 12
"""Kinds of remarks of models and engines that a report tells one by one."""

_NUMBER = re.compile(r"(?<![\w.])[0-9]{1,15}(?![\w.])")
_TOKEN = re.compile(r"[a-z0-9_]+(?::[a-z0-9_]+)?").fullmatch

ENOUGH = 0.8
"""Below this share of ok rows the first line of a report says why."""

NEEDED = (
    *COLUMNS,
    *("language", "dataset", "fooled", "text_mapped", "reader", "reason", "adapted", "resolved"),
)


def build(path: Path, redact: bool = False, settings: Settings | None = None) -> dict[str, Any]:
    """Everything a report says about the run in ``path``.  The same table and manifest give the same dictionary."""
    folder = Folder.open(path)
    manifest = folder.manifest()
    settings = settings or settings_of(manifest)
    table = Table.load(folder.table, NEEDED)
    truth = manifest.get("truth", {})
    db = open_run(folder.table)
    try:
        rows = coverage(table)
        found = []
        queries = curves(table, db, settings)
        measured = panels(table, settings)
        for p in measured:
            told = panel_dict(p, table, [vars(f) for f in sanity.flags(p)], truth.get(p.judge, {}))
            told["budget"] = queries.get((p.judge, p.defense, p.protocol, p.k, p.threat), {})
            told["fitted"] = fitted(folder.path, p)
            found.append(told)
        side = beside(measured, db, settings)
        bad = worst(table, db, redact)
        lost = without_text(db)
    finally:
        db.close()
    report = {
        "schema": SCHEMA,
        "first_line": first_line(rows),
        "summary": [words.sentence(p, settings.tau) for p in found],
        "run": run(manifest),
        "settings": {"tau": settings.tau, "eps": settings.eps, "pass_mark": settings.pass_mark},
        "rows": rows,
        "judges": origin.judges(manifest),
        "warnings": [*origin.warnings(manifest), *instrument(table, manifest), *lost],
        "panels": found,
        "side_by_side": side,
        "worst_cases": bad,
        "defenses": shields(table, settings),
        "detectors": detectors(manifest),
        "remediation": list(manifest.get("remediation", [])),
        "definitions": {
            name: {"title": t, "meaning": m, "range": r, "better": b}
            for name, (t, m, r, b) in words.DEFINITIONS.items()
        },
        "methods": list(words.METHODS),
        "redacted": redact,
    }
    return report


def settings_of(manifest: Mapping[str, Any]) -> Settings:
    """The thresholds that the run declared."""
    config = manifest.get("config", {})
    given = {k: float(config[k]) for k in ("tau", "eps", "pass_mark") if isinstance(config.get(k), (int, float))}
    return Settings(**given)


def run(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was run, with which versions, at what cost."""
    keys = ("state", "robustjudge", "python", "platform", "reader", "started", "ledger_mode", "seeds", "evaluators")
    out = {k: manifest.get(k) for k in keys}
    out["name"] = str(manifest.get("config", {}).get("name", ""))
    out["starts"] = len(manifest.get("starts", []))
    out["counts"] = dict(manifest.get("counts", {}))
    out["attackers"] = sorted({str(t.get("attacker", "")) for t in manifest.get("threats", [])} - {""})
    return out


# --------------------------------------------------------------------------- every denominator


def coverage(table: Table) -> dict[str, Any]:
    """How many rows there are and what became of them: in all, and per task."""
    tasks = {}
    for name in sorted(table.distinct("task")):
        tasks[name] = _coverage(table.where(table["task"].equals(name)))
    return {**_coverage(table), "tasks": tasks, "reasons": _reasons(table)}


def _coverage(t: Table) -> dict[str, Any]:
    attacked = t["attack_status"].equals("ok") | t["attack_status"].equals("exhausted")
    ok = attacked & t["clean_status"].equals("ok") & t["attacked_status"].equals("ok")
    return {
        "planned": len(t),
        "asked": int(attacked.sum()),
        "ok": int(ok.sum()),
        "coverage": float(ok.sum() / len(t)) if len(t) else None,
        "clean": {s: int(t["clean_status"].equals(s).sum()) for s in STATUSES},
        "attacked": {s: int((attacked & t["attacked_status"].equals(s)).sum()) for s in STATUSES},
        "attack_failed": {s: int(t["attack_status"].equals(s).sum()) for s in ("no_candidate", "error")},
        "quality_unknown": int((np.isnan(t["quality_clean"]) | np.isnan(t["quality_attacked"])).sum()),
        "over_context": int(t["reason"].equals("context_overflow").sum()),
        "text_mapped": int(np.nansum(t["text_mapped"])),
        "parser_fooled": int((np.nan_to_num(t["fooled"]) > 0).sum()),
        "cases": len(np.unique(t["case_id"].codes)),
    }


def _reasons(t: Table) -> list[list[Any]]:
    """Why verdicts are not ok: the most frequent reasons with their row counts."""
    col = t["reason"]
    counts = Counter({col.values[c]: int(n) for c, n in zip(*np.unique(col.codes, return_counts=True)) if c >= 0})
    counts.pop("", None)
    return [[one_line(name, 160), n] for name, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))[:8]]


def first_line(rows: Mapping[str, Any]) -> str:
    """Why fewer than 80 % of the rows are ok; empty when enough are."""
    if not rows["planned"]:
        return "Nothing was measured: the table has no row."
    if rows["coverage"] >= ENOUGH:
        return ""
    parts = []
    for arm in ("clean", "attacked"):
        parts += [f"{n:,} {arm} {words.STATUS_WORDS[s]}" for s, n in rows[arm].items() if n and s != "ok"]
    lost = sum(rows["attack_failed"].values())
    parts += [f"{lost:,} without an attacked text"] if lost else []
    why = "; ".join(f"{reason} ({n:,} rows)" for reason, n in rows["reasons"][:3])
    return (
        f"Only {words.percent(rows['coverage'])} % of {rows['planned']:,} rows are ok ({', '.join(parts)})"
        + (f": {why}" if why else "")
        + "."
    )


# --------------------------------------------------------------------------- the instrument


def _fewer(table: Table, manifest: Mapping[str, Any]) -> str:
    """Which cases could not fill the largest K that was asked for; empty where all could."""
    asked = [int(p.get("k", 4)) for p in manifest.get("protocols", []) if p.get("kind") == "best_of"]
    rows = table.only(protocol="best_of")
    if not asked or not len(rows):
        return ""
    most = np.zeros(len(rows["case_id"].values))
    np.maximum.at(most, rows["case_id"].codes, np.nan_to_num(rows["k"]))
    short = most[(most > 0) & (most < max(asked))]
    if not len(short):
        return ""
    low, high = int(short.min()), int(short.max())
    ks = str(low) if low == high else f"{low} to {high}"
    return (
        f"best of {max(asked)} was asked for, and {len(short):,} of {int((most > 0).sum()):,} cases hold fewer distractors:"
        f" they were judged at a smaller K ({ks})"
    )


def instrument(table: Table, manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the reader must know about the instrument as a whole."""
    out = []

    def warn(name: str, level: str, text: str) -> None:
        out.append({"name": name, "level": level, "text": text})

    state = manifest.get("state")
    if state and state != "complete":
        warn("incomplete", "warning", f"the run is {state}: rows are missing, and which ones is not random")
    if not manifest:
        warn("no_manifest", "warning", "the manifest is missing: models, versions and settings are unknown")
    fewer = _fewer(table, manifest)
    if fewer:
        warn("fewer_candidates", "warning", fewer)
    inputs = manifest.get("inputs", {})
    if inputs.get("rows_set_aside"):
        first = "; ".join(one_line(str(row), 160) for row in inputs.get("bad_rows", [])[:3])
        warn(
            "rows_set_aside",
            "warning",
            f"rows set aside: {inputs['rows_set_aside']:,} rows of the input could not be used ({first})",
        )
    weak = inputs.get("weak_set_aside", {})
    if weak:
        why = "; ".join(f"{one_line(str(reason), 80)}: {n:,}" for reason, n in sorted(weak.items()))
        warn("weak_set_aside", "note", f"weak responses that failed their own check were set aside ({why})")
    fooled = int((np.nan_to_num(table["fooled"]) > 0).sum())
    if fooled:
        warn("parser_fooled", "warning", f"parser fooled: in {fooled:,} rows the judge's own reader and ours disagree")
    mapped = int(np.nansum(table["text_mapped"]))
    if mapped:
        warn("text_mapped", "note", f"{mapped:,} rows hold text whose NUL or lone surrogates were made visible")
    adapted: Counter[str] = Counter()
    col = table["adapted"]
    for code, n in zip(*np.unique(col.codes, return_counts=True)):
        for note in (col.values[code] if code >= 0 else "").split(","):
            adapted[note] += int(n) if note and note != "text_mapped" else 0
    told = notes(adapted)
    for name, text, n in told[:NOTES]:
        warn(name, "warning", f"{text} ({n:,} rows)")
    if len(told) > NOTES:
        more = sum(n for _, _, n in told[NOTES:])
        warn("notes", "warning", f"{len(told) - NOTES:,} other remarks of models and engines ({more:,} rows)")
    readers = sorted(r for r in table.distinct("reader") if r)
    if len(readers) > 1:
        warn("readers", "warning", f"verdicts were read by several reader versions: {', '.join(readers)}")
    for judge in sorted(table.distinct("judge")):
        own = {name for name, _ in origin.models(manifest.get("judges", {}).get(judge))}  # a name may hold a comma
        found = table.where(table["judge"].equals(judge)).distinct("resolved")
        seen = sorted({m for r in found for m in ((r,) if r in own else r.split(",")) if m})
        if len(seen) > 1 and len(manifest.get("judges", {})) and not _several(manifest["judges"].get(judge)):
            warn("resolved", "warning", f"{judge} was answered by several models: {', '.join(map(one_line, seen))}")
    return out


def without_text(db: sqlite3.Connection) -> list[dict[str, str]]:
    """Why attacks ended without a text, those of most rows first; of an exception its kind only."""
    out = []
    for attack, status, error, n in db.execute(_LOST, (NOTES,)):
        why = one_line(error or "no reason given", 160)
        if status == "error":
            why = f"it raised {(_RAISED.findall(error or '') or ['an exception'])[-1]}"
        out.append({"name": "no_text", "level": "warning", "text": f"{attack} gave no text: {why} ({n:,} rows)"})
    return out


_RAISED = re.compile(r"^([\w.]{1,80})(?=:|$)", re.MULTILINE)
"""The kind of the exception of a traceback."""

_LOST = (
    "SELECT attack, attack_status, error, COUNT(*) FROM trials WHERE attack_status IN ('no_candidate', 'error')"
    " GROUP BY attack, attack_status, error ORDER BY COUNT(*) DESC, attack, error LIMIT ?"
)


def notes(counts: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """``(name, words, rows)`` of the remarks that models and engines left, those of most rows first.  Remarks that differ
    only in numbers are one, with the range of each number that differs."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for note, n in sorted(counts.items()):
        if n:
            kinds.setdefault(_NUMBER.sub("#", note), []).append((note, n))
    out = []
    for members in kinds.values():
        first = members[0][0]
        text = words.ADAPTED.get(first) or (first.replace("_", " ").replace(":", ": ") if _TOKEN(first) else first)
        if len(members) > 1:
            text = _spanned(text, [_NUMBER.findall(note) for note, _ in members])
        out.append((first, text, sum(n for _, n in members)))
    return sorted(out, key=lambda x: (-x[2], x[1]))


def _spanned(text: str, numbers: list[list[str]]) -> str:
    """``text`` with each of its numbers as the range that it has in all of ``numbers``."""
    spans = iter([(min(map(int, c)), max(map(int, c))) for c in zip(*numbers, strict=True)])

    def told(_: re.Match[str]) -> str:
        low, high = next(spans)
        return str(low) if low == high else f"{low} to {high}"

    return _NUMBER.sub(told, text)


def _several(spec: Any) -> bool:
    return len(set(origin.models(spec))) != 1
