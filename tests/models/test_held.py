"""A reply held to its verdict line: the choice among labels, by weight."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from robustjudge.judges import verdict_grammar
from robustjudge.models import held
from robustjudge.nouns import Call, Readout, Sampling, message

LINE = Readout(("A", "B", "C"), "VERDICT: ")
LOGS = tuple(map(math.log, (0.02, 0.05, 0.01)))


def call(**sampling: object) -> Call:
    return Call("x/y", (message("user", "?"),), Sampling(grammar=verdict_grammar(LINE), **sampling), readout=LINE)  # type: ignore[arg-type]


def test_only_the_calls_own_verdict_line_holds_it() -> None:
    assert held.line_of(call()) is LINE
    assert held.line_of(replace(call(), readout=None)) is None
    assert held.line_of(replace(call(), sampling=Sampling())) is None
    assert held.line_of(replace(call(), readout=Readout(("A", "B"), "VERDICT: "))) is None


def test_cold_replies_are_the_likeliest_label_and_the_first_of_equals() -> None:
    assert held.reply(call(), LINE, LOGS, "p", "x/y").text == "VERDICT: B\n"
    assert held.reply(call(), LINE, (0.0, 0.0, -1.0), "p", "x/y").text == "VERDICT: A\n"
    told = held.reply(call(top_logprobs=2), LINE, LOGS, "p", "x/y").tokens
    assert [(t.token, [name for name, _ in t.top]) for t in told] == [("B", ["B", "A"])]


@pytest.mark.parametrize(("temperature", "shares"), [(1.0, (0.25, 0.625, 0.125)), (0.5, (4 / 30, 25 / 30, 1 / 30))])
def test_warm_replies_are_drawn_by_the_labels_weights(temperature: float, shares: tuple[float, ...]) -> None:
    n = 4000
    drawn = [
        held.reply(replace(call(temperature=temperature), replica=f"r/{i}"), LINE, LOGS, "p", "x/y").text[9]
        for i in range(n)
    ]
    for label, share in zip("ABC", shares, strict=True):
        assert drawn.count(label) / n == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / n))


def test_nucleus_and_seed() -> None:
    few = {held.reply(call(temperature=1.0, top_p=0.6, seed=i), LINE, LOGS, "p", "x/y").text for i in range(50)}
    assert few == {"VERDICT: B\n"}
    two = {held.reply(call(temperature=1.0, top_p=0.7, seed=i), LINE, LOGS, "p", "x/y").text for i in range(50)}
    assert two == {"VERDICT: A\n", "VERDICT: B\n"}
    warm = call(temperature=1.0, seed=3)
    assert held.reply(warm, LINE, LOGS, "p", "x/y") == held.reply(warm, LINE, LOGS, "p", "x/y")
