"""The search on a score vector: it climbs where only sub-scores move, and E10 builds on what it found."""

from __future__ import annotations

import json
from typing import Any

from robustjudge.asks import Invoke, Measure
from robustjudge.attacks.library import attack
from robustjudge.attacks.plain import LongSuffix
from robustjudge.attacks.score_vector import ScoreVector, height
from robustjudge.judges import Service
from robustjudge.nouns import Case, Completion, Feedback
from robustjudge.protocols import Pointwise
from robustjudge.steps import Ask, run
from robustjudge.threat import ThreatModel
from robustjudge.trial import Cell, Trial, trial

CASE = Case("c", "Name the capital.", "It is Lyon. The city is large.", ("Paris.",))
PARTS = tuple((n, f"parts.{n}") for n in ("a", "b", "c", "d", "e"))


def flown(judge: Service, attack: Any, seen: list[str], **threat: Any) -> Trial:
    """A service whose overall score is flat and whose sub-scores rise with the number of bold marks and bullets."""

    def answer(ask: Ask[Any]) -> Any:
        if isinstance(ask, Measure):
            return (None, None)
        assert isinstance(ask, Invoke)
        text = ask.slate.candidates[0]
        seen.append(text)
        part = min(10.0, 2.0 + text.count("- ") + text.count("**"))
        return Completion(json.dumps({"score": 4.0, "parts": {n: part for n, _ in PARTS}}))

    return run(trial(Cell(CASE, attack, judge, Pointwise(), threat=ThreatModel(**threat))), answer)


def test_it_climbs_on_sub_scores_where_the_overall_score_is_flat() -> None:
    seen: list[str] = []
    done = flown(Service("s", parts=PARTS), ScoreVector(rounds=6), seen)
    assert done.text is not None and done.text != CASE.response
    assert done.text.count("- ") + done.text.count("**") > 0
    assert done.spent.queries <= 25
    (final,) = done.attacked
    assert dict(final.verdict.parts)["a"] > 2.0


def test_a_judge_that_shows_verdicts_only_hides_its_sub_scores() -> None:
    assert height(Feedback(0.4, parts=(("a", 0.8), ("b", 0.6)))) == (0.4 + 0.7) / 2
    assert height(Feedback(0.4)) == 0.4 and height(Feedback(0.4, "error")) == 0.0
    done = flown(Service("s", parts=PARTS), ScoreVector(rounds=2), [], verdict_only=True)
    assert all(worth == 0.0 for _, worth in done.spent.curve)


def test_every_length_of_e10_stands_on_the_same_core() -> None:
    made = [attack(f"E10/{n}/0/search", quick=True) for n in (64, 256)]
    assert all(isinstance(a, LongSuffix) for a in made)
    assert [a.name for a in made] == ["E10/64/0/search", "E10/256/0/search"]
    texts = [flown(Service("s", parts=PARTS), a, []).text or "" for a in made]
    assert texts[0][:-64] == texts[1][:-256] and len(texts[1]) - len(texts[0]) == 192
