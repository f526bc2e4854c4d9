"""The table: rows hold what was observed, columns read back whatever the order, files of other versions and damage."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core_help import Talker, cases, contents, go, judge, planned, rows
from robustjudge.errors import DataError, StorageError
from robustjudge.measures.grid import panels
from robustjudge.nouns import Call, Completion, Usage
from robustjudge.protocols import Pairwise, Pointwise
from robustjudge.table import NAMES, Stored, Table, content, details, open_run
from table_help import chosen, scored, table_of, write


def test_a_row_tells_all_that_was_observed(tmp_path: Path) -> None:
    def say(call: Call) -> Completion:
        return Completion("Because.\nVERDICT: 6", usage=Usage(11, 3), model="toy-1", notes=("temperature_not_applied",))

    run = go(planned(cases(1), "H1"), tmp_path, Talker(say))
    (row,) = rows(run.path)
    assert (row["case_id"], row["attack"], row["attack_id"], row["judge"], row["protocol"]) == (
        "c0", "H1", "H1", "toy", "pointwise",
    )  # fmt: skip
    assert (row["judge_calls"], row["prompt_tokens"], row["completion_tokens"]) == (3, 33, 9)
    assert (row["scale_low"], row["scale_high"], row["clean_unit"]) == (1, 10, pytest.approx(5 / 9))
    assert (row["adapted"], row["resolved"]) == ("temperature_not_applied", "toy-1")
    assert row["trace"] and len(row["trace"]) == 32 and row["reader"]
    stored = contents(run.path)
    shown = row["detail"]["shown"]
    assert [(s["arm"], s["replica"]) for s in shown] == [
        ("clean", "clean/0"),
        ("clean", "clean/1"),
        ("final", "final/0"),
    ]
    (call,) = shown[-1]["calls"]
    assert stored[row["text_hash"]] in stored[call["prompt"]]
    assert stored[call["reply"]] == "Because.\nVERDICT: 6" and stored[shown[-1]["rationale"]] == "Because."
    assert stored[row["detail"]["response"]] == cases(1)[0].response


def test_the_same_text_is_stored_once(tmp_path: Path) -> None:
    run = go(planned(cases(1), "H1", "H2", "identity"), tmp_path, Talker())
    replies = [c["reply"] for r in rows(run.path) for s in r["detail"]["shown"] for c in s["calls"]]
    assert len(replies) == 9 and len(set(replies)) == 1


def test_columns_read_back_with_gaps_as_gaps(tmp_path: Path) -> None:
    t = table_of(tmp_path, [scored("a", 3, 8), scored("b", 4, None), chosen("c", "LL", "WL")])
    assert len(t) == 3
    by_case = {row["case_id"]: row for row in t.rows()}
    assert (by_case["a"]["attacked_score"], by_case["b"]["attacked_score"]) == (8, None)
    assert by_case["b"]["attacked_status"] == "unparsed" and by_case["c"]["attacked_outcomes"] == "WL"
    assert np.isnan(t["attacked_score"]).sum() == 2
    assert t.distinct("protocol") == ("pairwise", "pointwise")
    part = t.only(protocol="pointwise", attacked_status="ok")
    assert [row["case_id"] for row in part.rows()] == ["a"]
    assert len(t.only(protocol="no such")) == 0 and len(t.where(np.zeros(3, bool))) == 0


def test_the_order_of_rows_carries_no_meaning(tmp_path: Path) -> None:
    found = [scored(f"c{i}", i % 5, (3 * i) % 10) for i in range(20)] + [chosen(f"c{i}", "LL", "WL") for i in range(20)]
    one, two = table_of(tmp_path / "1", found), table_of(tmp_path / "2", found[::-1])
    assert list(one.rows()) == list(two.rows())
    assert panels(one) == panels(two)


def test_details_and_texts_are_read_for_the_cells_asked_for(tmp_path: Path) -> None:
    run = go(planned(cases(2), "H1"), tmp_path, Talker())
    first = rows(run.path)[0]
    db = open_run(run.path / "run.sqlite")
    found = details(db, [first["cell"], "no such cell"])
    assert list(found) == [first["cell"]] and found[first["cell"]]["shown"] == first["detail"]["shown"]
    assert content(db, first["text_hash"]) and content(db, None) is None and content(db, "0" * 32) is None
    db.close()


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run file"):
        Table.load(tmp_path / "run.sqlite")
    (tmp_path / "text.sqlite").write_text("this is no database at all, " * 200)
    with pytest.raises(StorageError, match="not a readable run file"):
        Table.load(tmp_path / "text.sqlite")
    write(tmp_path / "new", [scored("a", 1, 2)])
    db = sqlite3.connect(tmp_path / "new" / "run.sqlite")
    db.execute("UPDATE meta SET value = '99'")
    db.commit()
    db.close()
    with pytest.raises(DataError, match="newer version"):
        Table.load(tmp_path / "new" / "run.sqlite")


def test_a_file_without_a_newer_column_has_it_missing(tmp_path: Path) -> None:
    write(tmp_path / "old", [scored("a", 1, 2)])
    db = sqlite3.connect(tmp_path / "old" / "run.sqlite")
    db.execute("ALTER TABLE trials DROP COLUMN reason")
    db.execute("ALTER TABLE trials DROP COLUMN latency")
    db.commit()
    db.close()
    (row,) = Table.load(tmp_path / "old" / "run.sqlite").rows()
    assert row["reason"] is None and row["latency"] is None and row["clean_score"] == 1


def test_clean_slots_are_the_places_picked(tmp_path: Path) -> None:
    (row,) = rows(go(planned(cases(1), protocols=(Pairwise(),)), tmp_path, Talker("VERDICT: A")).path)
    assert (row["clean_slots"], row["clean_outcomes"]) == ("0,0", "WL")
    half = Talker(lambda call: "VERDICT: B" if "clean/1" in call.replica else "no verdict", name="toy/b")
    plan = planned(cases(1), protocols=(Pairwise(), Pointwise()), judges=[("b", judge("toy/b"))])
    pair = next(r for r in rows(go(plan, tmp_path, half).path) if r["protocol"] == "pairwise")
    assert (pair["clean_slots"], pair["clean_outcomes"], pair["retest_outcomes"]) == ("-1,-1", "uu", "LW")
    assert set(NAMES) >= set(json.loads(json.dumps(list(row.keys()))))


def test_hidden_fields_and_hostile_ids_stay_text(tmp_path: Path) -> None:
    odd: Any = replace(cases(1)[0], id="'; DROP TABLE trials; --\ud83d", cluster="k", kind="open")
    (row,) = rows(go(planned([odd]), tmp_path, Talker()).path)
    assert row["case_id"] == "'; DROP TABLE trials; --\\ud83d" and row["cluster"] == "k"


def test_the_run_of_an_older_version_is_resumed(tmp_path: Path) -> None:
    plan = planned(cases(3))
    run = go(plan, tmp_path, Talker())
    db = sqlite3.connect(run.path / "run.sqlite")
    db.execute("ALTER TABLE trials DROP COLUMN blocked_worth")
    (one,) = db.execute("SELECT cell FROM trials LIMIT 1").fetchone()
    db.execute("DELETE FROM trials WHERE cell = ?", (one,))
    db.commit()
    db.close()
    again = go(plan, tmp_path, Talker(), resume=run.path)
    assert len(rows(again.path)) == len({r["cell"] for r in rows(again.path)}) == 3
    assert {r["blocked_worth"] for r in rows(again.path)} == {"", None}


def test_a_text_is_written_once_and_again_after_its_file_was_damaged() -> None:
    stored = Stored()
    one, two = ("a" * 32, "one"), ("b" * 32, "two")
    assert stored.fresh([one], 0) == [one]
    assert stored.fresh([one, two], 0) == [two]
    assert stored.fresh([one, two], 0) == []
    assert stored.fresh([one, two], 1) == [one, two]
