"""The control chart over repeated judgements of one anchor set keeps the false-alarm rate that it states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from robustjudge.profile import drift
from robustjudge.profile.drift import drifted
from robustjudge.profile.longform import LabelRow

LABELS = ("SUCCESS", "FAILURE")


def judged(wrong: np.ndarray) -> list[LabelRow]:
    said = [LABELS[(i % 2 == 0) == bool(w)] for i, w in enumerate(wrong)]
    return [LabelRow(i, f"a{i}", "judge:j", "judge", v) for i, v in enumerate(said)]


def people(n: int) -> list[LabelRow]:
    return [LabelRow(9000 + i, f"a{i}", "ann", "human", LABELS[i % 2]) for i in range(n)]


def test_a_judge_that_does_not_change_sets_off_no_more_alarms_than_stated() -> None:
    """An error on each of 200 anchors anew with probability .1, the first judgement drawn too: at most one alarm in 370
    runs is 12.6 % of histories of fifty runs; with the found rate as the target it is 42 %."""
    rng = np.random.default_rng(1)
    alarms, histories = 0, 300
    for _ in range(histories):
        first, *later = rng.binomial(200, 0.1, 51).tolist()
        target = drift.wilson_bounds(first / 200, 200, drift.SURE)[1]
        alarms += drift.cusum(later, [200] * 50, target).alarm is not None
    assert alarms / histories <= 0.126


def test_the_history_is_kept_and_a_decay_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    old = [*people(200), *judged(rng.random(200) < 0.1)]
    history = tmp_path / "h.jsonl"
    steady = [drifted(old, judged(rng.random(200) < 0.1), LABELS, history=history) for _ in range(4)]
    assert all(r.chart is not None and r.chart.alarm is None for r in steady)
    worse = [drifted(old, judged(rng.random(200) < 0.25), LABELS, history=history) for _ in range(4)]
    assert worse[-1].judge_moved and worse[-1].chart is not None and worse[-1].chart.alarm is not None
    assert any("upper 90 % bound" in line and "ALARM at run" in line for line in worse[-1].lines())
    kept = [json.loads(line) for line in history.read_text().splitlines()]
    assert len(kept) == 8 and len({row["anchors"] for row in kept}) == 1
    other = [*people(200)[:-1], LabelRow(9999, "a199", "ann", "human", LABELS[0]), *judged(np.zeros(200))]
    apart = drifted(old, other, LABELS, history=history)
    assert not apart.same and len(history.read_text().splitlines()) == 8
