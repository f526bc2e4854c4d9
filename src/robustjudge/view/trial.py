"""One trial of a stored run with every text behind it, ready for a page: what was inserted and what tells is marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from robustjudge.attacks.base import split
from robustjudge.gate.rationale import influence
from robustjudge.reports.texts import LIMIT, changed, cut
from robustjudge.table import content, details, open_run

_COLUMNS = (
    *("cell", "case_id", "task", "language", "dataset", "judge", "defense", "protocol", "k", "threat", "seed"),
    *("attack", "family", "category", "severity", "control", "access", "channel", "note", "attack_status"),
    *("clean_status", "clean_score", "attacked_status", "attacked_score", "clean_outcomes", "attacked_outcomes"),
    *("scale_low", "scale_high", "quality_clean", "quality_attacked", "queries", "writes", "judge_calls", "latency"),
    *("prompt_tokens", "completion_tokens", "reason", "resolved", "reader", "text_hash", "text_length", "text_mapped"),
)

Parts = list[list[str]]
"""A text in pieces ``[kind, text]``: ``same``, ``new`` (inserted by the attack) or ``sign`` (telling words)."""


def trial_of(table: Path, cell: str) -> dict[str, Any] | None:
    """The trial of a cell in a run file; ``None`` where there is none."""
    db = open_run(table)
    try:
        held = {row[1] for row in db.execute("PRAGMA table_info(trials)")}
        names = [c for c in _COLUMNS if c in held]
        quoted = ", ".join([f'"{c}"' for c in names])
        row = db.execute(f"SELECT {quoted} FROM trials WHERE cell = ?", (cell,)).fetchone()
        if row is None:
            return None
        values = {**dict.fromkeys(_COLUMNS), **dict(zip(names, row, strict=True))}
        return {**values, **_texts(db, details(db, [cell])[cell], values)}
    finally:
        db.close()


def text_of(table: Path, hashed: str) -> str | None:
    """A stored text by its hash."""
    db = open_run(table)
    try:
        return content(db, hashed)
    finally:
        db.close()


def _texts(db: Connection, detail: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    weak, attacked = content(db, detail.get("response")), content(db, values["text_hash"])
    parts: Parts = []
    payload = ""
    if weak is not None and attacked is not None:
        parts = changed(weak, attacked)
        payload = split(weak, attacked).payload
    new = [t for kind, t in parts if kind == "new"]
    return {
        "error": detail.get("error"),
        "task_text": _whole(db, detail.get("task")),
        "weak": _whole(db, detail.get("response")),
        "attacked": {
            "parts": cut(parts or _plain(attacked)),
            "hash": values["text_hash"],
            "stored": attacked is not None,
        },
        "references": [_whole(db, h) for h in detail.get("references", ())],
        "verdicts": [_verdict(db, s, new, payload, weak or "") for s in detail.get("shown", ())],
    }


def _whole(db: Connection, hashed: str | None, marks: Sequence[str] = (), kind: str = "new") -> dict[str, Any]:
    """A stored text in parts, with every occurrence of ``marks`` marked."""
    text = content(db, hashed)
    return {"parts": cut(marked(text or "", marks, kind)), "hash": hashed, "stored": text is not None}


def _verdict(db: Connection, s: dict[str, Any], new: Sequence[str], payload: str, weak: str) -> dict[str, Any]:
    clean = s["arm"] == "clean"
    words = content(db, s.get("rationale")) or ""
    sign = None if clean else influence(words, payload, weak)
    said = {0: "the response", 1: "the reference", -1: "a tie"}
    value = s.get("score", s.get("label"))
    if "choice" in s:
        value = said.get(s["choice"], f"distractor {s['choice'] - 1}")
    return {
        "arm": s["arm"],
        "clean": clean,
        "order": s["order"],
        "replica": s["replica"],
        "status": s["status"],
        "value": value,
        "reason": s.get("reason", ""),
        "fooled": bool(s.get("fooled")),
        "sign": None if sign is None else sign.rule,
        "rationale": _whole(db, s.get("rationale"), () if sign is None else (sign.span,), "sign"),
        "calls": [
            {
                **{
                    k: c.get(k) for k in ("model", "resolved", "role", "status", "finish", "latency", "usage", "reason")
                },
                "prompt": _whole(db, c.get("prompt"), () if clean else new),
                "reply": _whole(db, c.get("reply")),
            }
            for c in s.get("calls", ())
        ],
    }


def _plain(text: str | None) -> Parts:
    return [["same", text]] if text else []


def marked(text: str, needles: Sequence[str], kind: str) -> Parts:
    """``text`` with each occurrence of a needle (of three characters or more) as a part of its own."""
    parts = _plain(text)
    for needle in needles:
        if len(needle.strip()) < 3 or len(needle) > LIMIT:
            continue
        out: Parts = []
        for was, piece in parts:
            if was != "same":
                out.append([was, piece])
                continue
            for i, rest in enumerate(piece.split(needle)):
                out += [[kind, needle]] * (i > 0) + ([["same", rest]] if rest else [])
        parts = out
    return parts
