"""The engine's numbers are the plain model's numbers: losses, gradients, surprisals, replies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tiny_judges import ID, SPECIAL, WORDS
from transformers import AutoModelForCausalLM, AutoTokenizer

from robustjudge.asks import Gradient, Sample
from robustjudge.models.transformers import Transformers
from robustjudge.models.whitebox.margins import margin_at, slope
from robustjudge.nouns import Call, LabelCall, Message, Readout, Sampling, Text, message

pytestmark = pytest.mark.xdist_group("whitebox")  # the judges are trained once, by one worker

LABELS = ("1", "2", "3", "4", "5")
SCORES = Readout(LABELS, "VERDICT: ", values=(1.0, 2.0, 3.0, 4.0, 5.0))


@pytest.fixture(scope="module")
def model(raw_folder: Path) -> Iterator[Transformers]:
    made = Transformers(str(raw_folder), dtype="float64", threads=1)
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="module")
def plain(raw_folder: Path) -> tuple[Any, Any]:
    made = AutoModelForCausalLM.from_pretrained(raw_folder, dtype=torch.float64).eval()
    return made, AutoTokenizer.from_pretrained(raw_folder)


def asked(
    candidate: str,
    labels: tuple[str, ...] = LABELS,
    suffix: tuple[int, ...] = (),
    rival: str = "",
    first: bool = True,
    readout: Readout | None = SCORES,
    **sampling: Any,
) -> LabelCall:
    parts = [Text("<|source|> oak elm ash fir <|answer|> "), Text(candidate, "candidate/0")]
    if rival:
        parts += [Text(" <|answer|> "), Text(rival, "candidate/1")]
        parts = parts if first else [parts[0], parts[3], parts[2], parts[1]]
    call = Call("hf/x", (Message("user", tuple(parts)),), Sampling(**sampling), readout=readout)
    return LabelCall(call, labels, "VERDICT: ", suffix)


def logprobs(plain: tuple[Any, Any], text: str) -> Any:
    with torch.no_grad():
        ids = plain[1](text, add_special_tokens=False, return_tensors="pt").input_ids
        return plain[0](ids).logits[0].log_softmax(-1), ids[0].tolist()


def prompt(plain: tuple[Any, Any], call: LabelCall) -> str:
    turns = [{"role": m.role, "content": m.text} for m in call.call.messages]
    return str(plain[1].apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def swapped(seed: int, n: int = 60) -> list[str]:
    rng = Random(seed)
    words = [rng.choice(WORDS) for _ in range(8)]
    out = []
    for _ in range(n):
        here = list(words)
        here[rng.randrange(8)] = rng.choice(WORDS)
        out.append("red tan blue gold " + " ".join(here))
    return out


@pytest.mark.parametrize("share", [True, False])
def test_cached_losses_equal_naive_ones(raw_folder: Path, plain: tuple[Any, Any], share: bool) -> None:
    """float64, 1e-5: swaps of one suffix, two orders, other lengths and labels of several tokens, in one batch."""
    model = Transformers(str(raw_folder), dtype="float64", threads=1, share=share)
    calls = [asked(t) for t in swapped(1)]
    calls += [asked(t, rival="rust sand snow coal", first=i % 2 == 0) for i, t in enumerate(swapped(2))]
    calls += [asked("red"), asked("", ("good", "bad", "best")), asked("red tan " * 40)]

    async def work() -> Any:
        found = [*await model.weigh(tuple(calls)), *await model.weigh(tuple(calls))]  # the second from kept prefixes
        desk = model._owner.submit("", lambda desk: desk.engine.share).result()
        await model.close()
        return found, desk

    found, shared = asyncio.run(work())
    assert shared is share
    for call, weights, again in zip(calls, found, found[len(calls) :], strict=False):
        logs, _ = logprobs(plain, prompt(plain, call) + "VERDICT:")
        wanted = [float(logs[-1, ID.get(x, 0)]) for x in call.labels]
        assert weights.status == again.status == "ok"
        assert weights.logprobs == pytest.approx(wanted, abs=1e-5)
        assert again.logprobs == pytest.approx(wanted, abs=1e-5)


def test_swaps_behind_a_gradient_pass_equal_naive_losses(model: Transformers, plain: tuple[Any, Any]) -> None:
    """float64, 1e-5: single swaps at every position, swaps made at once, other lengths and another order, each run only
    from its first changed token on: the keys and values before it are those of the gradient pass."""
    words = ["rain", "wind", "hill", "good", "rust", "sand", "snow", "coal"]
    rng = Random(5)
    texts = [[*words[:at], rng.choice(WORDS), *words[at + 1 :]] for at in range(8) for _ in range(5)]
    texts += [[*words[:3], *(rng.choice(WORDS) for _ in range(5))], words[:5], [*words, "red", "tan"], words]
    calls = [asked("red tan blue gold " + " ".join(t)) for t in texts]
    here = asked("red tan blue gold " + " ".join(words))
    asyncio.run(model.gradient(Gradient((here,), tuple(ID[w] for w in words), 3)))
    before = model._owner.submit("", lambda desk: desk.engine.forwarded).result()
    found = asyncio.run(model.weigh(tuple(calls)))
    run = model._owner.submit("", lambda desk: desk.engine.forwarded).result() - before
    ids = logprobs(plain, prompt(plain, here) + "VERDICT:")[1]
    tail = len(ids) - (ids.index(ID["rain"]) + 8)
    kept = {
        tuple(t): next((i for i, (a, b) in enumerate(zip(t, words, strict=False)) if a != b), len(t)) for t in texts
    }
    assert run <= sum(len(t) - n + tail for t, n in kept.items())  # equal texts are run once
    for call, weights in zip(calls, found, strict=True):
        logs, _ = logprobs(plain, prompt(plain, call) + "VERDICT:")
        assert weights.logprobs == pytest.approx([float(logs[-1, ID[x]]) for x in LABELS], abs=1e-5)


def test_labels_of_several_tokens_follow_the_trie(model: Transformers, plain: tuple[Any, Any]) -> None:
    """``good best`` is P(good) P(best | good); ``good`` alone is P(good) P(not on towards a longer label)."""
    call = asked("red tan", ("good best", "good", "fine"))
    (weights,) = asyncio.run(model.weigh((call,)))
    logs, _ = logprobs(plain, prompt(plain, call) + "VERDICT: good")
    good, best, fine = float(logs[-2, ID["good"]]), float(logs[-1, ID["best"]]), float(logs[-2, ID["fine"]])
    rest = float(torch.log1p(-torch.tensor(best, dtype=torch.float64).exp()))
    assert weights.logprobs == pytest.approx((good + best, good + rest, fine), abs=1e-9)


@pytest.mark.parametrize("target", ["win", "top", ""])
def test_gradient_agrees_with_finite_differences(model: Transformers, target: str) -> None:
    suffix = tuple(ID[w] for w in ("rain", "wind", "hill", "good"))
    text = "red tan blue gold rain wind hill good"
    calls = [asked(text), asked(text, rival="rust sand snow coal", first=False)]

    def work(desk: Any) -> tuple[Any, list[float], list[float]]:
        calls_ = [LabelCall(c.call, c.labels, c.lead, suffix) for c in calls]
        items = [(c, q, span) for c, (q, span) in zip(calls_, desk.questions(calls_), strict=True)]
        grad = slope(desk.engine, items, target, range, 4)
        told, seen = [], []
        generator = torch.Generator().manual_seed(3)
        step = 1e-3
        for _ in range(12):
            way = torch.randn(4, 128, generator=generator, dtype=torch.float64)
            way /= way.norm()
            total = 0.0
            for sign in (1, -1):
                for call, question, (a, b) in items:
                    base = desk.engine.embeddings[torch.tensor(question.base[a:b])]
                    with torch.no_grad():
                        value = margin_at(desk.engine, call, question, (a, b), base + sign * step * way, target)
                    total += sign * float(value)
            told.append(float((grad * way).sum()))
            seen.append(total / (2 * step))
        return grad, told, seen

    grad, told, seen = model._owner.submit("", work).result()
    assert float(grad.norm()) > 1e-3
    assert told == pytest.approx(seen, rel=2e-3, abs=1e-3)


def test_gradient_ranks_legal_ids_by_first_order_gain(model: Transformers) -> None:
    suffix = tuple(ID[w] for w in ("rain", "wind"))
    call = asked("red tan blue gold rain wind")
    table = asyncio.run(model.gradient(Gradient((call,), suffix, 7, "win")))
    every = asyncio.run(model.gradient(Gradient((call,), suffix, 10_000, "win")))
    assert [row[:7] for row in every] == list(table)
    special = {ID[x] for x in SPECIAL}
    assert all(set(row) == set(ID.values()) - special for row in every)


def test_surprisal_equals_the_plain_model(model: Transformers, plain: tuple[Any, Any]) -> None:
    (told, alone) = asyncio.run(model.surprise(("rain wind hill", "rain"), "red tan"))
    logs, ids = logprobs(plain, "red tan rain wind hill")
    assert told.logprobs == pytest.approx([float(logs[i - 1, ids[i]]) for i in (2, 3, 4)], abs=1e-9)
    assert told.ends == (4, 9, 14)
    assert alone.logprobs == pytest.approx(told.logprobs[:1], abs=1e-9)


def test_greedy_reply_equals_the_plain_model(model: Transformers, plain: tuple[Any, Any]) -> None:
    call = asked("red tan", max_tokens=7, top_logprobs=3)
    reply = asyncio.run(model.complete(call.call))
    text, words = prompt(plain, call), []
    for _ in range(7):
        logs, _ = logprobs(plain, text + " ".join(words))
        words.append(plain[1].decode([int(logs[-1].argmax())]))
    assert (reply.text, reply.status, reply.finish) == (" ".join(words), "truncated", "length")
    assert [t.token for t in reply.tokens] == words
    assert all(t.top[0] == (t.token, t.logprob) and len(t.top) == 3 for t in reply.tokens)


def test_draws_repeat_and_differ_by_replica(model: Transformers) -> None:
    def say(replica: str, seed: int = 0) -> str:
        call = Call("hf/x", (message("user", "red"),), Sampling(1.0, 12, top_p=0.9, seed=seed), replica)
        return asyncio.run(model.complete(call)).text

    assert say("final/0") == say("final/0")
    assert len({say("final/0"), say("final/1"), say("final/0", 1)}) == 3


def test_next_tokens_are_drawn_without_replacement(model: Transformers) -> None:
    chat = (message("user", "red"), message("assistant", "tan "))
    ask = Sample("hf/x", (chat, chat), 50, 1)
    first, again = asyncio.run(model.sample(ask))
    assert first == again and len(set(first)) == 50
    (other,) = asyncio.run(model.sample(Sample("hf/x", (chat,), 50, 2)))
    assert other != first
    (every,) = asyncio.run(model.sample(Sample("hf/x", (chat,), 10_000, 1)))
    assert len(every) == len(ID) - len(SPECIAL)
