"""Where labels are kept: one SQLite file, append-only, safe with several raters at once.

Every label is committed before the next item is shown.  A changed mind is a further row: the latest counts, the first
is not lost.  Adjudications stand in a table of their own, so that agreement before adjudication can always be told.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from robustjudge.errors import ConfigError, DataError
from robustjudge.profile.frame import Drawn, sitting
from robustjudge.profile.longform import LabelRow
from robustjudge.spec import digest

SCHEMA = """
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (item TEXT PRIMARY KEY, task TEXT NOT NULL, response TEXT NOT NULL, reference TEXT NOT NULL,
  stratum TEXT NOT NULL, inclusion_prob REAL NOT NULL);
CREATE TABLE places (rater TEXT, position INTEGER, item TEXT REFERENCES items, repeat INTEGER,
  PRIMARY KEY (rater, position));
CREATE TABLE labels (id INTEGER PRIMARY KEY, rater TEXT, position INTEGER, label TEXT NOT NULL, seconds REAL,
  at TEXT NOT NULL, FOREIGN KEY (rater, position) REFERENCES places);
CREATE TABLE adjudications (id INTEGER PRIMARY KEY, item TEXT REFERENCES items, label TEXT NOT NULL, who TEXT NOT NULL,
  at TEXT NOT NULL);
CREATE VIEW current AS SELECT p.rater, p.position, p.item, p.repeat, l.label, l.seconds, l.at FROM places p
  JOIN labels l ON l.id = (SELECT max(id) FROM labels WHERE rater = p.rater AND position = p.position);
"""


@dataclass(frozen=True, slots=True)
class Item:
    """What a rater sees of one item; all of it is untrusted text."""

    id: str
    task: str
    response: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a rater's sitting: the item there, and the label given so far (empty: none)."""

    position: int
    item: Item
    label: str = ""


class Store:
    """The labels of one study.  Each method is one transaction; any number of threads or processes may share a file."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise DataError(f"{path}: no such label store; `robustjudge label ITEMS --raters a,b` makes one")
        self.path = path
        with self._open() as db:
            found = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM study")}
        self.rubric: str = found["rubric"]
        self.labels: tuple[str, ...] = tuple(found["labels"])
        self.raters: tuple[str, ...] = tuple(found["raters"])
        self.session: str = found["session"]

    @classmethod
    def create(
        cls,
        path: Path,
        items: Mapping[str, Item],
        drawn: Sequence[Drawn],
        *,
        rubric: str,
        labels: Sequence[str],
        raters: Sequence[str],
        seed: int = 0,
        repeats: float = 0.1,
    ) -> Store:
        """A new store: every rater gets the drawn items in an order of their own, with hidden repeats among them."""
        if path.exists():
            raise ConfigError(f"{path} exists already; open it to go on, or choose another file")
        if len(set(labels)) < 2 or len(set(labels)) != len(labels) or len(labels) > 9:
            raise ConfigError("declare two to nine different labels, one for each key")
        if not rubric.strip():
            raise ConfigError("a rubric is needed: one precise, testable sentence (--rubric)")
        if len(set(raters)) != len(raters) or not raters or "adjudicator" in raters:
            raise ConfigError("raters need different names, and none is called adjudicator")
        path.parent.mkdir(parents=True, exist_ok=True)
        study = {"rubric": rubric, "labels": list(labels), "raters": list(raters), "seed": seed, "repeats": repeats}
        study["session"] = digest(json.dumps(study, sort_keys=True), *[d.item for d in drawn])[:12]
        db = _connect(path)
        try:
            db.executescript("PRAGMA journal_mode = WAL;" + SCHEMA)
            with db:
                db.executemany("INSERT INTO study VALUES (?, ?)", [(k, json.dumps(v)) for k, v in study.items()])
                db.executemany(
                    "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (d.item, i.task, i.response, i.reference, d.stratum, d.inclusion_prob)
                        for d in drawn
                        if (i := items[d.item])
                    ],
                )
                for k, rater in enumerate(raters):
                    order = sitting(drawn, seed=seed * 1009 + k + 1, repeats=repeats)
                    places = [(rater, p.position, p.item, p.repeat) for p in order]
                    db.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", places)
        finally:
            db.close()
        return cls(path)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = _connect(self.path)
        try:
            with db:
                yield db
        finally:
            db.close()

    # ----------------------------------------------------------------- labelling

    def progress(self, rater: str) -> tuple[int, int]:
        """(places labelled, places in all) of a rater."""
        with self._open() as db:
            (total,) = db.execute("SELECT count(*) FROM places WHERE rater = ?", (rater,)).fetchone()
            (done,) = db.execute("SELECT count(*) FROM current WHERE rater = ?", (rater,)).fetchone()
        return done, total

    def done(self) -> bool:
        """Whether every rater has labelled every place."""
        return all(a == b for a, b in map(self.progress, self.raters))

    def next(self, rater: str) -> Place | None:
        """The first place of a rater without a label."""
        with self._open() as db:
            row = db.execute(
                "SELECT min(position) FROM places p WHERE rater = ? AND NOT EXISTS"
                " (SELECT 1 FROM labels l WHERE l.rater = p.rater AND l.position = p.position)",
                (rater,),
            ).fetchone()
        return None if row[0] is None else self.place(rater, row[0])

    def place(self, rater: str, position: int) -> Place | None:
        """One place of a rater, with its label so far."""
        with self._open() as db:
            row = db.execute(
                "SELECT i.item, task, response, reference, coalesce((SELECT label FROM current c WHERE c.rater = p.rater"
                " AND c.position = p.position), '') FROM places p JOIN items i USING (item) WHERE rater = ? AND position = ?",
                (rater, position),
            ).fetchone()
        return None if row is None else Place(position, Item(*row[:4]), row[4])

    def put(self, rater: str, position: int, label: str, seconds: float | None = None) -> None:
        """Keep a label; it is on disk when this returns."""
        if label not in self.labels:
            raise DataError(f"label {label!r} is not among {', '.join(self.labels)}")
        with self._open() as db:
            found = db.execute("SELECT 1 FROM places WHERE rater = ? AND position = ?", (rater, position)).fetchone()
            if found is None:
                raise DataError(f"rater {rater} has no place {position}")
            db.execute(
                "INSERT INTO labels (rater, position, label, seconds, at) VALUES (?, ?, ?, ?, ?)",
                (rater, position, label, seconds, _now()),
            )

    # ----------------------------------------------------------------- adjudication

    def disputed(self) -> list[tuple[Item, list[tuple[str, str]], str]]:
        """Items on which the raters' first labels differ: (item, who said what, adjudicated label or empty)."""
        with self._open() as db:
            said: dict[str, list[tuple[str, str]]] = {}
            for item, rater, label in db.execute(
                "SELECT item, rater, label FROM current WHERE repeat = 0 ORDER BY item, rater"
            ):
                said.setdefault(item, []).append((rater, label))
            ruled = dict(db.execute("SELECT item, label FROM adjudications ORDER BY id"))
            split = [i for i, given in said.items() if len({v for _, v in given}) > 1]
            rows = {r[0]: Item(*r) for r in db.execute("SELECT item, task, response, reference FROM items")}
        return [(rows[i], said[i], ruled.get(i, "")) for i in split]

    def adjudicate(self, item: str, label: str, who: str) -> None:
        """Keep a ruling on a disputed item; the raters' own labels stay as they are."""
        if label not in self.labels:
            raise DataError(f"label {label!r} is not among {', '.join(self.labels)}")
        if not self.done():
            raise DataError("adjudication opens when every rater is done")
        if item not in {i.id for i, _, _ in self.disputed()}:
            raise DataError(f"{item!r} is not in dispute")
        with self._open() as db:
            db.execute(
                "INSERT INTO adjudications (item, label, who, at) VALUES (?, ?, ?, ?)", (item, label, who, _now())
            )

    # ----------------------------------------------------------------- export

    def rows(self) -> list[LabelRow]:
        """Everything in long form: each rater's labels as given, before any adjudication, then the rulings."""
        out: list[LabelRow] = []
        with self._open() as db:
            for rater, position, item, repeat, label, seconds, stratum, prob in db.execute(
                "SELECT rater, position, item, repeat, label, seconds, stratum, inclusion_prob FROM current"
                " JOIN items USING (item) ORDER BY rater, position"
            ):
                out.append(
                    LabelRow(
                        len(out) + 1,
                        item,
                        rater,
                        "human",
                        label,
                        repeat=repeat,
                        stratum=stratum,
                        inclusion_prob=prob,
                        seconds=None if seconds is None else round(seconds, 2),
                        session=self.session,
                        position=position,
                    )
                )
            ruled: Iterable[tuple[str, str, str, str, float]] = db.execute(
                "SELECT item, label, who, stratum, inclusion_prob FROM adjudications JOIN items USING (item)"
                " WHERE id IN (SELECT max(id) FROM adjudications GROUP BY item) ORDER BY item"
            )
            for item, label, who, stratum, prob in ruled:
                row = LabelRow(len(out) + 1, item, who, "adjudicated", label, stratum=stratum, inclusion_prob=prob)
                out.append(row)
        return out


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30.0)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA synchronous = FULL")
    return db


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
