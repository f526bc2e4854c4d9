"""The ledger: every reply once, addressed by what was asked, of whom, how, and under which replica name."""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from robustjudge import door
from robustjudge.engine.tail import Tail, left_behind
from robustjudge.engine.writer import Writer, connect
from robustjudge.errors import ConfigError
from robustjudge.nouns import Completion, TokenOdds, Usage

Mode = Literal["live", "replay-only", "record", "off"]
"""``live``: read, else send and keep.  ``replay-only``: read, else an error row.  ``record``: send and keep anew, never
read.  ``off``: neither."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, replica TEXT NOT NULL, at REAL NOT NULL, reply TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS wanted (key TEXT PRIMARY KEY, model TEXT NOT NULL, replica TEXT NOT NULL) WITHOUT ROWID;
"""

_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_PUT = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)"


class Bloom:
    """Says "surely not" of a key without asking SQLite, whose every look-up costs a hand-over between threads.

    32 MiB of bits: under one key in a hundred is asked for in vain at 20 million keys, and memory stays flat.  Keys that
    another process adds meanwhile are not seen; they would be asked again, never answered wrongly.
    """

    BITS = 1 << 28

    def __init__(self) -> None:
        self._bits = bytearray(self.BITS >> 3)

    def add(self, key: str) -> None:
        for i in (0, 7, 14, 21):  # four 28-bit pieces of the key, which is a hash already
            place = int(key[i : i + 7], 16)
            self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, key: str) -> bool:
        bits = self._bits
        for i in (0, 7, 14, 21):  # nearly always the first piece says no
            place = int(key[i : i + 7], 16)
            if not bits[place >> 3] >> (place & 7) & 1:
                return False
        return True


class Ledger:
    """Content-addressed store of replies.  Keys hold the endpoint (base URL without credentials), provider, model,
    revision, rendered messages, sampling and replica name; never a credential, and never the reader's version: parsing
    is not cached.  Entries that cannot be read are counted as misses (``damaged``) and heal when they are sent again.
    """

    def __init__(self, writer: Writer, path: Path | None, mode: Mode = "live") -> None:
        if path is None and mode in ("replay-only", "record"):
            raise ConfigError(f"mode {mode} needs a ledger; name its file, or run with mode off")
        self.mode: Mode = mode if path is not None else "off"
        self.path = path
        self.damaged = 0
        self._writer = writer
        self._fresh: dict[str, str] = {}  # as text, which the garbage collector need not walk
        self._marks: list[tuple[int, str]] = []
        self._put = 0
        self._db: sqlite3.Connection | None = None
        self._maybe = Bloom()
        if self.mode != "off":
            assert path is not None
            writer.open("ledger", path, SCHEMA)
            self._tail = Tail(path)
            for file, replies in left_behind(path):
                for reply in replies:
                    writer.put("ledger", _PUT, reply)
                writer.flush()
                file.unlink(missing_ok=True)
            self._read()

    def _read(self) -> None:
        """Open the file for reading, and note which keys it may hold."""
        assert self.path is not None
        self._healed = self._writer.healed.get("ledger", 0)
        self._db = connect(self.path, readonly=True)
        try:
            for (key,) in self._db.execute("SELECT key FROM replies"):
                self._maybe.add(key)
        except sqlite3.DatabaseError:
            self.damage()

    def damage(self) -> None:
        """Count an entry that cannot be read; the first one warns."""
        self.damaged += 1
        if self.damaged == 1:
            told = f"{self.path} holds entries that cannot be read; they are asked for again and written anew"
            warnings.warn(told, RuntimeWarning, stacklevel=3)

    def get(self, key: str) -> Any:
        """The stored JSON value, or ``None``."""
        fresh = self._fresh.get(key)
        if fresh is not None:
            return json.loads(fresh)
        if self.mode in ("off", "record") or self._db is None or key not in self._maybe:
            return None
        if self._healed != self._writer.healed.get("ledger", 0):
            self._db.close()
            self._read()
        try:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return json.loads(row[0]) if row else None
        except (sqlite3.DatabaseError, ValueError, TypeError):
            self.damage()
            return None

    def put(self, key: str, model: str, replica: str, value: Any) -> None:
        """Keep a JSON value.  It can be read back at once and survives kill -9; it is in the ledger at the writer's next
        commit."""
        if self.mode == "off":
            return
        text = door.safe(_write(value))
        reply = (key, model, replica, time.time(), text)
        self._tail.add(reply)
        self._writer.put("ledger", _PUT, reply)
        self._fresh[key] = text
        self._maybe.add(key)
        self._marks.append((self._put, key))
        self._put += 1
        if len(self._marks) > 8192:
            self._forget()

    def _forget(self) -> None:
        """Drop the older half of what is surely committed, so that memory stays flat."""
        self._writer.flush()
        self._tail.clear()
        half = len(self._marks) // 2
        for _, key in self._marks[:half]:
            self._fresh.pop(key, None)
        del self._marks[:half]

    def close(self) -> None:
        """Commit what was put, and close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None
            self._writer.flush()
            self._tail.close()


_DEFAULTS = tuple((f.name, getattr(Completion(), f.name)) for f in fields(Completion))


def pack(c: Completion) -> dict[str, Any]:
    """A completion as JSON, defaults left out."""
    out: dict[str, Any] = {}
    for name, default in _DEFAULTS:
        value = getattr(c, name)
        if value is not default and value != default:
            out[name] = value
    if "usage" in out:
        u = c.usage
        counts = {"prompt": u.prompt, "completion": u.completion, "cached": u.cached, "reasoning": u.reasoning}
        out["usage"] = {k: v for k, v in counts.items() if v}
    if "tokens" in out:
        out["tokens"] = [[t.token, t.logprob, [list(x) for x in t.top]] for t in c.tokens]
    return out


def unpack(data: dict[str, Any]) -> Completion:
    """The inverse of :func:`pack`."""
    given = dict(data)
    if "usage" in given:
        given["usage"] = Usage(**given["usage"])
    if "tokens" in given:
        given["tokens"] = tuple(TokenOdds(t, lp, tuple((a, b) for a, b in top)) for t, lp, top in given["tokens"])
    if "notes" in given:
        given["notes"] = tuple(given["notes"])
    return Completion(**given)
