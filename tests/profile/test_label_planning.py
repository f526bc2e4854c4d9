"""Label planning: the plan is said in words, the next items go where they narrow most, and every look is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from robustjudge.errors import DataError
from robustjudge.profile.longform import LabelRow
from robustjudge.profile.planning import may_stop, next_items, planned


def verdicts(n: int = 200, positives: int = 40) -> list[LabelRow]:
    return [
        LabelRow(i, f"i{i}", "judge:j", "judge", "SUCCESS" if i < positives else "FAILURE", inclusion_prob=1.0)
        for i in range(n)
    ]


def people(items: range, label: str) -> list[LabelRow]:
    return [LabelRow(i, f"i{i}", "ann", "human", label) for i in items]


def test_a_rare_class_is_told_before_labelling() -> None:
    told = "\n".join(planned(0.1, 0.05, 0.9, 0.1, budget=300))
    assert "300 random items hold about 15 positives: TPR +-0.15 at best" in told
    assert "judge positives" in told and "positives and" in told
    assert "no better than chance" in "\n".join(planned(0.1, 0.5, 0.4, 0.6))


def test_next_items_go_to_the_cell_that_narrows_most() -> None:
    first = [why for _, why in next_items(verdicts(), [], "SUCCESS", 4)]
    assert all("judge says negative" in w for w in first)  # most items, nothing known
    human = [*people(range(4), "SUCCESS"), *people(range(100, 180), "FAILURE")]
    after = [why for _, why in next_items(verdicts(), human, "SUCCESS", 4)]
    assert all("judge says positive" in w for w in after)
    asked = [i for i, _ in next_items(verdicts(), human, "SUCCESS", 200)]
    assert len(asked) == len(set(asked)) == 116 and not {f"i{k}" for k in range(4)} & set(asked)
    with pytest.raises(DataError, match="none that could be read"):
        next_items([], [], "SUCCESS")


def test_looking_after_every_label_keeps_the_error_rate() -> None:
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(120):
        said = rng.random(150) < 0.8
        rows = [LabelRow(i, f"i{i}", "judge:j", "judge", "Y" if s else "N") for i, s in enumerate(said)]
        bad = False
        for look in range(10, 151, 10):
            human = [LabelRow(i, f"i{i}", "ann", "human", "Y") for i in range(look)]
            (_, e, _), (_, none, stop) = may_stop(rows, human, "Y", 0.1)
            assert none.value is None and not stop
            bad |= not (e.low is not None and e.high is not None and e.low <= 0.8 <= e.high)
        missed += bad
    assert missed / 120 <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5
