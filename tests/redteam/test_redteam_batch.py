"""The review file: which inputs wait, which are sent, and that a sample holds the rest back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from robustjudge.errors import ConfigError, Inconclusive, UnknownName
from robustjudge.redteam.batch import Review, attacks_of, ready, write
from robustjudge.variants import Variant, append_variants, read_variants

TWELVE = [
    Variant.of(
        f"c{i}",
        f"text {i}",
        "style_manipulation",
        severity="high" if i % 2 else "medium",
        attack="authority",
        channel="append",
    )
    for i in range(12)
]
NOW = "2026-11-30T00:00:00+00:00"


def test_who_must_see_what() -> None:
    assert {v.status for v in Review.of("required").applied(TWELVE)} == {"pending"}
    assert {v.status for v in Review.of("none").applied(TWELVE)} == {"approved"}
    assert {(v.severity, v.status) for v in Review.of("high").applied(TWELVE)} == {
        ("high", "pending"),
        ("medium", "approved"),
    }
    refused = replace(TWELVE[0], status="rejected", who="content check", reason="empty")
    assert Review.of("none").applied([refused])[0].status == "rejected"
    for bad in ("sample", "sample:0", "sample:x", "never"):
        with pytest.raises(UnknownName):
            Review.of(bad)


def test_the_rest_of_a_sample_goes_out_only_with_the_sample() -> None:
    given = Review.of("sample:3").applied(TWELVE)
    pending = [v for v in given if v.status == "pending"]
    assert len(pending) == 3
    found = ready(given)
    assert (len(found.send), found.waiting, found.held) == (0, 3, 9)

    def after(*decisions: str) -> tuple[int, int, int]:
        done = {v.id: v.decided(d, "ann", NOW, "why")[0] for v, d in zip(pending, decisions, strict=True)}
        r = ready([done.get(v.id, v) for v in given])
        return len(r.send), r.refused, r.held

    assert after("approved", "approved", "approved") == (12, 0, 0)
    assert after("approved", "rejected", "approved") == (2, 1, 9)


def test_a_second_writing_keeps_the_decisions(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    given = Review.of("required").applied(TWELVE)
    assert write(path, given) == (12, 0)
    append_variants(path, given[0].decided("rejected", "ann", NOW, "no"))
    assert write(path, given) == (0, 12)
    assert read_variants(path)[given[0].id].status == "rejected"


def test_only_what_was_approved_becomes_an_attack(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with pytest.raises(ConfigError, match="no such review file"):
        attacks_of(path)
    given = Review.of("required").applied(TWELVE)
    write(path, given)
    with pytest.raises(Inconclusive, match="12 wait for review"):
        attacks_of(path)
    append_variants(path, given[1].decided("approved", "ann", NOW))
    append_variants(path, given[2].decided("edited", "ann", NOW, "", "text 2, edited"))
    made = {a.name: a for a in attacks_of(path)}
    texts = sorted(t for a in made.values() for t in getattr(a, "texts", ()))
    assert texts == [("c1", "text 1"), ("c2", "text 2, edited")]
    assert any(getattr(a, "control", "") == "neutral" for a in made.values())


def test_the_queue_says_who_wrote_a_text_and_how_it_was_checked(tmp_path: Path) -> None:
    from robustjudge.review.queue import Queue, generated
    from robustjudge.review.store import open_store

    path = tmp_path / "r.jsonl"
    written = replace(TWELVE[0], source="generator", model="scripted/x", content="response unchanged in place")
    refused = replace(TWELVE[1], status="rejected", who="content check", reason="the final answer changed from 4 to 5")
    write(path, [written, refused])
    store = open_store(tmp_path / "review.sqlite")
    queue = Queue(generated([path]), store)
    first, second = queue.item(written.id), queue.item(refused.id)
    assert first is not None and second is not None
    assert (first.origin, first.checked) == ("generator scripted/x", "response unchanged in place")
    assert second.checked.startswith("the final answer changed")
    assert queue.page().waiting == 1  # what the check refused waits for nobody
    queue.decide(first, 0, "approve", "ann")
    assert [v.id for v in ready(read_variants(path).values()).send] == [written.id]
    store.close()
