"""The table: one row per trial, append-only, complete without the ledger; and the way measures read it.

``trials`` holds scalars (what measures need) and ``detail`` (every judged slate, JSON); ``contents`` holds each long
text once, by hash; ``journal`` holds the ask hashes of unfinished flights.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from robustjudge import door
from robustjudge.engine.heal import is_damage
from robustjudge.engine.writer import connect
from robustjudge.errors import ConfigError, DataError, StorageError
from robustjudge.nouns import Call, Case, Completion
from robustjudge.packing import INT, PACKS, REAL, TEXT, Category, Clash, packed, unpacked
from robustjudge.protocols import size
from robustjudge.spec import ByIdentity, canonical, digest, key as spec_key
from robustjudge.trial import Cell, Shown, Trial

VERSION = 1

COLUMNS: tuple[tuple[str, str], ...] = (
    ("cell", TEXT),
    ("case_id", TEXT),
    ("cluster", TEXT),
    ("dataset", TEXT),
    ("task", TEXT),
    ("language", TEXT),
    ("attack", TEXT),
    ("attack_id", TEXT),
    ("family", TEXT),
    ("category", TEXT),
    ("severity", TEXT),
    ("control", TEXT),
    ("of", TEXT),
    ("access", TEXT),
    ("channel", TEXT),
    ("note", TEXT),
    ("defense", TEXT),
    ("judge", TEXT),
    ("judge_key", TEXT),
    ("protocol", TEXT),
    ("k", INT),
    ("scale_low", REAL),
    ("scale_high", REAL),
    ("threat", TEXT),
    ("seed", INT),
    ("attack_status", TEXT),
    ("clean_status", TEXT),
    ("clean_score", REAL),
    ("clean_unit", REAL),
    ("retest_status", TEXT),
    ("retest_score", REAL),
    ("attacked_status", TEXT),
    ("attacked_score", REAL),
    ("attacked_unit", REAL),
    ("clean_expected", REAL),
    ("attacked_expected", REAL),
    ("blocked_worth", TEXT),
    ("clean_outcomes", TEXT),
    ("retest_outcomes", TEXT),
    ("attacked_outcomes", TEXT),
    ("clean_slots", TEXT),
    ("evaluator", TEXT),
    ("quality_clean", REAL),
    ("quality_attacked", REAL),
    ("queries", INT),
    ("writes", INT),
    ("losses", INT),
    ("gradients", INT),
    ("judge_calls", INT),
    ("prompt_tokens", INT),
    ("completion_tokens", INT),
    ("latency", REAL),
    ("fooled", INT),
    ("text_hash", TEXT),
    ("text_length", INT),
    ("text_mapped", INT),
    ("reason", TEXT),
    ("adapted", TEXT),
    ("resolved", TEXT),
    ("reader", TEXT),
    ("trace", TEXT),
    ("error", TEXT),
    ("detail", TEXT),
)
NAMES = tuple(name for name, _ in COLUMNS)

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS trials ({", ".join(f'"{n}" {t}' for n, t in COLUMNS)}, PRIMARY KEY (cell)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (cell TEXT, path TEXT, mark TEXT, PRIMARY KEY (cell, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('version', '{VERSION}');
"""

_NAMED = ", ".join(f'"{n}"' for n in NAMES)
PUT_ROW = f"INSERT OR REPLACE INTO trials ({_NAMED}) VALUES ({', '.join('?' * len(COLUMNS))})"
PUT_TEXT = "INSERT OR IGNORE INTO contents VALUES (?, ?)"
PUT_MARK = "INSERT OR REPLACE INTO journal VALUES (?, ?, ?)"
DROP_MARKS = "DELETE FROM journal WHERE cell = ?"


# --------------------------------------------------------------------------- writing


def upgrade(path: Path) -> None:
    """Give the table of an older version the columns that it lacks, so that its run can be resumed.

    A damaged file is left as it is: damage is found, told and healed where the table is opened for writing.
    """
    if not path.is_file():
        return
    try:
        with closing(connect(path, readonly=True)) as db:
            held = {row[1] for row in db.execute("PRAGMA table_info(trials)")}
        absent = [(name, kind) for name, kind in COLUMNS if held and name not in held]
        if absent:
            with closing(connect(path)) as db:
                for name, kind in absent:
                    db.execute(f'ALTER TABLE trials ADD COLUMN "{name}" {kind}')
    except sqlite3.DatabaseError as fault:
        if not is_damage(fault):
            raise StorageError(f"{path}: cannot be opened for writing ({fault})") from None


def _case_key(case: Case) -> str:
    fields = [case.id, case.task, case.response, case.kind, case.language, str(len(case.references)), *case.references]
    fields += [str(len(case.distractors)), *(w.text for w in case.distractors)]
    fields += [x for t in case.history for x in (t.role, t.text)]
    return digest(*fields, canonical([list(p) for p in case.meta]))


case_key: Callable[[Case], str] = ByIdentity(_case_key, kept=512)
"""The content hash of a case: whatever changes what is judged changes the key."""


def cell_key(cell: Cell) -> str:
    """The name of a trial: the hash of everything that decides what it observes."""
    return digest(
        case_key(cell.case),
        spec_key(cell.attack),
        spec_key(cell.judge),
        spec_key(cell.protocol),
        spec_key(cell.threat),
        f"{cell.seed} {cell.cleans} {cell.finals}",
        cell.evaluator,
        cell.judge_name,
        cell.defense_name,
    )


@dataclass(frozen=True)
class Row:
    """A row and the long texts it points to."""

    values: tuple[Any, ...]
    texts: tuple[tuple[str, str], ...]


def row_of(trial: Trial, key: str, trace: str, reader: str, store: str = "full") -> Row:
    """Flatten a trial.  ``store="hashes"`` keeps no text, only hashes."""
    cell = trial.cell
    texts: dict[str, str] = {}

    def keep(text: str) -> str:
        h, safe = (_remembered if len(text) <= SHORT else _hashed)(text)
        if store == "full":
            texts[h] = safe
        return h

    clean = [s for s in trial.clean if s.replica.endswith("/0")]
    retest = [s for s in trial.clean if s.replica.endswith("/1")]
    first = trial.attacked[0].replica if trial.attacked else ""
    final = [s for s in trial.attacked if s.replica == first]
    calls = [c for s in (*trial.clean, *trial.attacked) for c in s.calls]
    low, high = _range(trial)
    values = {
        **_labels(cell),
        "cell": key,
        "scale_low": low,
        "scale_high": high,
        "attack_status": trial.attack_status,
        **_arm("clean", clean, cell),
        **_arm("retest", retest, cell),
        **_arm("attacked", final, cell),
        "blocked_worth": next((s.verdict.fallback for s in (*trial.clean, *trial.attacked) if s.verdict.fallback), ""),
        "clean_slots": ",".join(str(_slot(s)) for s in clean) if cell.protocol.kind != "pointwise" else "",
        "evaluator": cell.evaluator,
        "quality_clean": trial.quality_clean,
        "quality_attacked": trial.quality_attacked,
        "queries": trial.spent.queries,
        "writes": trial.spent.writes,
        "losses": trial.spent.losses,
        "gradients": trial.spent.gradients,
        "judge_calls": len(calls),
        "prompt_tokens": sum(c.usage.prompt for _, c in calls),
        "completion_tokens": sum(c.usage.completion for _, c in calls),
        "latency": sum(c.latency for _, c in calls),
        "fooled": sum(s.verdict.fooled for s in (*trial.clean, *trial.attacked)),
        "text_hash": keep(trial.text) if trial.text is not None else None,
        "text_length": len(trial.text) if trial.text is not None else None,
        "text_mapped": int(_mapped(trial, calls)),
        "reason": _reason((*trial.attacked, *trial.clean)),
        "adapted": ",".join(sorted({door.safe(note).replace(",", ";") for _, c in calls for note in c.notes})),
        "resolved": ",".join(sorted({door.safe(c.model) for _, c in calls if c.model})),
        "reader": reader,
        "trace": trace,
        "error": door.safe(trial.error) or None,
        "detail": canonical(
            {
                "shown": [_shown(s, keep) for s in (*trial.clean, *trial.attacked)],
                "curve": [list(p) for p in trial.spent.curve],
                "response": keep(cell.case.response),
                "task": keep(cell.case.task),
                "references": [keep(r) for r in cell.case.references],
                **({"expected": due} if (due := _due(cell)) is not None else {}),
            }
        ),
    }
    return Row(_cells(values), tuple(texts.items()))


def _due(cell: Cell) -> float | None:
    """The score that a robust judge would give: what the attack says of its text, else what the case says."""
    own = getattr(cell.attack, "expected", None)
    stated = own(cell.case) if callable(own) else None
    return cell.case.expected if stated is None else float(stated)


def _cells(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values in column order; every text passes the door."""
    row = [values.get(n) for n in NAMES]
    joined = " ".join([v for v in row if isinstance(v, str)])
    if door.safe(joined) is joined:
        return tuple(row)
    return tuple([door.safe(v) if isinstance(v, str) else v for v in row])


class Stored:
    """Which texts a run file surely holds already: a case's own are shown by each of its rows, and writing them anew
    costs more than the row."""

    KEPT = 4096

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._healed = 0

    def fresh(self, texts: Sequence[tuple[str, str]], healed: int) -> list[tuple[str, str]]:
        """The texts still to be written; ``healed`` counts how often the file was damaged, which forgets all."""
        if healed != self._healed or len(self._known) > self.KEPT:
            self._known.clear()
            self._healed = healed
        out = [pair for pair in texts if pair[0] not in self._known]
        self._known.update([h for h, _ in out])
        return out


def _hashed(text: str) -> tuple[str, str]:
    """The name under which a text is stored, and the text as it passed the door."""
    safe = door.safe(text)
    return digest(safe), safe


SHORT = 16_384
"""Characters up to which a text is remembered with its hash: long ones would fill the memory."""
_remembered = lru_cache(maxsize=2048)(_hashed)


def error_row(cell: Cell, key: str, trace: str, reader: str, error: str, reason: str = "our_error") -> Row:
    """The row of a trial that raised: status ``error``, why, the traceback, nothing scored."""
    values = {
        **_labels(cell),
        "cell": key,
        "attack_status": "ok",
        "clean_status": "error",
        "attacked_status": "error",
        "reason": reason,
        "reader": reader,
        "trace": trace,
        "error": door.safe(error),
        "text_mapped": int(cell.case.text_mapped),
        "detail": canonical({"shown": [], "curve": []}),
    }
    orders = {"pointwise": 0, "pairwise": 2}.get(cell.protocol.kind, size(cell.protocol, cell.case))
    if orders:
        values["clean_outcomes"] = values["attacked_outcomes"] = "e" * orders
    return Row(_cells(values), ())


def _mapped(trial: Trial, calls: Sequence[tuple[Call, Completion]]) -> bool:
    """Whether the door changed a text of this trial: the case, the attacked text, or a reply."""
    if trial.cell.case.text_mapped or (trial.text is not None and door.safe(trial.text) is not trial.text):
        return True
    return any("text_mapped" in done.notes or door.safe(done.text) is not done.text for _, done in calls)


def _labels(cell: Cell) -> dict[str, Any]:
    attack, case = cell.attack, cell.case
    note = getattr(attack, "note", None)
    return {
        "case_id": case.id,
        "cluster": case.cluster or case.id,
        "dataset": case.dataset,
        "task": case.kind,
        "language": case.language,
        "attack": cell.attack_name or attack.name,
        "attack_id": getattr(attack, "id", attack.name),
        "family": attack.family,
        "category": getattr(attack, "category", attack.family),
        "severity": attack.severity,
        "control": getattr(attack, "control", ""),
        "of": getattr(getattr(attack, "of", None), "name", ""),
        "access": attack.access.name,
        "channel": getattr(attack, "channel", "append"),
        "note": note(case) if callable(note) else "",
        "defense": cell.defense_name,
        "judge": cell.judge_name or spec_key(cell.judge)[:8],
        "judge_key": spec_key(cell.judge),
        "protocol": getattr(cell.protocol, "label", cell.protocol.kind),
        "k": size(cell.protocol, case),
        "threat": cell.threat.label,
        "seed": cell.seed,
    }


def _arm(arm: str, shown: Sequence[Shown], cell: Cell) -> dict[str, Any]:
    if not shown:
        return {}
    verdicts = [s.verdict for s in shown]
    status = next((v.status for v in verdicts if v.status != "ok"), "ok")
    out: dict[str, Any] = {f"{arm}_status": status}
    if cell.protocol.kind != "pointwise":
        out[f"{arm}_outcomes"] = "".join(cell.protocol.outcome(v) for v in verdicts)
        return out
    (v,) = verdicts
    out[f"{arm}_score"] = v.score if v.status == "ok" else None
    if arm != "retest":
        out[f"{arm}_unit"] = v.unit if v.status == "ok" else None
        out[f"{arm}_expected"] = v.expected
    return out


def _slot(s: Shown) -> int:
    """The slot (0-based) that the verdict picked; -1 for a tie or no verdict."""
    choice = s.verdict.choice
    return s.slate.index.index(choice) if s.verdict.status == "ok" and choice in s.slate.index else -1


def _reason(shown: Sequence[Shown]) -> str:
    """Why the first verdict that is not ok (attacked before clean) has no value; empty when all have one."""
    first = next((s for s in shown if s.verdict.status != "ok"), None)
    return "" if first is None else door.safe(first.verdict.reason) or first.verdict.status


def _range(trial: Trial) -> tuple[float | None, float | None]:
    """The scale's ends as the judge's verdicts told them."""
    return next((s.verdict.range for s in (*trial.clean, *trial.attacked) if s.verdict.range), (None, None))


def _shown(s: Shown, keep: Any) -> dict[str, Any]:
    v = s.verdict
    out: dict[str, Any] = {"arm": s.arm, "order": s.order, "replica": s.replica, "status": v.status}
    for name in ("score", "choice", "label", "unit", "reason", "form", "expected", "fallback"):
        value = getattr(v, name)
        if value not in (None, ""):
            out[name] = value
    if v.fooled:
        out["fooled"] = True
    if v.parts:
        out["parts"] = [list(p) for p in v.parts]
    if v.suspicion:
        out["suspicion"] = list(v.suspicion)
    out["raw"] = keep(v.raw)
    out["rationale"] = keep(v.rationale)
    out["index"] = list(s.slate.index)
    out["calls"] = [
        {
            "model": call.model,
            "role": call.role,
            "prompt": keep("\n\n".join(f"[{m.role}]\n{m.text}" for m in call.messages)),
            "reply": keep(done.text),
            "status": done.status,
            "finish": done.finish,
            "resolved": done.model,
            "latency": round(done.latency, 4),
            "usage": [done.usage.prompt, done.usage.completion],
            **({"notes": list(done.notes)} if done.notes else {}),
            **({"reason": done.reason} if done.reason else {}),
        }
        for call, done in s.calls
    ]
    return out


# --------------------------------------------------------------------------- reading


class Table:
    """The scalar columns of one or more run files, as arrays: ``table["clean_score"]`` is float with NaN for missing,
    text columns are :class:`Category`.  Order of rows carries no meaning."""

    def __init__(self, columns: Mapping[str, Any], n: int, path: Path | None = None) -> None:
        self._columns = dict(columns)
        self.n = n
        self.path = path

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def where(self, mask: Any) -> Table:
        """The rows where a boolean array is true."""
        import numpy as np

        rows = np.flatnonzero(mask)
        picked = {
            name: Category(col.codes[rows], col.values) if isinstance(col, Category) else col[rows]
            for name, col in self._columns.items()
        }
        return Table(picked, int(rows.size), self.path)

    def only(self, **equal: str) -> Table:
        """The rows whose text columns have the given values."""
        mask = None
        for name, value in equal.items():
            found = self._columns[name].equals(value)
            mask = found if mask is None else mask & found
        return self if mask is None else self.where(mask)

    def distinct(self, name: str) -> tuple[str, ...]:
        """The values that occur in a text column, sorted."""
        col = self._columns[name]
        import numpy as np

        return tuple(col.values[i] for i in np.unique(col.codes) if i >= 0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row as a dictionary of scalars (for exports; loads nothing more)."""
        for i in range(self.n):
            yield {name: _scalar(col, i) for name, col in self._columns.items()}

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame; raises :class:`ConfigError` where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("pandas is not installed: pip install pandas, or use rows() or export") from None
        data = {}
        for name, col in self._columns.items():
            data[name] = pd.Categorical.from_codes(col.codes, list(col.values)) if isinstance(col, Category) else col
        return pd.DataFrame(data)

    @classmethod
    def load(cls, path: Path, columns: Sequence[str] | None = None) -> Table:
        """Read the scalar columns of ``run.sqlite`` (``detail`` is left out unless asked for)."""
        wanted = list(columns) if columns is not None else [n for n in NAMES if n not in ("detail", "error", "trace")]
        db = open_run(path)
        try:
            return cls._read(db, Path(path), wanted, PACKS)
        except Clash:
            return cls._read(db, Path(path), wanted, ())
        finally:
            db.close()

    @classmethod
    def _read(
        cls, db: sqlite3.Connection, path: Path, wanted: list[str], together: tuple[tuple[str, ...], ...]
    ) -> Table:
        """All rows in the order of their keys; columns of ``together`` are read as one text and taken apart."""
        import numpy as np

        kinds = dict(COLUMNS)
        (n,) = db.execute("SELECT count(*) FROM trials").fetchone()
        out: dict[str, Any] = {}
        held = {row[1] for row in db.execute("PRAGMA table_info(trials)")}
        wanted = [c for c in wanted if c in held]
        absent = [c for c in kinds if c not in held]  # a file of an older version: those columns are missing values
        packs = [tuple(c for c in pack if c in wanted) for pack in together]
        packs = [pack for pack in packs if pack]
        single = [c for c in wanted if not any(c in pack for pack in packs)]
        keys: list[Any] = [*packs, *single]
        numbers = {c: np.full(n, np.nan) for c in single if kinds[c] != TEXT}
        codes = {c: np.full(n, -1, dtype=np.int32) for c in keys if c not in numbers}
        seen: dict[Any, dict[str | None, int]] = {c: {None: -1} for c in codes}
        names = [*(packed(pack) for pack in packs), *(f'"{c}"' for c in single)]
        cursor = db.execute(f"SELECT {', '.join(names)} FROM trials ORDER BY cell")
        start = 0
        while block := cursor.fetchmany(20_000):
            stop = start + len(block)
            for key, values in zip(keys, zip(*block, strict=True), strict=True):
                if key in numbers:
                    numbers[key][start:stop] = values  # numpy reads None as NaN
                    continue
                index = seen[key]
                for v in set(values).difference(index):
                    index[v] = len(index) - 1
                codes[key][start:stop] = [index[v] for v in values]
            start = stop
        for pack in packs:
            out.update(unpacked(pack, codes.pop(pack), seen.pop(pack), kinds))
        out.update(numbers)
        out.update({c: Category.ordered(codes[c], tuple(v for v in seen[c] if v is not None)) for c in codes})
        for c in absent:
            out[c] = Category(np.full(n, -1, dtype=np.int32), ()) if kinds[c] == TEXT else np.full(n, np.nan)
        return cls(out, n, path)


def _scalar(col: Any, i: int) -> Any:
    if isinstance(col, Category):
        return col[i]
    value = float(col[i])
    return None if value != value else (int(value) if value.is_integer() else value)


def open_run(path: Path) -> sqlite3.Connection:
    """A read-only connection to a run file; a missing, damaged or newer one is a clear error."""
    if not Path(path).is_file():
        raise DataError(f"{path}: no such run file; `robustjudge run` makes one")
    try:
        db = connect(path, readonly=True)
        found = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    except sqlite3.DatabaseError as fault:
        raise StorageError(f"{path}: not a readable run file ({fault}); restore it or run again") from None
    if found is None or int(found[0]) > VERSION:
        raise DataError(f"{path}: written by a newer version of robustjudge; upgrade to read it")
    return db


def details(db: sqlite3.Connection, cells: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The ``detail`` of the given cells, with every hash replaced by its text where it was stored."""
    out = {}
    for cell in cells:
        row = db.execute("SELECT detail, error FROM trials WHERE cell = ?", (cell,)).fetchone()
        if row:
            out[cell] = {**json.loads(row[0]), "error": row[1]}
    return out


def content(db: sqlite3.Connection, hashed: str | None) -> str | None:
    """The text behind a hash; ``None`` when it was not stored (``--store hashes``)."""
    if not hashed:
        return None
    row = db.execute("SELECT text FROM contents WHERE hash = ?", (hashed,)).fetchone()
    return row[0] if row else None
