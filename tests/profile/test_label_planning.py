"""Label planning: the plan is said in words, the next items go where they narrow most, and every look is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from robustjudge.errors import DataError
from robustjudge.measures.sequential import beta_binomial
from robustjudge.nouns import Estimate
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
    """Items are labelled as they are suggested (by the judge's cell), and every look counts: TPR, FPR and the rate of the
    judged items are missed at some look in at most one study of twenty."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(120):
        truth = rng.random(120) < 0.3
        said = truth ^ (rng.random(120) < np.where(truth, 0.3, 0.1))
        rows = [LabelRow(i, f"i{i}", "judge:j", "judge", "Y" if s else "N") for i, s in enumerate(said)]
        true = {"rate": truth.mean(), "TPR": said[truth].mean(), "FPR": said[~truth].mean()}
        human: list[LabelRow] = []
        bad = False
        while len(human) < 90:
            for item, _ in next_items(rows, human, "Y", 6):
                human.append(LabelRow(len(human), item, "ann", "human", "Y" if truth[int(item[1:])] else "N"))
            for name, e, _ in may_stop(rows, human, "Y", 0.1):
                bad |= not (e.low is not None and e.high is not None and e.low - 1e-9 <= true[name] <= e.high + 1e-9)
        missed += bad
    assert missed / 120 <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5


def test_stopping_says_when_and_a_wrong_label_is_named() -> None:
    human = [*people(range(40), "SUCCESS"), *people(range(40, 200), "FAILURE")]
    told = {name: (e, stop) for name, e, stop in may_stop(verdicts(), human, "SUCCESS", 0.15)}
    rate, stop = told["rate"]
    assert rate.value == pytest.approx(0.2) and stop and rate.low is not None and rate.low < 0.2
    few = {name: e for name, e, _ in may_stop(verdicts(), people(range(5), "SUCCESS"), "SUCCESS", 0.1)}
    assert few["rate"].value is None and few["rate"].reason == "no labels in a judge cell"
    with pytest.raises(DataError, match="nobody uses the label 'YES'; the judge says FAILURE, SUCCESS"):
        next_items(verdicts(), [], "YES")


def test_two_people_who_differ_are_no_label_until_somebody_rules() -> None:
    split = [LabelRow(0, "i0", "ann", "human", "SUCCESS"), LabelRow(1, "i0", "bob", "human", "FAILURE")]
    ruled = [*split, LabelRow(2, "i0", "adjudicator", "adjudicated", "SUCCESS")]
    assert may_stop(verdicts(), split, "SUCCESS", 0.1)[0][1].n == 0
    assert may_stop(verdicts(), ruled, "SUCCESS", 0.1)[0][1].n == 1
    assert "i0" not in {i for i, _ in next_items(verdicts(), split, "SUCCESS", 200)}, "it is labelled, only not settled"


def test_the_sequence_holds_at_every_look_for_means_of_a_case() -> None:
    """Values in [0, 1] that are no coin flips: the mean over a case's trials."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        x = np.cumsum(rng.choice([0.0, 0.5, 1.0], size=300, p=[0.3, 0.4, 0.3]))
        missed += any(not _holds(beta_binomial(float(x[n - 1]), n), 0.5) for n in (*range(1, 20), *range(20, 301, 10)))
    assert missed / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def _holds(e: Estimate, true: float) -> bool:
    return e.low is not None and e.high is not None and e.low <= true <= e.high
