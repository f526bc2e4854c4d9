"""The puzzle solver against puzzles solved by hand, and against statements that settle nothing."""

from __future__ import annotations

from typing import Any

import pytest

from robustjudge.datasets.puzzles import solve
from robustjudge.errors import DataError


def truth(says: list[list[Any]]) -> dict[str, Any]:
    return {"type": "truth", "people": ["a", "b"], "says": says, "words": ["yes", "no"], "ask": ["a", "b"]}


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        ([["a", "liar", "a", "b"]], "no, yes"),  # "we both lie"
        ([["a", "different", "a", "b"], ["b", "same", "a", "b"]], "yes, no"),
        ([["a", "liars", 2]], "no, yes"),
        ([["a", "either", "a", "b"], ["b", "liar", "a"]], "yes, no"),
        ([["a", "honest", "b"], ["b", "liars", 1]], "no, no"),
    ],
)
def test_truth_tellers(says: list[list[Any]], answer: str) -> None:
    assert solve(truth(says)) == answer


def test_order() -> None:
    clues = [["just_before", "b", "c"], ["not_at", "a", 1], ["between", "b", "a"], ["at", "d", 4]]
    assert solve({"type": "order", "items": ["a", "b", "c", "d"], "clues": clues, "ask": [1, 3]}) == "b, a"
    beside = [["beside", "a", "b"], ["not_beside", "b", "c"], ["before", "c", "a"]]
    assert solve({"type": "order", "items": ["a", "b", "c"], "clues": beside, "ask": [1, 2, 3]}) == "c, a, b"


def test_grid() -> None:
    puzzle = {
        "type": "grid",
        "people": ["p", "q"],
        "attributes": [["cat", "dog"], ["tea", "milk"]],
        "clues": [["same", "cat", "tea"], ["not", "p", "cat"]],
        "ask": [["p", 0], ["q", 1]],
    }
    assert solve(puzzle) == "dog, tea"
    assert solve({**puzzle, "clues": [["differ", "cat", "tea"], ["is", "p", "cat"]]}) == "cat, tea"


@pytest.mark.parametrize(
    "puzzle",
    [
        truth([]),
        truth([["a", "liar", "a"]]),
        truth([["a", "shouts", "b"]]),
        {"type": "order", "items": ["a", "b"], "clues": [["above", "a", "b"]], "ask": [1]},
        {"type": "order", "items": ["a", "b"], "clues": [["before", "a", "b"], ["before", "b", "a"]], "ask": [1]},
        {"type": "maze"},
        {},
    ],
)
def test_open_contradictory_and_unknown_puzzles_are_refused(puzzle: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="puzzle"):
        solve(puzzle)
