"""Logic puzzles: the three kinds, contradictions, coverage on the real file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from robustjudge.nouns import Case
from robustjudge.quality import rate
from robustjudge.quality.consistency import conclusion, contradiction, puzzle

CHAIN = (
    "Does the person at the zoo tell the truth? Does the person at the farm tell the truth? Does the person at the gym "
    "tell the truth? Put your answer in **bold** as a list of three words, yes or no (for example, **yes, no, yes**)."
)
GRID = "At what position is the baker? Return a single digit number, in the following format: ***N***, where N is it."
NAME = "Which pet has the first one? Return only the pet, in the following format: ***X***, where X is the answer."
PIECES = "How many pieces? Put your answer in **bold** as a single integer (for example, **0**)."


@pytest.mark.parametrize(
    ("question", "text", "answer", "fault"),
    [
        (CHAIN, "At first **no, no, no**, then\n**Yes, no, YES.**", "yes, no, yes", False),
        (CHAIN, "**yes, no** at last, so **yes, yes, yes**", "yes, yes, yes", False),
        (CHAIN, "**yes**, **no**, **no**", "yes, no, no", True),
        (CHAIN, "The answers are no, no and no", None, False),
        (CHAIN, "I say no, no, yes", "no, no, yes", True),
        (CHAIN, "**no, no, yes**\n\n**Score: 10, yes**", "no, no, yes", False),
        (GRID, "**So,***2***", "2", False),
        (GRID, "***4*** **Done.**", "4", False),
        (GRID, "**The baker is at position 3**", "3", True),
        (NAME, "***3***? No: ***Goat***", "goat", False),
        (PIECES, "there are **7**. Total ****.", "7", False),
        (PIECES, "**12 pieces**", "12", True),
        (PIECES, "twelve", None, False),
        ("Name the shape in **bold**.", "a **square** becomes a **Square  Pyramid**.", "square pyramid", False),
    ],
)
def test_the_final_answer_by_puzzle_kind(question: str, text: str, answer: str | None, fault: bool) -> None:
    found = conclusion(question, text)
    assert (found.text if found else None) == answer
    if found:
        assert found.format_fault is fault


def test_kinds() -> None:
    assert [puzzle(q) for q in (CHAIN, GRID, PIECES, "?")] == ["chain", "grid", "integer", "other"]


def value(question: str, reference: str, text: str) -> float | None:
    return rate(
        "consistency", Case(id="c", task=question, response="", references=(reference,), kind="logic"), text
    ).value


@pytest.mark.parametrize(
    ("question", "good", "wrong", "clash", "hedged"),
    [
        (
            CHAIN,
            "The person at the farm lies.\n**yes, no, yes**",
            "**no, no, yes**",
            "The person at the farm tells the truth.\n**yes, no, yes**",
            "If the person at the farm tells the truth, we fail. Does the person at the farm tell the truth?\n**yes, no, yes**",
        ),
        (
            GRID,
            "***2***",
            "***3***",
            "Therefore the baker is at position 4.\n***2***",
            "Either position 4 fails.\n***2***",
        ),
        (
            PIECES,
            "So 4 pieces.\n**4**",
            "**5**",
            "Thus there are 6 pieces.\n**4**",
            "If 6 came out, fine. Cut 1 adds 2.\n**4**",
        ),
    ],
)
def test_right_wrong_contradictory_and_hedged(question: str, good: str, wrong: str, clash: str, hedged: str) -> None:
    assert value(question, good, good) == 1.0
    assert value(question, good, wrong) == 0.0
    assert value(question, good, clash) == 0.0
    assert value(question, good, hedged) == 1.0
    assert value(question, good, "I cannot tell") is None
    assert value(question, clash, good) is None


def test_coverage_on_the_published_file(shared_data: Path) -> None:
    rows = json.loads((shared_data / "robustjudge/math_task/livebench-reasoning.json").read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    for row in rows:
        better, worse = (row["response_A"], row["response_B"])[:: 1 if row["label"] == "A>B" else -1]
        a, b = conclusion(row["question"], better), conclusion(row["question"], worse)
        if a is None or b is None:
            seen["undecided"] += 1
            continue
        seen["equal"] += a.text == b.text
        seen["contradictory reference"] += bool(contradiction(row["question"], better, a))
        seen["contradictory rival"] += bool(contradiction(row["question"], worse, b))
        seen[puzzle(row["question"])] += 1
    print(f"{len(rows)} pairs: {dict(seen)}")
    assert seen["undecided"] <= 1
    assert seen["contradictory reference"] <= 1
    assert 8 <= seen["equal"] <= 15
