"""The trail of decisions on both databases: it only grows, a decision on an old page does not apply, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from robustjudge.errors import ConfigError, StorageError
from robustjudge.review import Conflict, decisions, open_store
from robustjudge.review.store import Store, told

pytestmark = pytest.mark.xdist_group("postgres")


def test_a_decision_stands_until_the_next(address: str) -> None:
    store = open_store(address)
    first = store.decide("x", 0, "confirm", "ann", "real")
    store.note("x", "bob", "seen too")
    again = store.decide("x", 2, "dismiss", "ann", "acceptable after all")
    assert (first.version, again.version) == (1, 3)
    assert [(e.decision, e.who, e.note, e.applied) for e in store.trail("x")] == [
        ("confirm", "ann", "real", True),
        ("note", "bob", "seen too", True),
        ("dismiss", "ann", "acceptable after all", True),
    ]
    assert store.standing()["x"] == again and decisions(address) == {"x": "dismiss"}
    assert [e.version for e in store.events()] == [1, 2, 3]
    store.close()


def test_a_decision_on_an_old_page_is_kept_but_does_not_apply(address: str) -> None:
    ann, bob = open_store(address), open_store(address)
    seen = ann.version("x"), bob.version("x")
    ann.decide("x", seen[0], "confirm", "ann")
    with pytest.raises(Conflict, match="ann") as caught:
        bob.decide("x", seen[1], "dismiss", "bob", "my long reason")
    assert caught.value.attempt.note == "my long reason" and not caught.value.attempt.applied
    assert [(e.who, e.applied) for e in bob.trail("x")] == [("ann", True), ("bob", False)]
    assert bob.standing()["x"].decision == "confirm"
    assert bob.decide("x", 2, "dismiss", "bob").version == 3
    with pytest.raises(Conflict):
        ann.decide("x", 99, "confirm", "ann")  # a version nobody has seen
    ann.close()
    bob.close()


def test_of_many_at_once_exactly_one_applies_and_all_are_kept(address: str) -> None:
    stores = [open_store(address) for _ in range(4)]
    start = threading.Barrier(8)
    won: list[str] = []

    def decide(n: int) -> None:
        start.wait()
        for item in range(10):
            try:
                stores[n % 4].decide(str(item), 0, "confirm", f"r{n}", f"note {n}")
                won.append(str(item))
            except Conflict:
                pass

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(won) == sorted(map(str, range(10)))
    for item in map(str, range(10)):
        trail = stores[0].trail(item)
        assert [e.version for e in trail] == list(range(1, 9))
        assert sorted(e.note for e in trail) == [f"note {n}" for n in range(8)]
        assert [e.applied for e in trail] == [True, *[False] * 7]
    for s in stores:
        s.close()


def test_hostile_text_comes_back_as_it_passed_the_door(address: str) -> None:
    store = open_store(address)
    text = "'); DROP TABLE review_events; -- \x00 \ud800 %s ? <script>"
    store.decide("it'em %s", 0, "confirm", "an%sn", text)
    (e,) = store.trail("it'em %s")
    assert e.note == text.replace("\x00", "\\u0000").replace("\ud800", "\\ud800") and e.who == "an%sn"
    store.close()


def test_what_is_refused(address: str) -> None:
    store = open_store(address)
    for words in (("x", 0, "maybe", "ann"), ("x", 0, "reject", "ann", "  ")):
        with pytest.raises(ConfigError):
            store.decide(*words)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        store.note("x", "ann", " ")
    assert store.trail("x") == ()
    store.close()


def test_a_lost_connection_is_opened_again(postgres: str) -> None:
    import psycopg

    store = open_store(postgres)
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert store.decide("lost", store.version("lost"), "confirm", "ann").version >= 1
    store.close()


def test_who_may_write_but_make_no_table_can_review(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS review_events")
        db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        db.execute("DROP ROLE IF EXISTS guest")
        db.execute("CREATE ROLE guest LOGIN")
        guest = postgres.replace("judge@", "guest@")
        with pytest.raises(StorageError, match="UndefinedTable"):
            open_store(guest)
        open_store(postgres).close()
        db.execute("GRANT SELECT, INSERT ON review_events TO guest")
        store = open_store(guest)
        assert store.decide("x", 0, "confirm", "guest").version == 1
        store.close()
        db.execute("DROP OWNED BY guest")


def test_many_processes_may_make_the_table_at_once(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS review_events")
    stores: list[Store] = []
    threads = [threading.Thread(target=lambda: stores.append(open_store(postgres))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(stores) == 8
    for s in stores:
        s.close()


def test_a_server_that_is_down_or_a_wrong_address_is_told_without_the_password() -> None:
    with pytest.raises(StorageError) as caught:
        open_store("postgresql://maud:secret@127.0.0.1:1/team")
    assert "secret" not in str(caught.value) and "maud" not in str(caught.value)
    assert told("postgresql://ann:secret@db.example/team") == "postgresql://db.example/team"
    with pytest.raises(ConfigError, match="mysql") as wrong:
        open_store("mysql://ann:secret@h/x")
    assert "secret" not in str(wrong.value)


def test_killed_after_an_answer_the_decision_stands(tmp_path: Path) -> None:
    file = tmp_path / "review.sqlite"
    script = (
        "import sys, time; from robustjudge.review import open_store; s = open_store(sys.argv[1]);"
        "s.decide('x', 0, 'confirm', 'ann'); print('said', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"said\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert decisions(file) == {"x": "confirm"} and decisions(tmp_path / "none.sqlite") == {}


def test_a_damaged_store_is_told(tmp_path: Path) -> None:
    file = tmp_path / "review.sqlite"
    file.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StorageError, match=r"review\.sqlite"):
        open_store(file)
