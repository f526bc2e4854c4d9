"""What the gate sees of a run: one record per trial with every replica's verdict, read in one pass over the table."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from robustjudge.engine.folder import Folder
from robustjudge.errors import DataError, StorageError, UnknownName
from robustjudge.nouns import TIE
from robustjudge.spec import canonical, digest
from robustjudge.table import open_run

_COLUMNS = (
    *("cell", "judge", "defense", "protocol", "threat", "seed", "case_id", "cluster", "task", "attack", "attack_id"),
    *("category", "severity", "control", "channel", "scale_low", "scale_high", "attack_status", "text_hash"),
    *("judge_calls", "reader", "reason", "latency", "detail"),
)
_TOTALS = ("judge_calls", "prompt_tokens", "completion_tokens", "latency")


class Reply(NamedTuple):
    """The verdict on one replica, its orders merged: ``score`` in scale units (choices: share of orders won, a tie half),
    ``None`` unless every order is ``ok``; ``labels`` as said; ``rationale`` is the hash of the judge's words."""

    status: str
    score: float | None
    labels: tuple[str, ...]
    rationale: str


@dataclass(frozen=True, slots=True)
class Observed:
    """One trial as the table holds it.  ``low`` and ``high`` are the scale's ends (0 and 1 for labels and choices).

    ``labelled``: verdicts are labels, not numbers.  ``case_hash`` tells the texts of the case.  ``clean`` and ``attacked``
    hold one reply per replica.
    """

    cell: str
    judge: str
    defense: str
    protocol: str
    threat: str
    seed: int
    case_id: str
    cluster: str
    task: str
    attack: str
    attack_id: str
    category: str
    severity: str
    control: str
    channel: str
    low: float
    high: float
    labelled: bool
    attack_status: str
    clean: tuple[Reply, ...]
    attacked: tuple[Reply, ...]
    expected: float | None
    text: str
    response: str
    case_hash: str
    judge_calls: int
    reader: str
    reason: str
    latency: float = 0.0

    @property
    def panel(self) -> tuple[str, str]:
        """What retest noise is shared over: protocol and threat model's answerer."""
        return self.protocol, self.threat


@dataclass(frozen=True)
class Evidence:
    """The trials of one judge as defended, with the run's manifest and folder."""

    judge: str
    defense: str
    trials: tuple[Observed, ...]
    manifest: Mapping[str, Any]
    path: Path
    totals: Mapping[str, float]

    @property
    def state(self) -> str:
        """``complete``, ``incomplete`` or ``running``; an absent manifest is ``unknown``."""
        return str(self.manifest.get("state", "unknown"))

    @cached_property
    def attacks(self) -> tuple[Observed, ...]:
        """The trials of attacks (controls left out)."""
        return tuple([t for t in self.trials if not t.control])

    def controls(self, kind: str) -> tuple[Observed, ...]:
        """The trials of one control."""
        return tuple([t for t in self.trials if t.control == kind])

    @property
    def judge_spec(self) -> Any:
        """The judge's spec as dumped in the manifest."""
        return dict(self.manifest.get("judges", {})).get(self.judge)

    @property
    def prompt_hash(self) -> str:
        """Hash of the judge's prompts (its templates, and the defense it stands behind)."""
        found = list(templates(self.judge_spec))
        defense = dict(self.manifest.get("defenses", {})).get(self.defense)
        return digest(canonical(found), canonical(defense) if self.defense != "none" else "")[:16]

    @property
    def prompt_version(self) -> str:
        """Declared name of the prompt and its hash."""
        names = [str(t.get("name", "")) for t in templates(self.judge_spec) if isinstance(t, Mapping)]
        return f"{'+'.join(dict.fromkeys(n for n in names if n)) or 'service'}@{self.prompt_hash}"

    @property
    def timestamp(self) -> str:
        """When the run was last written, RFC 3339 in UTC."""
        stamp = str(self.manifest.get("updated") or self.manifest.get("started") or "1970-01-01T00:00:00+00:00")
        return stamp.replace("+00:00", "Z")

    def texts(self, hashes: Iterable[str]) -> dict[str, str]:
        """The stored texts behind hashes (absent where the run stores hashes only)."""
        wanted = sorted({h for h in hashes if h})
        out: dict[str, str] = {}
        if not wanted:
            return out
        db = open_run(self.path / "run.sqlite")
        try:
            for i in range(0, len(wanted), 500):
                part = wanted[i : i + 500]
                marks = ",".join("?" * len(part))
                out.update(db.execute(f"SELECT hash, text FROM contents WHERE hash IN ({marks})", part))
        finally:
            db.close()
        return out


def templates(spec: Any) -> list[Any]:
    """Every template inside a dumped judge, in order."""
    if isinstance(spec, Mapping):
        found = [spec["template"]] if "template" in spec else []
        return found + [t for k, v in spec.items() if k != "template" for t in templates(v)]
    if isinstance(spec, list):
        return [t for part in spec for t in templates(part)]
    return []


def subjects(path: Path) -> tuple[tuple[str, str], ...]:
    """Every (judge, defense) of a run, sorted."""
    db = open_run(Folder.open(path).table)
    try:
        return tuple(sorted(db.execute("SELECT DISTINCT judge, defense FROM trials").fetchall()))
    finally:
        db.close()


def evidence(path: Path, judge: str = "", defense: str = "none") -> Evidence:
    """Read the trials of one judge as defended.  A run without rows gives an evidence without trials.

    Raises :class:`UnknownName` for a judge or defense that is not in the run, :class:`StorageError` for a damaged file.
    """
    folder = Folder.open(path)
    manifest = folder.manifest()
    db = open_run(folder.table)
    try:
        there = db.execute("SELECT DISTINCT judge, defense FROM trials").fetchall()
        judges = sorted({j for j, _ in there}) or sorted(manifest.get("judges", {}))
        if not judge and len(judges) > 1:
            raise UnknownName("judge (the run has several: name one)", judge, tuple(judges))
        judge = judge or (judges[0] if judges else "")
        if there and judge not in judges:
            raise UnknownName("judge", judge, tuple(judges))
        if there and (judge, defense) not in there:
            raise UnknownName("defense", defense, tuple(sorted(d for j, d in there if j == judge)))
        cursor = db.execute(
            f"SELECT {', '.join(chr(34) + c + chr(34) for c in _COLUMNS)} FROM trials WHERE judge = ? AND defense = ?",
            (judge, defense),
        )
        trials = [_observed(*values) for values in cursor]
        spent = db.execute(
            f"SELECT {', '.join(f'total({t})' for t in _TOTALS)} FROM trials WHERE judge = ? AND defense = ?",
            (judge, defense),
        ).fetchone()
        totals = dict(zip(_TOTALS, spent, strict=True))
        trials.sort(key=lambda t: (t.case_id, t.attack, t.protocol, t.seed, t.cell))
    except sqlite3.DatabaseError as fault:
        raise StorageError(f"{folder.table}: not a readable run file ({fault}); restore it or run again") from None
    finally:
        db.close()
    return Evidence(judge, defense, tuple(trials), manifest, folder.path, totals)


def _observed(
    cell: str,
    judge: str | None,
    defense: str | None,
    protocol: str | None,
    threat: str | None,
    seed: int | None,
    case_id: str | None,
    cluster: str | None,
    task: str | None,
    attack: str | None,
    attack_id: str | None,
    category: str | None,
    severity: str | None,
    control: str | None,
    channel: str | None,
    low: float | None,
    high: float | None,
    attack_status: str | None,
    text_hash: str | None,
    judge_calls: int | None,
    reader: str | None,
    reason: str | None,
    latency: float | None,
    detail_text: str | None,
) -> Observed:
    """The record of one row, its values in the order of ``_COLUMNS``."""
    try:
        detail = json.loads(detail_text or "{}")
    except ValueError:
        raise DataError(f"cell {cell}: its detail is damaged; run the cell again (--retry-errors)") from None
    shown = detail.get("shown", ())
    choice = labelled = protocol in ("pairwise", "best_of")
    arms: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for s in shown:
        arms[s["arm"] != "clean"].append(s)
        choice = choice or len(s.get("index", ())) > 1
        labelled = labelled or choice or bool(s.get("label"))
    replies = _merged_by_replica if choice else _single
    clean, attacked = replies(arms[0]), replies(arms[1])
    if choice or low is None or high is None:
        low, high = 0.0, 1.0
    nothing = _MISSING if attack_status == "ok" and not shown else ()
    response = detail.get("response", "")
    return Observed(
        cell,
        judge or "",
        defense or "none",
        protocol or "",
        threat or "",
        int(seed or 0),
        case_id or "",
        cluster or case_id or "",
        task or "",
        attack or "",
        attack_id or attack or "",
        category or "",
        severity or "high",
        control or "",
        channel or "append",
        float(low),
        float(high),
        labelled,
        attack_status or "ok",
        clean or nothing,
        attacked or nothing,
        detail.get("expected"),
        text_hash or "",
        response,
        ":".join((detail.get("task", ""), response, *detail.get("references", ()))),
        int(judge_calls or 0),
        reader or "",
        reason or "",
        float(latency or 0.0),
    )


_MISSING = (Reply("error", None, (), ""),)


def _single(shown: list[dict[str, Any]]) -> tuple[Reply, ...]:
    """One reply per replica of a judge that scores one text."""
    return tuple(
        [
            Reply(
                s["status"],
                s.get("score") if s["status"] == "ok" else None,
                (s["label"],) if s.get("label") else (),
                s.get("rationale", ""),
            )
            for s in shown
        ]
    )


def _merged_by_replica(shown: list[dict[str, Any]]) -> tuple[Reply, ...]:
    """One reply per replica over its orders, in order of first appearance."""
    by: dict[str, list[dict[str, Any]]] = {}
    for s in shown:
        by.setdefault(s["replica"], []).append(s)
    return tuple([_merged(part) for part in by.values()])


_WORTH = {0: 1.0, TIE: 0.5}
_SAID = {0: "response", 1: "reference", TIE: "tie"}


def _merged(parts: list[dict[str, Any]]) -> Reply:
    status = next((s["status"] for s in parts if s["status"] != "ok"), "ok")
    picks: list[int] = [int(s.get("choice", 1)) for s in parts if s["status"] == "ok"]
    score = None if status != "ok" else sum(_WORTH.get(p, 0.0) for p in picks) / len(picks)
    labels = tuple(_SAID.get(p, f"distractor {p}") for p in picks)
    return Reply(status, score, labels, parts[0].get("rationale", ""))


def fingerprint(e: Evidence) -> dict[str, str]:
    """Hashes of everything that decides what a run measured: models, endpoints, prompt, sampling, attacks, cases, reader."""
    spec = e.judge_spec
    cases = sorted({(t.case_id, t.case_hash) for t in e.trials})
    attacks = sorted({(t.attack, t.attack_id, t.category, t.severity, t.protocol, t.seed) for t in e.trials})
    specs = sorted(canonical(a) for a in e.manifest.get("attacks", []))
    settings = dict(dict(e.manifest.get("config", {})).get("models", {}) or {})
    endpoints = {
        k: {x: v.get(x) for x in ("base_url", "revision")} for k, v in settings.items() if isinstance(v, Mapping)
    }
    return {
        "model": digest(canonical(_field(spec, "model")))[:16],
        "endpoint": digest(canonical(endpoints))[:16],
        "prompt_hash": e.prompt_hash,
        "sampling": digest(canonical(_field(spec, "sampling")))[:16],
        "attack_set": digest(canonical([list(a) for a in attacks]), *specs)[:16],
        "case_set": digest(canonical([list(c) for c in cases]))[:16],
        "reader": ",".join(sorted({t.reader for t in e.trials})),
    }


def _field(spec: Any, name: str) -> list[Any]:
    """Every value of a field inside a dumped judge (templates left out)."""
    if isinstance(spec, Mapping):
        found = [spec[name]] if name in spec else []
        return found + [x for k, v in spec.items() if k not in ("template", name) for x in _field(v, name)]
    if isinstance(spec, list):
        return [x for part in spec for x in _field(part, name)]
    return []
