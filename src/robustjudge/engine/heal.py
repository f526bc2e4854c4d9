"""Healing of a damaged SQLite file: it is moved aside, and what can still be read of it is copied into a new one."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

CHECKED_BYTES = 1 << 28
"""Files up to this size are checked page by page when they are opened; larger ones when a page is used."""

_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_damage(fault: BaseException) -> bool:
    """Whether an error says that the file itself is broken (not that the disk is full or another process busy)."""
    return isinstance(fault, sqlite3.DatabaseError) and getattr(fault, "sqlite_errorcode", 0) & 0xFF in _BROKEN


def check(db: sqlite3.Connection, path: Path) -> None:
    """Raise :class:`sqlite3.DatabaseError` with code ``SQLITE_CORRUPT`` when a page of a file is broken."""
    if path.stat().st_size > CHECKED_BYTES:
        return
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        fault = sqlite3.DatabaseError(f"database disk image is malformed: {found}")
        fault.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise fault


def heal(path: Path, schema: str) -> tuple[Path, int]:
    """Move ``path`` aside and make it anew with every row that can still be read; where it went, and how many rows.

    The page count in the old file's header is set to what is there, since SQLite opens no file shorter than it says.
    """
    aside = _aside(path)
    for tail in ("", "-wal", "-shm"):
        if Path(f"{path}{tail}").exists():
            os.replace(f"{path}{tail}", f"{aside}{tail}")
    _shorten(aside)
    fresh = sqlite3.connect(path, isolation_level=None)
    try:
        fresh.execute("PRAGMA journal_mode=WAL")
        fresh.executescript(schema)
        try:
            old = sqlite3.connect(f"{aside.absolute().as_uri()}?mode=ro", uri=True)
        except sqlite3.Error:
            return aside, 0
        try:
            names = [n for (n,) in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return aside, sum(_copied(old, fresh, name) for name in names)
        finally:
            old.close()
    finally:
        fresh.close()


def _aside(path: Path) -> Path:
    i = 1
    while (found := path.with_name(f"{path.name}.damaged-{i}")).exists():
        i += 1
    return found


def _shorten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        head = file.read(100)
        if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
            return
        page = int.from_bytes(head[16:18], "big")
        pages = size // (65536 if page == 1 else page or 4096)
        if pages < int.from_bytes(head[28:32], "big"):
            file.seek(28)
            file.write(pages.to_bytes(4, "big"))


def _copied(old: sqlite3.Connection, fresh: sqlite3.Connection, table: str) -> int:
    """Copy what can be read of a table: whole, or else from both ends and in 256 ranges of its (hexadecimal) key, so
    that one broken page costs its own neighbourhood only."""
    about = list(fresh.execute(f'PRAGMA table_info("{table}")'))
    keys = [row[1] for row in about if row[5]]
    picked = ", ".join(f'"{row[1]}"' for row in about)
    put = f'INSERT OR REPLACE INTO "{table}" ({picked}) VALUES ({", ".join("?" * len(about))})'
    fresh.execute("BEGIN")

    def scan(where: str, bounds: tuple[str, ...]) -> bool:
        for direction in ("ASC", "DESC"):
            order = ", ".join(f'"{k}" {direction}' for k in keys)
            try:
                for row in old.execute(f'SELECT {picked} FROM "{table}" {where} ORDER BY {order}', bounds):
                    fresh.execute(put, row)
                return True
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                continue  # the rows read so far are kept; the other end may hold more
        return False

    if not scan("", ()):
        for i in range(256):
            scan(f'WHERE "{keys[0]}" >= ? AND "{keys[0]}" < ?', (f"{i:02x}", f"{i:02x}g"))
    fresh.execute("COMMIT")
    (n,) = fresh.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return int(n)
