"""The one writer: a thread that owns every SQLite connection we write to, and commits in groups."""

from __future__ import annotations

import sqlite3
import threading
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from robustjudge.engine.heal import check as check_pages, heal, is_damage
from robustjudge.errors import StorageError

GROUP_SECONDS = 0.1
GROUP_ROWS = 2000

Statement = tuple[str, str, Sequence[Any]]  # database alias, SQL, parameters


class Writer:
    """Commits statements in the order they were put, at most ``GROUP_SECONDS`` after the first of a group.

    All databases of one group are committed in the order they were opened: the ledger before the table, so that a row
    never stands without the calls it was made from.  WAL with ``synchronous=NORMAL`` survives kill -9 (not power
    loss).  A failed write (disk full, locked) is kept and raised by the next ``put`` or ``flush``, and what was opened
    before the file that failed is still written (replies that are paid for, but no row); a damaged file is
    moved aside with one warning, what can be read of it is kept, and writing goes on (``healed`` counts how often).
    """

    def __init__(self) -> None:
        self._queue: deque[Statement] = deque()
        self._files: dict[str, tuple[Path, str]] = {}
        self._sound: list[str] = []  # what can be written; where one fails, those opened before it still can
        self._fault: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._wake, self._hurry, self._idle = threading.Event(), threading.Event(), threading.Event()
        self._closing = False
        self.committed = 0
        self.healed: dict[str, int] = {}

    def open(self, alias: str, path: Path, schema: str) -> None:
        """Create or open a database and its tables (before the thread starts)."""
        self._files[alias] = (path, schema)
        self._sound.append(alias)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self._prepare(path, schema)
            except sqlite3.DatabaseError as fault:
                if not is_damage(fault):
                    raise
                self._heal(alias)
        except (sqlite3.Error, OSError) as fault:
            raise StorageError(f"{path}: cannot be opened for writing ({fault}); is the disk full?") from None

    def _prepare(self, path: Path, schema: str) -> None:
        old = path.exists() and path.stat().st_size > 0
        db = connect(path)
        try:
            if old:
                check_pages(db, path)
            db.executescript(schema)
        finally:
            db.close()

    def _heal(self, alias: str) -> None:
        path, schema = self._files[alias]
        aside, kept = heal(path, schema)
        self.healed[alias] = self.healed.get(alias, 0) + 1
        warnings.warn(
            f"{path} was damaged: it now lies in {aside.name}, {kept} rows of it could be read and are kept, and what is"
            " missing will be asked for again",
            RuntimeWarning,
            stacklevel=2,
        )

    def put(self, alias: str, sql: str, params: Sequence[Any]) -> None:
        """Queue one statement; raises :class:`StorageError` when an earlier one failed."""
        self._queue.append((alias, sql, params))
        if not self._wake.is_set():
            self._start()
            self._wake.set()
        if self._fault is not None:
            self.check()

    def _start(self) -> None:
        if self._thread is None:
            self._closing = False
            self._thread = threading.Thread(target=self._work, name="robustjudge-writer", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Raise the fault of an earlier write."""
        if self._fault is not None:
            raise StorageError(f"could not be written: {self._fault}; free disk space and run again with --resume")

    def flush(self) -> None:
        """Wait until everything put so far is committed."""
        while self._thread is not None and (self._queue or not self._idle.is_set()):
            self._idle.clear()
            self._hurry.set()
            self._wake.set()
            self._idle.wait()
        self.check()

    def close(self) -> None:
        """Commit what is queued and end the thread."""
        if self._thread is not None:
            self._closing = True
            self._hurry.set()
            self._wake.set()
            self._thread.join()
            self._thread = None
        self.check()

    def _work(self) -> None:
        connections: dict[str, sqlite3.Connection] = {}
        try:
            while True:
                self._wake.wait()
                self._hurry.wait(GROUP_SECONDS)
                self._hurry.clear()
                self._wake.clear()
                self._idle.clear()
                while self._queue:
                    group = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_ROWS))]
                    try:
                        self._commit(connections, group)
                    except Exception as fault:  # kept for the thread that waits, whatever it is: no flush may hang
                        self._fault = self._fault or fault
                self._idle.set()
                if self._closing and not self._queue:
                    return
        finally:
            self._idle.set()
            for db in connections.values():
                db.close()

    def _commit(self, connections: dict[str, sqlite3.Connection], group: list[Statement]) -> None:
        for i, alias in enumerate(self._sound):
            runs: list[tuple[str, list[Sequence[Any]]]] = []
            for a, sql, params in group:
                if a != alias:
                    continue
                if runs and runs[-1][0] == sql:
                    runs[-1][1].append(params)
                else:
                    runs.append((sql, [params]))
            try:
                self._put_runs(connections, alias, runs)
            except Exception:
                self._sound = self._sound[:i]
                raise
            self.committed += sum(len(rows) for _, rows in runs)

    def _put_runs(
        self, connections: dict[str, sqlite3.Connection], alias: str, runs: list[tuple[str, list[Sequence[Any]]]]
    ) -> None:
        if not runs:
            return
        path, _ = self._files[alias]
        try:
            if alias not in connections:
                connections[alias] = connect(path)
            self._store(connections[alias], runs)
        except sqlite3.DatabaseError as fault:
            if not is_damage(fault):
                raise
            if alias in connections:
                connections.pop(alias).close()
            self._heal(alias)
            connections[alias] = connect(path)
            self._store(connections[alias], runs)

    def _store(self, db: sqlite3.Connection, runs: list[tuple[str, list[Sequence[Any]]]]) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in runs:
                db.executemany(sql, rows)
            db.execute("COMMIT")
        except Exception:
            if db.in_transaction:
                db.rollback()
            raise


def connect(path: Path | str, readonly: bool = False) -> sqlite3.Connection:
    """A connection in WAL mode that waits for other processes' writes up to 30 s."""
    uri = f"{Path(path).absolute().as_uri()}{'?mode=ro' if readonly else ''}"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    if not readonly:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error:
            db.close()
            raise
    return db


def settle(path: Path | str) -> None:
    """Make a finished database one file that can also be read where nothing can be written (a mounted artefact).

    A database in WAL mode needs two files beside it even for reading.  Where another process has it open, or the disk
    is full, it stays in WAL mode, which loses nothing.
    """
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error:
        return
