"""The one writer: a thread that owns every SQLite connection we write to, and commits in groups."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustjudge.errors import StorageError

GROUP_SECONDS = 0.1
GROUP_ROWS = 2000

Statement = tuple[str, str, Sequence[Any]]  # database alias, SQL, parameters


class Writer:
    """Commits statements in the order they were put, at most ``GROUP_SECONDS`` after the first of a group.

    All databases of one group are committed in the order they were opened: the ledger before the table, so that a row
    never stands without the calls it was made from.  WAL with ``synchronous=NORMAL`` survives kill -9 (not power
    loss).  A failed write (disk full, locked, damaged) is kept and raised by the next ``put`` or ``flush``.
    """

    def __init__(self) -> None:
        self._queue: deque[Statement] = deque()
        self._files: dict[str, Path] = {}
        self._fault: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._wake, self._hurry, self._idle = threading.Event(), threading.Event(), threading.Event()
        self._closing = False
        self.committed = 0

    def open(self, alias: str, path: Path, schema: str) -> None:
        """Create or open a database and its tables (before the thread starts)."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with connect(path) as db:
                db.executescript(schema)
            db.close()
        except sqlite3.Error as fault:
            raise StorageError(
                f"{path}: cannot be opened for writing ({fault}); is the disk full or the file damaged?"
            ) from None
        self._files[alias] = path

    def put(self, alias: str, sql: str, params: Sequence[Any]) -> None:
        """Queue one statement; raises :class:`StorageError` when an earlier one failed."""
        if self._fault is not None:
            self.check()
        self._queue.append((alias, sql, params))
        if not self._wake.is_set():
            self._start()
            self._wake.set()

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
        connections = {alias: connect(path) for alias, path in self._files.items()}
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
                    except (sqlite3.Error, OSError) as fault:
                        self._fault = self._fault or fault
                self._idle.set()
                if self._closing and not self._queue:
                    return
        finally:
            self._idle.set()
            for db in connections.values():
                db.close()

    def _commit(self, connections: dict[str, sqlite3.Connection], group: list[Statement]) -> None:
        if self._fault is not None:
            return
        used = {alias for alias, _, _ in group}
        for alias, db in connections.items():
            if alias not in used:
                continue
            db.execute("BEGIN IMMEDIATE")
            runs: list[tuple[str, list[Sequence[Any]]]] = []
            for a, sql, params in group:
                if a != alias:
                    continue
                if runs and runs[-1][0] == sql:
                    runs[-1][1].append(params)
                else:
                    runs.append((sql, [params]))
            try:
                for sql, rows in runs:
                    db.executemany(sql, rows)
                db.execute("COMMIT")
            except (sqlite3.Error, OSError):
                db.rollback()
                raise
        self.committed += len(group)


def connect(path: Path | str, readonly: bool = False) -> sqlite3.Connection:
    """A connection in WAL mode that waits for other processes' writes up to 30 s."""
    uri = f"{Path(path).absolute().as_uri()}{'?mode=ro' if readonly else ''}"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    if not readonly:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
    return db
