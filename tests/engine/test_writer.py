"""The one writer: order, groups, a full disk, anything that goes wrong; never a flush that hangs."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from robustjudge.engine import writer as module
from robustjudge.engine.writer import GROUP_SECONDS, Writer, connect, settle
from robustjudge.errors import StorageError

SCHEMA = "CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v TEXT);"
PUT = "INSERT OR REPLACE INTO t VALUES (?, ?)"


def stored(path: Path) -> list[tuple[int, str]]:
    db = connect(path, readonly=True)
    try:
        return db.execute("SELECT k, v FROM t ORDER BY k").fetchall()
    finally:
        db.close()


def test_statements_are_committed_in_order_and_in_groups_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    w = Writer()
    w.open("a", tmp_path / "a.sqlite", SCHEMA)
    for i in range(500):
        w.put("a", PUT, (i % 100, str(i)))
    deadline = time.monotonic() + 20 * GROUP_SECONDS
    while len(stored(tmp_path / "a.sqlite")) < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stored(tmp_path / "a.sqlite") == [(k, str(400 + k)) for k in range(100)]
    assert w.committed == 500
    w.close()


def test_flush_waits_for_what_was_put_and_close_for_the_rest(tmp_path: Path) -> None:
    w = Writer()
    w.open("a", tmp_path / "a.sqlite", SCHEMA)
    w.open("b", tmp_path / "deep" / "b.sqlite", SCHEMA)
    w.flush()
    for i in range(50):
        w.put("a", PUT, (i, "x"))
        w.put("b", PUT, (i, "y"))
        if i % 10 == 0:
            w.flush()
            assert len(stored(tmp_path / "a.sqlite")) == len(stored(tmp_path / "deep" / "b.sqlite")) == i + 1
    w.close()
    assert len(stored(tmp_path / "deep" / "b.sqlite")) == 50
    w.put("a", PUT, (99, "after"))
    w.close()
    assert stored(tmp_path / "a.sqlite")[-1] == (99, "after")


def test_a_group_goes_to_the_first_database_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    store = Writer._store

    def told(self: Writer, db: sqlite3.Connection, runs: object) -> None:
        order.append(Path(db.execute("PRAGMA database_list").fetchone()[2]).name)
        store(self, db, runs)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "_store", told)
    w = Writer()
    w.open("ledger", tmp_path / "ledger.sqlite", SCHEMA)
    w.open("run", tmp_path / "run.sqlite", SCHEMA)
    w.put("run", PUT, (1, "row"))
    w.put("ledger", PUT, (1, "reply"))
    w.close()
    assert order == ["ledger.sqlite", "run.sqlite"]


def full_disk(monkeypatch: pytest.MonkeyPatch, pages: int = 12) -> None:
    """Every connection of the writer may hold only so many pages: SQLite's own 'database or disk is full'."""
    real = module.connect

    def small(path: Path, readonly: bool = False) -> sqlite3.Connection:
        db = real(path, readonly)
        if not readonly:
            db.execute(f"PRAGMA max_page_count={pages}")
        return db

    monkeypatch.setattr(module, "connect", small)


def test_a_full_disk_is_told_by_the_next_put_flush_and_close_and_keeps_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_disk(monkeypatch)
    w = Writer()
    w.open("a", tmp_path / "a.sqlite", SCHEMA)
    w.put("a", PUT, (1, "small"))
    w.flush()
    w.put("a", PUT, (2, "x" * 200_000))
    for act in (w.flush, lambda: w.put("a", PUT, (3, "y")), w.close):
        with pytest.raises(StorageError, match=r"full.*--resume"):
            act()
    assert stored(tmp_path / "a.sqlite") == [(1, "small")]


def test_an_error_that_is_not_sqlites_never_hangs_a_flush(tmp_path: Path) -> None:
    w = Writer()
    w.open("a", tmp_path / "a.sqlite", SCHEMA)
    w.put("a", PUT, (1, "lone \ud83d surrogate"))
    done = threading.Event()
    fault: list[BaseException] = []

    def flush() -> None:
        try:
            w.flush()
        except StorageError as error:
            fault.append(error)
        done.set()

    threading.Thread(target=flush, daemon=True).start()
    assert done.wait(5) and fault


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be opened"):
        Writer().open("a", tmp_path / "file" / "a.sqlite", SCHEMA)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot be opened"):
        Writer().open("a", tmp_path / "folder", SCHEMA)


def test_two_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    writers = [Writer() for _ in range(3)]
    for w in writers:
        w.open("a", tmp_path / "a.sqlite", SCHEMA)
    for i in range(60):
        writers[i % 3].put("a", PUT, (i, "v"))
        if i % 7 == 0:
            writers[i % 3].flush()
    for w in writers:
        w.close()
    assert len(stored(tmp_path / "a.sqlite")) == 60


def test_a_settled_database_is_one_file_and_one_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    writer = Writer()
    writer.open("run", path, "CREATE TABLE t (x INTEGER)")
    writer.put("run", "INSERT INTO t VALUES (?)", (1,))
    writer.flush()
    settle(path)  # the writer still has it
    assert Path(f"{path}-wal").exists()
    writer.close()
    settle(path)
    with closing(connect(path, readonly=True)) as db:
        assert db.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert [p.name for p in tmp_path.iterdir()] == ["run.sqlite"]
    settle(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
