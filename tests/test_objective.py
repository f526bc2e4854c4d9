"""Objectives: the judge's own calls, whatever a defense did to them; margins, losses, and rivals of the attacker's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from core_help import cases, judge
from robustjudge.asks import Complete, Gradient, Spell, Weigh
from robustjudge.errors import PlanError
from robustjudge.judges import Guarded, Panel, Prompted, Service
from robustjudge.nouns import Completion, Frame, Readout, Slate, Verdict, Weights
from robustjudge.objective import Objective, contexts, losses, margin, margins, model_of, own_first, swaps
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf, Pairwise, Pointwise
from robustjudge.steps import run

CASE = cases(1)[0]
LABELS = tuple(str(i) for i in range(1, 11))
SCORES = Readout(LABELS, "VERDICT: ", values=tuple(float(x) for x in LABELS))
PAIR = Readout(("A", "B", "TIE"), "VERDICT: ", identities=(1, 0, -1))


def objective(protocol: Any = None, *judges: Any, **more: Any) -> Objective:
    return Objective(CASE, judges or (judge(),), protocol or Pointwise(), **more)


@dataclass(frozen=True)
class Careful:
    """A prompt defense."""

    async def __call__(self, slate: Slate, judge: Any) -> Verdict:
        return await judge(replace(slate, frame=Frame(before=("BE CAREFUL",))))  # type: ignore[no-any-return]


def never(ask: Any) -> Any:
    raise AssertionError(f"asked {ask}")


def test_the_judge_is_driven_to_its_own_call_and_nothing_is_sent() -> None:
    (call,) = run(contexts(objective(), "my text"), never)
    assert [p.text for m in call.messages for p in m.parts if p.field == "candidate/0"] == ["my text"]
    assert call.replica == "search/0" and call.readout is not None and call.readout.labels == LABELS


def test_what_a_defense_does_to_the_prompt_is_in_the_loss() -> None:
    (call,) = run(contexts(objective(None, Guarded(judge(), Careful())), "x"), never)  # type: ignore[arg-type]
    assert "BE CAREFUL" in "".join(m.text for m in call.messages)


def test_a_panel_contributes_every_member_and_slates_every_order_and_shadow() -> None:
    found = run(
        contexts(objective(Pairwise(), Panel((judge("a"), judge("b"))), shadows=("s1", "s2", "s3")), "x"), never
    )
    assert len(found) == 2 * 3 * 2 and {c.model for c in found} == {"a", "b"}


@pytest.mark.parametrize("protocol", [Pairwise(), BestOf(4)])
def test_the_real_rival_is_never_used(protocol: Any) -> None:
    for shadows in ((), ("mine",)):
        for text in ("x", CASE.response):
            for call in run(contexts(objective(protocol, shadows=shadows), text), never):
                shown = "".join(m.text for m in call.messages)
                assert CASE.reference not in shown
                assert not any(w.text in shown for w in CASE.distractors)
                assert (shadows[0] if shadows else CASE.response) in shown


def test_a_scale_without_labels_and_a_judge_without_a_model_are_refused() -> None:
    with pytest.raises(PlanError, match="no tokens to search over"):
        run(model_of(objective(None, Service("s"))), lambda ask: Completion('{"score": 1}'))
    assert run(model_of(objective(BestOf(3))), never) == "toy/a"


# ------------------------------------------------------------------ margins


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(-30, 0), min_size=10, max_size=10))
def test_a_pointwise_margin_is_the_log_odds_of_the_expected_score(logs: list[float]) -> None:
    p = [exp(x) for x in logs]
    share = sum(pi * i / 9 for i, pi in enumerate(p)) / sum(p)
    got = margin(SCORES, Weights(tuple(logs)))
    share = min(max(share, 1e-9), 1 - 1e-9)
    assert got == pytest.approx(log(share / (1 - share)), rel=1e-6, abs=1e-6)
    best = list(logs)
    best[9] += 1.0
    assert margin(SCORES, Weights(tuple(best))) >= got - 1e-9


def test_a_choice_margin_is_own_label_against_all_rivals() -> None:
    got = margin(PAIR, Weights((log(0.2), log(0.5), log(0.3))))
    assert got == pytest.approx(log(0.5 / 0.5))
    assert own_first(PAIR) == ("B", "A", "TIE") and own_first(SCORES)[0] == "10"


def test_a_top_margin_and_impossible_labels_stay_finite() -> None:
    logs = (log(0.05),) * 9 + (log(0.55),)
    assert margin(SCORES, Weights(logs), "top") == pytest.approx(log(0.55 / 0.45))
    assert margin(SCORES, Weights((-inf,) * 10)) == margin(SCORES, Weights((-inf,) * 10))
    assert -inf < margin(PAIR, Weights((-inf, -inf, 0.0))) < 0


def weighing(worth: Any) -> Any:
    """Answers Weigh so that a text's top label gets ``worth(text)``."""

    def answer(ask: Any) -> Any:
        match ask:
            case Spell(_, ids):
                return tuple("" if 0 in x else " ".join(map(str, x)) for x in ids)
            case Gradient(calls, suffix, k):
                assert calls[0].labels[0] == "10"
                return tuple((1,) * k for _ in suffix)
            case Weigh(calls):
                out = []
                for c in calls:
                    text = next(p.text for m in c.call.messages for p in m.parts if p.field == "candidate/0")
                    w = worth(text)
                    out.append(w if isinstance(w, Weights) else Weights((log(1e-9),) * 9 + (w,)))
                return tuple(out)
        raise AssertionError(ask)

    return answer


def test_margins_keep_their_order_and_a_text_that_cannot_be_weighed_has_its_status() -> None:
    bad = Weights(status="error", reason="context_overflow")
    got = run(margins(objective(), ["aa", "bad", "b"]), weighing(lambda t: bad if t == "bad" else -float(len(t))))
    assert [f.status for f in got] == ["ok", "error", "ok"]
    assert got[2].worth > got[0].worth > got[1].worth


def test_losses_mark_illegal_suffixes_and_place_legal_ones() -> None:
    seen: list[str] = []

    def worth(text: str) -> float:
        seen.append(text)
        return -0.1

    got = run(losses(objective(), [(3, 4), (0, 1), (5,)]), weighing(worth))
    assert got[1] == inf and got[0] == got[2] < 0
    assert seen == [f"{CASE.response} 3 4", f"{CASE.response} 5"]
    assert objective(alone=True).place("x") == "x" and objective(stem="s", joint="").place("x") == "sx"


def test_swaps_ask_the_gradient_with_the_authors_label_first() -> None:
    assert run(swaps(objective(), (3, 4), 2), weighing(lambda t: -0.1)) == ((1, 1), (1, 1))


def test_a_detector_that_calls_a_model_is_asked_and_not_probed() -> None:
    @dataclass(frozen=True)
    class Detecting:
        async def __call__(self, slate: Slate, judge: Any) -> Verdict:
            call = replace(
                Prompted("toy/d", template("vanilla")).call(slate, template("vanilla").form(1)), role="detector"
            )
            (done,) = await Complete((call,))
            return await judge(slate) if done.text == "fine" else Verdict(status="blocked")

    asked: list[str] = []

    def answer(ask: Any) -> Any:
        asked.extend(c.role for c in ask.calls)
        return tuple(Completion("fine") for _ in ask.calls)

    found = run(contexts(objective(None, Guarded(judge(), Detecting())), "x"), answer)  # type: ignore[arg-type]
    assert asked == ["detector"] and [c.model for c in found] == ["toy/a"]
