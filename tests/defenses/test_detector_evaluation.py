"""The evaluation of a detector: disjoint halves, promised rates, figures for every kind of honest text."""

from typing import Any

import pytest
from defense_help import JUDGE, World

from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import BENIGN_KINDS
from robustjudge.defenses.ablation import Ablation
from robustjudge.defenses.classifier import Classifier, learned_from
from robustjudge.defenses.detector import LLMDetector
from robustjudge.defenses.perplexity import Perplexity
from robustjudge.detectors import attacked, evaluate, halves, honest
from robustjudge.models.scripted.base import Constant
from robustjudge.models.scripted.fooled import Gameable
from robustjudge.models.scripted.signs import plea
from robustjudge.steps import run


def evaluated(detector: Any, world: World | None = None, **more: Any) -> Any:
    return run(evaluate(detector, "0.1", families=("H1", "H5"), **more), world or World(Constant()))


def test_halves_share_no_case_and_are_stable() -> None:
    cases = list(builtin())
    first, second = halves(cases)
    assert len(first) + len(second) == len(cases) and min(len(first), len(second)) > 0.35 * len(cases)
    assert not {c.id for c in first} & {c.id for c in second}
    assert halves(cases[::-1])[0] == first[::-1]
    assert {s.cluster for s in honest(first)} == {c.id for c in first}


def test_the_classifier_keeps_its_promise_on_other_cases_and_every_group_has_an_interval() -> None:
    e = evaluated(Classifier())
    benign = e.false_positive_rate["benign"]
    assert benign.low is not None and benign.low <= 0.1
    kinds = {f"hard_benign/{k}" for k in BENIGN_KINDS}
    assert kinds | {"benign", "hard_benign", "language/en", "language/zh", "language/de"} <= set(e.false_positive_rate)
    assert all(x.low is not None and x.high is not None for x in e.false_positive_rate.values())
    assert e.families["H1"]["auroc"].value > 0.8 and e.families["H5"]["auroc"].value > 0.8
    told = e.as_dict()
    assert told["threshold_hash"] == e.threshold.hash and len(told["threshold_hash"]) == 32
    low, high = told["expected_false_positive_rate_95"]
    assert 0 < low < 0.1 < high < 0.25


def test_a_detector_finds_what_it_knows_and_one_that_fails_flags_all() -> None:
    knowing = World(Constant(), says=lambda text: "ANSWER: yes" if plea(text) else "ANSWER: no")
    e = evaluated(LLMDetector("d"), knowing)
    _, second = halves([c for c in builtin() if not learned_from(c.id)])
    shown = [plea(t.text) for t in attacked(second, "H1")]  # a plea in a code comment escapes this detector
    assert e.families["H1"]["true_positive_rate"].value == pytest.approx(sum(shown) / len(shown)) and sum(shown) > 10
    assert e.unread == {"benign": 0, "hard_benign": 0, "H1": 0, "H5": 0}
    broken = World(Constant(), says=lambda _: "eyes")
    e = evaluated(LLMDetector("d"), broken)
    assert e.threshold.value is None and e.threshold.unread > 0 and e.unread["benign"] > 0
    assert e.false_positive_rate["benign"].value == 1.0 == e.families["H1"]["true_positive_rate"].value


def test_perplexity_of_equal_tokens_flags_nothing() -> None:
    e = evaluated(Perplexity("m"), World(Constant(), logprobs=lambda _: (-1.0, -1.0)))
    assert e.false_positive_rate["hard_benign"].value == 0.0 and e.families["H1"]["auroc"].value == pytest.approx(0.5)


def test_a_detector_that_re_scores_is_evaluated_with_its_judge() -> None:
    e = run(
        evaluate(Ablation(), "0.2", cases=list(builtin("logic")), families=("H1",), judge=JUDGE),
        World(Gameable(rate=1.0)),
    )
    assert e.families["H1"]["auroc"].value > 0.8 and e.detector == "ablation"


def test_attacked_texts_use_held_out_wordings() -> None:
    cases = list(builtin("logic"))
    texts = attacked(cases, "H1")
    assert len(texts) == len(cases) and all(t.text != c.response for t, c in zip(texts, cases, strict=True))
