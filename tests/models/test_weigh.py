"""The verdict position and the floor rule."""

from __future__ import annotations

import math

import pytest
from endpoint_help import ask, call, http_model
from hypothesis import given, settings, strategies as st
from strict_server import StrictServer, chat

from robustjudge.models.base import Settings
from robustjudge.models.http import HttpModel
from robustjudge.models.weigh import at_verdict, request
from robustjudge.nouns import Completion, LabelCall, TokenOdds, Weights

TEN = tuple(str(i) for i in range(1, 11))


def tokens(*pieces: str | tuple[str, dict[str, float]]) -> tuple[TokenOdds, ...]:
    """Tokens; a piece with a table of alternatives gets their logs, best first."""
    out = []
    for piece in pieces:
        text, table = piece if isinstance(piece, tuple) else (piece, {piece: 1.0})
        top = tuple(sorted(((t, math.log(p)) for t, p in table.items()), key=lambda x: -x[1]))
        out.append(TokenOdds(text, dict(top).get(text, -0.1), top))
    return tuple(out)


def read(
    *pieces: str | tuple[str, dict[str, float]], labels: tuple[str, ...] = TEN, lead: str = "VERDICT: "
) -> Weights:
    found = tokens(*pieces)
    return at_verdict(Completion("".join(t.token for t in found), tokens=found), labels, lead)


def chances(weights: Weights) -> list[float]:
    return [math.exp(x) for x in weights.logprobs]


def test_B090_the_token_of_the_verdict_counts_not_its_twin_in_the_reason() -> None:
    weights = read(
        "Only ", ("8", {"8": 0.99, "7": 0.01}), " of 10.\n", "VERDICT", ":", " ", ("8", {"8": 0.6, "9": 0.4}), ".",
        labels=("8", "9"),
    )  # fmt: skip
    assert chances(weights) == pytest.approx([0.6, 0.4])
    assert weights.floored == (False, False)
    assert sum(p * v for p, v in zip(chances(weights), (8, 9))) == pytest.approx(8.4)


def test_B092_no_label_among_the_alternatives_is_no_score() -> None:
    weights = read("VERDICT:", (" the", {" the": 0.7, " a": 0.3}))
    assert (weights.status, weights.reason, weights.logprobs) == ("unparsed", "no_label_among_alternatives", ())


def test_variants_of_one_label_are_summed() -> None:
    weights = read("VERDICT:", (" 8", {" 8": 0.5, "8": 0.2, " **8": 0.1, " 9": 0.1}), labels=("8", "9"))
    assert chances(weights) == pytest.approx([0.8, 0.1])


def test_floor_is_the_lowest_listed_or_what_the_list_leaves() -> None:
    loose = read("VERDICT: ", ("8", {"8": 0.5, "9": 0.1}), labels=("8", "9", "7"))
    assert chances(loose) == pytest.approx([0.5, 0.1, 0.1]) and loose.floored == (False, False, True)
    tight = read("VERDICT: ", ("8", {"8": 0.9, "9": 0.08}), labels=("8", "9", "7"))
    assert chances(tight) == pytest.approx([0.9, 0.08, 0.02])


def test_a_label_of_several_tokens_is_followed_along_the_reply() -> None:
    weights = read("VERDICT: ", ("1", {"1": 0.8, "9": 0.2}), ("0", {"0": 0.75, "<end>": 0.25}), labels=("1", "9", "10"))
    assert chances(weights) == pytest.approx([0.2, 0.2, 0.6])
    assert weights.floored == (False, False, False)


def test_the_bound_of_an_unseen_longer_label_is_its_listed_start() -> None:
    weights = read("VERDICT: ", ("9", {"9": 0.8, "1": 0.15, "8": 0.05}), labels=("1", "9", "10"))
    assert chances(weights)[2] == pytest.approx(0.15) and weights.floored == (False, False, True)


def test_the_last_lead_counts() -> None:
    weights = read(
        "I write VERDICT: ", ("2", {"2": 0.99}), " later.\nVERDICT: ", ("6", {"6": 0.7, "5": 0.3}), labels=("5", "6")
    )
    assert chances(weights) == pytest.approx([0.3, 0.7])


def test_without_a_lead_the_first_visible_token_counts() -> None:
    weights = read("\n", ("B", {"B": 0.9, "A": 0.1}), " is", labels=("A", "B"), lead="")
    assert chances(weights) == pytest.approx([0.1, 0.9])
    asked = request(LabelCall(call(max_tokens=300), ("A", "B")))
    assert (asked.sampling.max_tokens, asked.sampling.top_logprobs) == (16, 20)
    assert request(LabelCall(call(max_tokens=300), ("A",), "VERDICT: ")).sampling.max_tokens == 300


@pytest.mark.parametrize(
    ("completion", "status", "reason"),
    [
        (Completion("x"), "error", "no_logprobs"),
        (Completion("", "refused", reason="refusal"), "refused", "refusal"),
        (Completion("", "error", reason="timeout"), "error", "timeout"),
        (Completion("No idea", tokens=tokens("No", " idea")), "unparsed", "no_verdict_position"),
        (Completion("Long", "truncated", tokens=tokens("Long")), "truncated", "no_verdict_position"),
        (Completion("VERDICT:", tokens=tokens("VERDICT", ":")), "unparsed", "no_verdict_position"),
        (Completion("VERDICT:8", tokens=tokens("VERDICT", ":8")), "unparsed", "no_verdict_position"),
    ],
)
def test_every_other_case_says_why(completion: Completion, status: str, reason: str) -> None:
    weights = at_verdict(completion, TEN, "VERDICT: ")
    assert (weights.status, weights.reason, weights.logprobs) == (status, reason, ())


def test_weigh_end_to_end() -> None:
    content = [
        {"token": t.token, "logprob": t.logprob, "bytes": None, "top_logprobs": [{"token": a, "logprob": b} for a, b in t.top]}
        for t in tokens("VERDICT: ", ("8", {"8": 0.6, "9": 0.4}))
    ]  # fmt: skip
    body = chat("VERDICT: 8", choice={"logprobs": {"content": content, "refusal": None}})
    labelled = LabelCall(call(), ("8", "9"), "VERDICT: ")
    with StrictServer(answer=lambda _: body) as server:
        first, second = ask(http_model(server.url), lambda m: m.weigh((labelled, labelled)))
        assert server.requests[0].body["top_logprobs"] == 20
    assert first == second and chances(first) == pytest.approx([0.6, 0.4])


def test_a_model_without_log_probabilities_says_so_without_a_call() -> None:
    model = HttpModel("http/m", "m", Settings(base_url="http://127.0.0.1:9/v1", logprobs=False))
    (weights,) = ask(model, lambda m: m.weigh((LabelCall(call(), ("A",)),)))
    assert (weights.status, weights.reason, model.limiter.counters.sent) == ("error", "no_logprobs", 0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["VERDICT", ":", " ", "1", "0", "10", "8", "\n", "**", "x", ""]), st.floats(-30, 0)),
        max_size=12,
    ),
    st.lists(st.tuples(st.sampled_from(["1", "10", " 8", "9", "x", ""]), st.floats(-30, 0)), max_size=6),
    st.sampled_from(["", "VERDICT: "]),
)
@settings(max_examples=200, deadline=None)
def test_any_tokens_give_finite_weights_or_a_reason(
    pieces: list[tuple[str, float]], top: list[tuple[str, float]], lead: str
) -> None:
    found = tuple(TokenOdds(t, p, tuple(top)) for t, p in pieces)
    weights = at_verdict(Completion("".join(t for t, _ in pieces), tokens=found), TEN, lead)
    if weights.status == "ok":
        assert len(weights.logprobs) == len(weights.floored) == 10
        assert all(math.isfinite(x) for x in weights.logprobs) and not all(weights.floored)
    else:
        assert weights.reason and not weights.logprobs
