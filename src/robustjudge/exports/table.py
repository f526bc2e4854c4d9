"""The trial table as CSV for people, as JSON Lines for machines, or as Parquet for data tools."""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import Folder
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.table import COLUMNS, Table, content, open_run

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def export(run: Path, form: str, target: Path | None = None) -> Path:
    """Write the table of a run as ``csv``, ``jsonl`` or ``parquet`` and return the file.

    CSV is for people: scalars only, and a text cell that a spreadsheet could take for a formula gets an apostrophe in
    front.  JSONL is the machine export: exact values, every judged slate with prompt, reply and rationale as text
    where the run stored them.  Parquet holds the scalars.  ``target`` defaults to ``exports/`` in the run folder; the
    file appears whole or not at all.
    """
    if form not in FORMATS:
        raise UnknownName("export format", form, tuple(FORMATS))
    folder = Folder.open(run)
    out = target or folder.path / "exports" / f"trials.{form}"
    out.parent.mkdir(parents=True, exist_ok=True)
    spare = out.with_name(f".{out.name}.{secrets.token_hex(3)}")
    try:
        FORMATS[form](folder.table, spare)
        os.replace(spare, out)
    finally:
        spare.unlink(missing_ok=True)
    return out


def guarded(value: Any) -> Any:
    """A cell of a human-facing CSV: text that begins like a formula gets an apostrophe, NUL and breaks stay quoted."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _csv(table: Path, out: Path) -> None:
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        rows = Table.load(table)
        names = [n for n, _ in COLUMNS if n not in ("detail", "error", "trace")]
        writer.writerow(names)
        for row in rows.rows():
            writer.writerow([guarded(row.get(n)) for n in names])


def _jsonl(table: Path, out: Path) -> None:
    with out.open("w", encoding="utf-8") as file:
        for record in records(table):
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def records(table: Path) -> Iterator[dict[str, Any]]:
    """Every row with all its texts: hashes of ``detail`` become the stored texts, or stay ``{"hash": ...}``."""
    db = open_run(table)
    try:
        cursor = db.execute("SELECT * FROM trials ORDER BY cell")
        names = [d[0] for d in cursor.description]
        for values in cursor:
            row = dict(zip(names, values, strict=True))
            detail = json.loads(row.pop("detail") or "{}")
            row["attacked_text"] = _text(db, row.get("text_hash"))
            for name in ("task", "response"):
                row[f"{name}_text"] = _text(db, detail.get(name))
            row["reference_texts"] = [_text(db, h) for h in detail.get("references", [])]
            row["curve"] = detail.get("curve", [])
            row["shown"] = [_shown(db, s) for s in detail.get("shown", [])]
            yield row
    finally:
        db.close()


def _shown(db: Any, shown: dict[str, Any]) -> dict[str, Any]:
    out = {**shown, "raw": _text(db, shown.get("raw")), "rationale": _text(db, shown.get("rationale"))}
    out["calls"] = [
        {**c, "prompt": _text(db, c.get("prompt")), "reply": _text(db, c.get("reply"))} for c in shown.get("calls", [])
    ]
    return out


def _text(db: Any, hashed: str | None) -> str | dict[str, str] | None:
    if not hashed:
        return None
    found = content(db, hashed)
    return {"hash": hashed} if found is None else found


def _parquet(table: Path, out: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError(
            "Parquet needs pyarrow: pip install 'robustjudge[export]'; CSV and JSONL need nothing"
        ) from None
    rows = Table.load(table)
    kinds = {"TEXT": pa.string(), "INTEGER": pa.int64(), "REAL": pa.float64()}
    names = [(n, kinds[k]) for n, k in COLUMNS if n not in ("detail", "error", "trace")]
    held: dict[str, list[Any]] = {n: [] for n, _ in names}
    for row in rows.rows():
        for n, _ in names:
            held[n].append(row.get(n))
    columns = {n: pa.array(held[n], type=t, from_pandas=False) for n, t in names}
    pq.write_table(pa.table(columns), out)


FORMATS: dict[str, Callable[[Path, Path], None]] = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}
"""The formats that :func:`export` writes."""
