"""Decisions of reviewers: an append-only trail in SQLite, or in PostgreSQL for a team; nobody overwrites anybody.

Every entry of an item has a version, 1, 2, 3 ...; item and version are the primary key.  Who decides names the version
that the page showed: if somebody was faster, the entry is kept as not applied and :class:`Conflict` is raised.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from robustjudge import door
from robustjudge.errors import ConfigError, RobustJudgeError, StorageError

FINDING = ("confirm", "dismiss", "redesign", "other")
"""What can be said of a failure: it stands; it is acceptable; redesign the prompt; use another method than this judge."""

INPUT = ("approve", "edit", "reject")
"""What can be said of a generated input before it is sent."""

NOTE = "note"
LONGEST = 20_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS review_events (item TEXT NOT NULL, version INTEGER NOT NULL, decision TEXT NOT NULL,
who TEXT NOT NULL, at TEXT NOT NULL, note TEXT NOT NULL, content TEXT NOT NULL, applied INTEGER NOT NULL,
PRIMARY KEY (item, version))
"""
_APPEND = "INSERT INTO review_events VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_TRAIL = "SELECT * FROM review_events WHERE item = ? ORDER BY version"
_ALL = "SELECT * FROM review_events ORDER BY at, item, version"
_SAID = "FROM review_events WHERE applied = 1 AND decision <> 'note'"
_STANDING = f"SELECT item, version, decision, who, at, note, content, applied {_SAID}"
_DECIDED = f"SELECT DISTINCT item {_SAID}"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the trail.  ``content`` is the new text of an edited input; ``applied`` is false for a decision that
    came after another one its author had not seen."""

    item: str
    version: int
    decision: str
    who: str
    at: str
    note: str = ""
    content: str = ""
    applied: bool = True


class Conflict(RobustJudgeError):
    """Somebody decided on the item in the meantime; the attempt is in the trail, not applied."""

    def __init__(self, attempt: Event, trail: Sequence[Event]) -> None:
        others = sorted({e.who for e in trail if e.version < attempt.version})
        super().__init__(
            f"{', '.join(others)} wrote on this item after the page was loaded; your decision is kept in the trail but does"
            " not apply: look again and decide again"
        )
        self.attempt, self.trail = attempt, tuple(trail)


class Backend(Protocol):
    """What a store needs of a database: rows of a query, and whether an insert took place."""

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def append(self, sql: str, params: Sequence[Any]) -> bool: ...

    def close(self) -> None: ...


class Store:
    """The trail of every item.  Safe to use from several threads and, through the database, several processes."""

    def __init__(self, backend: Backend, where: str) -> None:
        self._db, self.where = backend, where

    def trail(self, item: str) -> tuple[Event, ...]:
        """Everything that was ever said on an item, oldest first."""
        return tuple([_event(r) for r in self._db.rows(_TRAIL, (item,))])

    def version(self, item: str) -> int:
        """The version a reviewer of the item has seen when nothing newer was written; 0 for a new one."""
        trail = self.trail(item)
        return trail[-1].version if trail else 0

    def decide(self, item: str, seen: int, decision: str, who: str, note: str = "", content: str = "") -> Event:
        """Append a decision made on version ``seen``; raises :class:`Conflict` when there is a newer one."""
        if decision not in (*FINDING, *INPUT):
            raise ConfigError(f"a reviewer decides {', '.join((*FINDING, *INPUT))}, not {decision!r}")
        if decision == "reject" and not note.strip():
            raise ConfigError("an input is rejected with a reason: write it into the note")
        event = self._made(item, seen + 1, decision, who, note, content)
        if self.version(item) == seen and self._db.append(_APPEND, _values(event)):
            return event
        late = self._added(replace(event, applied=False))
        raise Conflict(late, self.trail(item))

    def note(self, item: str, who: str, note: str) -> Event:
        """Append a remark that decides nothing."""
        if not note.strip():
            raise ConfigError("the note is empty")
        return self._added(self._made(item, 0, NOTE, who, note, ""))

    def decided(self) -> frozenset[str]:
        """The items that have a decision."""
        return frozenset([r[0] for r in self._db.rows(_DECIDED)])

    def standing(self, items: Sequence[str] | None = None) -> dict[str, Event]:
        """The decision that stands for each item that has one (default: of all items)."""
        if items is None:
            return {r[0]: _event(r) for r in self._db.rows(f"{_STANDING} ORDER BY item, version")}
        if not items:
            return {}
        sql = f"{_STANDING} AND item IN ({', '.join('?' * len(items))}) ORDER BY item, version"
        return {r[0]: _event(r) for r in self._db.rows(sql, tuple(items))}

    def events(self) -> Iterator[Event]:
        """The whole trail, oldest first."""
        return (_event(r) for r in self._db.rows(_ALL))

    def close(self) -> None:
        self._db.close()

    def _made(self, item: str, version: int, decision: str, who: str, note: str, content: str) -> Event:
        if len(note) > LONGEST or len(content) > 50 * LONGEST:
            raise ConfigError(f"a note has at most {LONGEST:,} characters")
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Event(item, version, decision, door.safe(who), at, door.safe(note.strip()), door.safe(content))

    def _added(self, event: Event) -> Event:
        """Append at the next free version, however many write at once."""
        while True:
            event = replace(event, version=self.version(event.item) + 1)
            if self._db.append(_APPEND, _values(event)):
                return event


def _values(e: Event) -> tuple[Any, ...]:
    return (*astuple(e)[:-1], int(e.applied))


def _event(row: Sequence[Any]) -> Event:
    item, version, decision, who, at, note, content, applied = row
    return Event(item, int(version), decision, who, at, note, content, bool(applied))


# --------------------------------------------------------------------------- where it lies


class Sqlite:
    """A file; other processes may write to it at the same time."""

    def __init__(self, path: Path) -> None:
        from robustjudge.engine.writer import connect

        self._lock = threading.Lock()
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = connect(path)
            self._db.execute(SCHEMA)
        except (sqlite3.Error, OSError) as fault:
            raise StorageError(f"{path}: the review store cannot be opened ({fault})") from None

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._do(sql, params).fetchall()

    def append(self, sql: str, params: Sequence[Any]) -> bool:
        with self._lock:
            return self._do(sql, params).rowcount == 1

    def _do(self, sql: str, params: Sequence[Any]) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, params)
        except sqlite3.Error as fault:
            raise StorageError(f"{self.path}: the review store cannot be used ({fault}); nothing was decided") from None

    def close(self) -> None:
        self._db.close()


class Postgres:
    """A server that a team shares.  A lost connection is opened again once; the password stays out of every message."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise ConfigError("PostgreSQL needs the extra: pip install 'robustjudge[postgres]'") from None
        self._psycopg, self._url, self._lock = psycopg, url, threading.Lock()
        self._db: Any = self._connected()
        with suppress(psycopg.Error):  # another process makes it at this moment, or we may use the table but make none
            self._db.execute(SCHEMA)
        self._do("SELECT item FROM review_events LIMIT 0", ())

    def _connected(self) -> Any:
        try:
            return self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except self._psycopg.Error as fault:
            raise StorageError(f"{told(self._url)}: cannot be reached ({type(fault).__name__}); is it up?") from None

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            found: list[tuple[Any, ...]] = self._do(sql, params).fetchall()
            return found

    def append(self, sql: str, params: Sequence[Any]) -> bool:
        with self._lock:
            return bool(self._do(sql, params).rowcount == 1)

    def _do(self, sql: str, params: Sequence[Any]) -> Any:
        sql = sql.replace("?", "%s")
        try:
            if self._db.closed:
                self._db = self._connected()
            try:
                return self._db.execute(sql, params)
            except self._psycopg.OperationalError:
                self._db.close()
                self._db = self._connected()
                return self._db.execute(sql, params)
        except self._psycopg.Error as fault:
            why = type(fault).__name__
            raise StorageError(f"{told(self._url)}: cannot be used ({why}); nothing was decided") from None

    def close(self) -> None:
        self._db.close()


def told(url: str) -> str:
    """A database address without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def open_store(where: str | Path) -> Store:
    """The store at a path (SQLite) or a ``postgresql://`` address."""
    text = str(where)
    if text.startswith(("postgresql://", "postgres://")):
        return Store(Postgres(text), told(text))
    if "://" in text:
        raise ConfigError(f"a review store is a file or a postgresql:// address, not {told(text)}")
    return Store(Sqlite(Path(text)), text)


def decisions(where: str | Path) -> Mapping[str, str]:
    """What stands for each item: the decision by content hash.  A file that does not exist has none."""
    if "://" not in str(where) and not Path(where).exists():
        return {}
    store = open_store(where)
    try:
        return {item: e.decision for item, e in store.standing().items()}
    finally:
        store.close()
