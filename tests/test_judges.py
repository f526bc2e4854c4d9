"""Judges and protocols: identity space, statuses, panels, repeats, services, label probabilities, worth."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from math import log
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from core_help import cases, judge, planned
from robustjudge.asks import Complete, Invoke, Weigh
from robustjudge.errors import ConfigError, DataError, PlanError
from robustjudge.judges import (
    Guarded,
    Panel,
    Prompted,
    Repeated,
    Service,
    aggregate,
    models_of,
    passed,
    readout_of,
    undefended,
    verdict_grammar,
)
from robustjudge.nouns import TIE, Access, Case, Completion, Frame, Slate, Status, Verdict, Weak, Weights
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf, Pairwise, Pointwise, size
from robustjudge.steps import run


def says(*texts: str) -> Any:
    """Answers calls with the texts in turn, the last one for ever."""
    left = list(texts)

    def answer(ask: Any) -> Any:
        assert isinstance(ask, Complete)
        return tuple(Completion(left.pop(0) if len(left) > 1 else left[0]) for _ in ask.calls)

    return answer


ONE = Slate("task", ("a",), (0,))
TWO = Slate("task", ("ref", "mine"), (1, 0))


# ------------------------------------------------------------------ prompted judges


def test_a_choice_is_told_by_identity_never_by_slot() -> None:
    assert run(judge()(TWO), says("VERDICT: A")).choice == 1
    assert run(judge()(TWO), says("VERDICT: B")).choice == 0
    assert run(judge()(replace(TWO, index=(0, 1))), says("VERDICT: A")).choice == 0
    tied = Prompted("toy/a", template("arena_hard"))
    form = tied.template.form(2)
    if form.scale.tie:
        assert run(tied(TWO), says(f"[[{form.scale.tie}]]")).choice in (TIE, None)


@pytest.mark.parametrize(
    ("completion", "status"),
    [
        (Completion("VERDICT: 7"), "ok"),
        (Completion("VERDICT: 17"), "unparsed"),
        (Completion("nothing"), "unparsed"),
        (Completion(""), "unparsed"),
        (Completion(status="refused", reason="content_filter"), "refused"),
        (Completion("VERDICT: 7", refusal="no"), "refused"),
        (Completion("VERD", finish="length"), "truncated"),
        (Completion("VERD", status="truncated"), "truncated"),
        (Completion("VERDICT: 7", status="error", reason="http_500"), "error"),
    ],
)
def test_only_an_ok_verdict_carries_a_value(completion: Completion, status: Status) -> None:
    got = run(judge()(ONE), lambda ask: (completion,))
    assert got.status == status
    assert (got.score is None, got.unit is None) == (status != "ok", status != "ok")
    if status != "ok":
        assert got.reason or got.raw == completion.text


def test_a_score_is_mapped_over_its_scale() -> None:
    got = run(judge()(ONE), says("VERDICT: 10"))
    assert (got.score, got.unit, got.range) == (10, 1.0, (1.0, 10.0))
    assert run(judge()(ONE), says("VERDICT: 1")).unit == 0.0
    binary = Prompted("toy/a", template("success_failure"))
    assert run(binary(ONE), says("SUCCESS")).unit in (0.0, 1.0)
    units = {run(binary(ONE), says(x)).unit for x in ("SUCCESS", "FAILURE")}
    assert units == {0.0, 1.0}


def test_expect_asks_label_probabilities_besides_the_reply() -> None:
    asked: list[Any] = []

    def answer(ask: Any) -> Any:
        asked.append(ask)
        if isinstance(ask, Weigh):
            (call,) = ask.calls
            return (Weights(tuple(log(0.5) if x in ("8", "9") else log(1e-9) for x in call.labels)),)
        return (Completion("VERDICT: 7"),)

    got = run(replace(judge(), expect=True)(ONE), answer)
    assert (got.score, got.expected) == (7, pytest.approx(8.5, abs=1e-5))
    assert [type(a) for a in asked] == [Complete, Weigh]

    def failing(ask: Any) -> Any:
        return (Weights(status="error", reason="x"),) if isinstance(ask, Weigh) else (Completion("VERDICT: 7"),)

    assert run(replace(judge(), expect=True)(ONE), failing).expected is None


def test_a_constrained_judge_sends_a_grammar_of_its_labels() -> None:
    call = replace(judge(), constrained=True).call(ONE, judge().template.form(1))
    assert '"10"' in call.sampling.grammar and call.sampling.max_tokens <= 16
    readout = readout_of(judge().template.form(2).scale, TWO)
    assert readout is not None and readout.identities[:2] == (1, 0)
    assert verdict_grammar(readout).startswith("root ::= ")


# ------------------------------------------------------------------ several verdicts

OK = st.builds(lambda s: Verdict(score=float(s), unit=(s - 1) / 9, range=(1.0, 10.0)), st.integers(1, 10))
BAD = st.sampled_from([Verdict(status="unparsed"), Verdict(status="refused"), Verdict(status="error")])


@settings(max_examples=80, deadline=None)
@given(st.lists(OK | BAD, min_size=1, max_size=7))
def test_a_panel_needs_a_quorum_of_all_members_and_order_never_matters(verdicts: list[Verdict]) -> None:
    got = aggregate(tuple(verdicts))
    read = [v for v in verdicts if v.status == "ok"]
    assert (got.status == "ok") == (2 * len(read) > len(verdicts))
    if got.status == "ok":
        scores = sorted(v.score for v in read if v.score is not None)
        assert scores[0] <= (got.score or 0) <= scores[-1]
    other = aggregate(tuple(reversed(verdicts)))
    assert (other.status == "ok", other.score, other.choice) == (got.status == "ok", got.score, got.choice)


def test_a_panel_asks_every_member_and_a_repeat_every_replica() -> None:
    seen: list[tuple[str, str]] = []

    def answer(ask: Any) -> Any:
        seen.extend((c.model, c.replica) for c in ask.calls)
        return tuple(Completion(f"VERDICT: {len(seen)}") for _ in ask.calls)

    got = run(Panel((judge("toy/a"), judge("toy/b"), judge("toy/c")))(ONE), answer)
    assert (got.score, {m for m, _ in seen}) == (2, {"toy/a", "toy/b", "toy/c"})
    seen.clear()
    assert run(Repeated(judge(), 3)(ONE), answer).score == 2
    assert [r for _, r in seen] == ["clean/0.r0", "clean/0.r1", "clean/0.r2"]


@dataclass(frozen=True)
class Screen:
    screens = True
    models = ("toy/detector",)

    async def __call__(self, slate: Slate, judge: Any) -> Verdict:
        return Verdict(status="blocked", reason="screen")


@dataclass(frozen=True)
class Prefix:
    async def __call__(self, slate: Slate, judge: Any) -> Verdict:
        return await judge(replace(slate, frame=Frame(before=("careful",))))  # type: ignore[no-any-return]


def test_a_guarded_judge_is_a_judge_and_can_be_undressed() -> None:
    inner = judge()
    dressed = Guarded(Guarded(inner, Prefix()), Screen())  # type: ignore[arg-type]
    assert run(dressed(ONE), says("never")).status == "blocked"
    assert undefended(Panel((dressed, Repeated(dressed)))) == Panel((inner, Repeated(inner)))
    assert passed(dressed) == Guarded(inner, Prefix())  # type: ignore[arg-type]
    assert models_of(Panel((dressed, judge("toy/b")))) == ("toy/a", "toy/detector", "toy/b")
    assert aggregate((Verdict(status="blocked"),) * 3).status == "blocked"


# ------------------------------------------------------------------ somebody else's judge


@pytest.mark.parametrize(
    ("text", "status", "score"),
    [
        ('{"score": 7}', "ok", 7),
        ('{"score": 0}', "ok", 0),
        ('{"score": 11}', "unparsed", None),
        ('{"score": "7"}', "unparsed", None),
        ('{"score": true}', "unparsed", None),
        ('{"score": NaN}', "unparsed", None),
        ('{"other": 7}', "unparsed", None),
        ("[]", "unparsed", None),
        ("not json", "error", None),
    ],
)
def test_a_service_is_read_strictly(text: str, status: str, score: float | None) -> None:
    got = run(Service("s")(ONE), lambda ask: Completion(text))
    assert (got.status, got.score) == (status, score)
    assert score is None or got.unit == score / 10


def test_a_service_may_give_parts_and_winners() -> None:
    parts = Service("s", overall="", parts=(("fit", "parts.0.v"), ("tone", "parts.1.v")))
    got = run(parts(ONE), lambda ask: Completion('{"parts": [{"v": 4}, {"v": 8}]}'))
    assert (got.score, got.parts) == (6, (("fit", 4.0), ("tone", 8.0)))
    assert run(parts(ONE), lambda ask: Completion('{"parts": [{"v": 4}]}')).status == "unparsed"
    picks = Service("s", winner="best", winner_base=1)
    assert run(picks(TWO), lambda ask: Completion('{"best": 1}')).choice == 1
    for bad in ("0", "3", '"1"', "true"):
        assert run(picks(TWO), lambda ask, b=bad: Completion(f'{{"best": {b}}}')).status == "unparsed"  # type: ignore[misc]


def test_a_service_may_answer_with_a_number_alone_and_its_scale_has_two_ends() -> None:
    assert run(Service("s")(ONE), lambda ask: Completion("3")).score == 3
    for bad in ("11", '"3"', "true", "null"):
        assert run(Service("s")(ONE), lambda ask, b=bad: Completion(b)).status == "unparsed"  # type: ignore[misc]
    for low, high in ((20.0, 10.0), (1.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)):
        with pytest.raises(ConfigError, match="low must be under high"):
            Service("s", low, high)


def test_a_service_that_compares_nothing_is_not_asked_for_pairs() -> None:
    """Known before any call: each of its verdicts would have been unparsed, and paid for."""
    for protocol in (Pairwise(), BestOf(3)):
        for asked in (Service("house"), Panel((Service("a", winner="best"), Service("b")))):
            with pytest.raises(PlanError, match=f"judge house .* cannot be asked {protocol.kind}"):
                planned(cases(1), judges=(("house", asked),), protocols=(protocol,)).check(lambda model: Access.SCORE)
        picks = planned(cases(1), judges=(("house", Service("h", winner="best")),), protocols=(protocol,))
        picks.check(lambda model: Access.SCORE)


def test_a_service_keeps_the_status_of_its_answer_and_refuses_a_prompt_defense() -> None:
    down = Completion(status="error", reason="http_500")
    got = run(Service("s")(ONE), lambda ask: down if isinstance(ask, Invoke) else None)
    assert (got.status, got.reason) == ("error", "http_500")
    with pytest.raises(ConfigError, match="owns its prompt"):
        run(Guarded(Service("s"), Prefix())(ONE), lambda ask: down)  # type: ignore[arg-type]


# ------------------------------------------------------------------ protocols


def test_pairwise_shows_both_orders_and_never_the_answer() -> None:
    case = replace(cases(1)[0], meta=(("check", "x"), ("gold", "4"), ("source_lang", "en")))
    first, second = Pairwise().slates(case, "mine", "final/0")
    assert (first.candidates, first.index) == (("mine", case.reference), (0, 1))
    assert (second.candidates, second.index) == ((case.reference, "mine"), (1, 0))
    assert {first.replica, second.replica} == {"final/0"}
    assert first.meta == (("source_lang", "en"),)
    assert first.reference == "" == Pointwise().slates(case, "mine", "final/0")[0].reference
    assert Pointwise(grading=True).slates(case, "mine", "final/0")[0].reference == case.reference


@settings(max_examples=40, deadline=None)
@given(k=st.integers(2, 6), spare=st.integers(0, 6), seed=st.integers(0, 5))
def test_best_of_k_visits_every_slot_once(k: int, spare: int, seed: int) -> None:
    case = Case("c", "t", "mine", ("ref",), tuple(Weak(f"w{i}") for i in range(spare)))
    protocol = BestOf(k)
    slates = protocol.slates(case, "mine", "final/0", seed)
    n = size(protocol, case)
    assert n == min(k, 2 + spare) == len(slates)
    for slot in range(n):
        assert sorted(s.index[slot] for s in slates) == list(range(n))
    for s in slates:
        assert s.candidates[s.index.index(0)] == "mine" and s.candidates[s.index.index(1)] == "ref"
    assert slates == protocol.slates(case, "mine", "final/0", seed)
    assert len(BestOf(k, orders=3).slates(case, "mine", "final/0", seed)) == 3


def test_best_of_k_refuses_what_has_no_answer() -> None:
    for k in (0, 1, 27):
        with pytest.raises(PlanError, match="2 to 26"):
            BestOf(k)
    case = cases(1)[0]
    with pytest.raises(DataError, match="equals another candidate"):
        BestOf(3).slates(case, case.reference, "final/0")
    with pytest.raises(DataError, match="needs a reference"):
        BestOf(3).slates(replace(case, references=()), "x", "final/0")


def test_worth_and_outcome_of_every_verdict() -> None:
    pair = Pairwise()
    table = [(Verdict(choice=0), 1.0, "W"), (Verdict(choice=TIE), 0.5, "T"), (Verdict(choice=1), 0.0, "L")]
    table += [(Verdict(status=s), 0.0, s[0]) for s in ("unparsed", "refused", "truncated", "blocked", "error")]
    for verdict, worth, letter in table:
        assert (pair.worth(verdict), pair.outcome(verdict)) == (worth, letter)
    assert Pointwise().worth(Verdict(unit=0.25)) == 0.25
    assert Pointwise().outcome(Verdict(unit=0.25)) == "S"
    assert Pointwise().worth(Verdict(status="refused", unit=None)) == 0.0


def test_swapping_labels_and_orders_swaps_the_outcome() -> None:
    for letters in itertools.product("AB", repeat=2):
        outcomes = "".join(
            Pairwise().outcome(run(judge()(s), says(f"VERDICT: {x}")))
            for s, x in zip(Pairwise().slates(cases(1)[0], "mine", "final/0"), letters, strict=True)
        )
        assert outcomes == {"AA": "WL", "AB": "WW", "BA": "LL", "BB": "LW"}["".join(letters)]
    assert json.dumps(Pairwise.kind) == '"pairwise"'
