"""The label store: blind orders with hidden repeats, nothing lost under several writers, adjudication kept apart."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from robustjudge.errors import ConfigError, DataError
from robustjudge.labelling import Item, Store
from robustjudge.profile import Study, calibrate, draw, read_labels
from robustjudge.profile.longform import LabelRow, write_labels

LABELS = ("SUCCESS", "FAILURE")


def study(path: Path, n: int = 20, repeats: float = 0.1) -> Store:
    items = {f"i{k}": Item(f"i{k}", f"task {k}", f"response {k}") for k in range(n)}
    drawn = draw(list(items), n, seed=3)
    return Store.create(
        path / "labels.sqlite", items, drawn, rubric="It is right.", labels=LABELS, raters=("ann", "bob"), seed=3,
        repeats=repeats,
    )  # fmt: skip


def test_every_rater_sees_all_items_in_an_order_of_their_own_with_repeats(tmp_path: Path) -> None:
    store = study(tmp_path)
    assert store.progress("ann") == (0, 22)
    seen = {}
    for who in store.raters:
        order = []
        while (place := store.next(who)) is not None:
            order.append(place.item.id)
            store.put(who, place.position, "SUCCESS")
        assert set(order) == {f"i{k}" for k in range(20)} and len(order) == 22
        seen[who] = order
    assert seen["ann"] != seen["bob"] and store.done()
    assert sum(r.repeat for r in store.rows()) == 4


def test_two_raters_at_once_lose_nothing(tmp_path: Path) -> None:
    store = study(tmp_path, n=60, repeats=0.2)

    def work(who: str) -> None:
        mine = Store(store.path)  # as a second process would
        while (place := mine.next(who)) is not None:
            mine.put(who, place.position, LABELS[place.position % 2], 1.0)

    threads = [threading.Thread(target=work, args=(w,)) for w in store.raters]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert store.done() and len(store.rows()) == 2 * 72


def test_a_changed_mind_counts_and_the_first_label_is_kept(tmp_path: Path) -> None:
    store = study(tmp_path)
    store.put("ann", 0, "SUCCESS")
    store.put("ann", 0, "FAILURE", 2.0)
    (row,) = store.rows()
    assert row.label == "FAILURE" and row.seconds == 2.0
    with store._open() as db:
        assert db.execute("SELECT count(*) FROM labels").fetchone() == (2,)


def test_adjudication_waits_and_leaves_raw_labels_alone(tmp_path: Path) -> None:
    store = study(tmp_path, repeats=0.0)
    with pytest.raises(DataError, match="every rater is done"):
        store.adjudicate("i1", "SUCCESS", "adjudicator")
    for who in store.raters:
        while (place := store.next(who)) is not None:
            split = who == "bob" and place.item.id in ("i1", "i2")
            truth = int(place.item.id[1:]) % 2
            store.put(who, place.position, LABELS[truth ^ split])
    assert {i.id for i, _, _ in store.disputed()} == {"i1", "i2"}
    store.adjudicate("i1", "FAILURE", "adjudicator")
    with pytest.raises(DataError, match="not in dispute"):
        store.adjudicate("i5", "SUCCESS", "adjudicator")
    before = [r for r in store.rows() if r.rater_kind == "human"]
    assert len(before) == 40 and [r.label for r in store.rows() if r.rater_kind == "adjudicated"] == ["FAILURE"]
    for name in ("out.csv", "out.jsonl"):
        write_labels(store.rows(), tmp_path / name)
        back = list(read_labels(tmp_path / name))
        assert [(r.item_id, r.label, r.position, r.inclusion_prob) for r in back if isinstance(r, LabelRow)] == [
            (r.item_id, r.label, r.position, r.inclusion_prob) for r in store.rows()
        ]
    done = calibrate(tmp_path / "out.csv", Study(rubric="It is right.", labels=LABELS, design="srs"))
    kappa = done.profile.humans["agreement"]["kappa"]
    assert kappa.value == pytest.approx(0.8) and done.step == 6  # before adjudication; no judge rows yet


def test_bad_studies_and_labels_are_refused(tmp_path: Path) -> None:
    store = study(tmp_path)
    with pytest.raises(DataError, match="'MAYBE'"):
        store.put("ann", 0, "MAYBE")
    with pytest.raises(DataError, match="no place 99"):
        store.put("ann", 99, "SUCCESS")
    with pytest.raises(ConfigError, match="exists already"):
        study(tmp_path)
    with pytest.raises(DataError, match="no such label store"):
        Store(tmp_path / "none.sqlite")
    with pytest.raises(ConfigError, match="rubric"):
        Store.create(tmp_path / "x", {}, (), rubric=" ", labels=LABELS, raters=("a",))
    with pytest.raises(ConfigError, match="adjudicator"):
        Store.create(tmp_path / "x", {}, (), rubric="r", labels=LABELS, raters=("adjudicator",))


def test_formulas_do_not_go_into_a_spreadsheet(tmp_path: Path) -> None:
    row = LabelRow(1, "=1+1", "ann", "human", "SUCCESS")
    with pytest.raises(DataError, match="formula"):
        write_labels([row], tmp_path / "x.csv")
    write_labels([row], tmp_path / "x.jsonl")
    write_labels([LabelRow(1, "i", "ann", "human", "-1")], tmp_path / "y.csv")
