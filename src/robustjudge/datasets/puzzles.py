"""Solve small logic puzzles by trying every arrangement, from a machine-readable statement.

Three kinds.  ``truth``: each person always tells the truth or always lies.  ``order``: items in a row, position 1
first.  ``grid``: each person has exactly one value of every attribute, and no two share a value.
A statement that leaves the question open has no answer and raises :class:`DataError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from robustjudge.errors import DataError


def solve(puzzle: Mapping[str, Any]) -> str:
    """The one answer that holds in every arrangement that fits all clues.

    Parts of an answer are joined by ``", "``.  Raises :class:`DataError` when no arrangement fits, when the
    answer differs between arrangements, or when the puzzle uses an unknown kind or clue.
    """
    try:
        answers = set(_KINDS[puzzle["type"]](puzzle))
    except (KeyError, ValueError) as fault:
        raise DataError(f"this puzzle cannot be read: {type(fault).__name__} {fault}") from None
    if len(answers) != 1:
        raise DataError(f"this puzzle has {len(answers)} answers, not one: {sorted(answers)}")
    return answers.pop()


def _truth(puzzle: Mapping[str, Any]) -> Iterator[str]:
    people: Sequence[str] = puzzle["people"]
    yes, no = puzzle["words"]
    for honest in product((True, False), repeat=len(people)):
        tells = dict(zip(people, honest, strict=True))
        if all(tells[who] == _claim(claim, tells) for who, *claim in puzzle["says"]):
            yield ", ".join(yes if tells[who] else no for who in puzzle["ask"])


def _claim(claim: Sequence[Any], tells: Mapping[str, bool]) -> bool:
    form, *about = claim
    said = [tells[a] for a in about if isinstance(a, str)]
    match form:
        case "honest":
            return all(said)
        case "liar":
            return not any(said)
        case "same":
            return len(set(said)) == 1
        case "different":
            return len(set(said)) == 2
        case "either":
            return any(said)
        case "liars":
            return sum(not t for t in tells.values()) == int(about[0])
    raise KeyError(form)


def _order(puzzle: Mapping[str, Any]) -> Iterator[str]:
    for row in permutations(puzzle["items"]):
        place = {item: i for i, item in enumerate(row, 1)}
        if all(_placed(clue, place) for clue in puzzle["clues"]):
            yield ", ".join(row[position - 1] for position in puzzle["ask"])


def _placed(clue: Sequence[Any], place: Mapping[str, int]) -> bool:
    form, a, b = clue
    match form:
        case "before":
            return place[a] < place[b]
        case "just_before":
            return place[a] + 1 == place[b]
        case "beside":
            return abs(place[a] - place[b]) == 1
        case "not_beside":
            return abs(place[a] - place[b]) != 1
        case "at":
            return place[a] == int(b)
        case "not_at":
            return place[a] != int(b)
        case "between":
            return abs(place[a] - place[b]) == 2
    raise KeyError(form)


def _grid(puzzle: Mapping[str, Any]) -> Iterator[str]:
    people: Sequence[str] = puzzle["people"]
    attributes: Sequence[Sequence[str]] = puzzle["attributes"]
    for rows in product(*(permutations(values) for values in attributes)):
        owner = {value: who for row in rows for who, value in zip(people, row, strict=True)}
        if all(_held(clue, owner) for clue in puzzle["clues"]):
            has = {(who, i): row[k] for i, row in enumerate(rows) for k, who in enumerate(people)}
            yield ", ".join(has[who, i] for who, i in puzzle["ask"])


def _held(clue: Sequence[str], owner: Mapping[str, str]) -> bool:
    form, a, b = clue
    match form:
        case "is":
            return owner[b] == a
        case "not":
            return owner[b] != a
        case "same":
            return owner[a] == owner[b]
        case "differ":
            return owner[a] != owner[b]
    raise KeyError(form)


_KINDS = {"truth": _truth, "order": _order, "grid": _grid}
