"""Forward passes: one per text and context, shared in flight and over runs, several texts at a time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from robustjudge.asks import Surprise
from robustjudge.defenses.perplexity import Perplexity, WindowedPerplexity
from robustjudge.engine.ledger import Ledger
from robustjudge.engine.passes import Passes
from robustjudge.engine.writer import Writer
from robustjudge.nouns import Slate, Surprisal


class Scorer:
    """Counts batches and texts; a text's log-probability is minus its length."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []

    async def surprise(self, texts: tuple[str, ...], context: str = "") -> tuple[Surprisal, ...]:
        self.batches.append(texts)
        await asyncio.sleep(0.01)
        if "broken" in texts:
            raise RuntimeError("the model fell over")
        return tuple(Surprisal((-float(len(t)), -1.0)) for t in texts)


def asked(scorer: Scorer, steps: Any, path: Path | None = None, mode: str = "off") -> Any:
    """The results of steps that ask for surprisals only, run side by side."""

    async def go() -> Any:
        writer = Writer()
        ledger = Ledger(writer, path, mode)  # type: ignore[arg-type]
        passes = Passes(lambda ask: (ask.model, scorer.surprise), ledger)

        async def drive(one: Any) -> Any:
            reply: Any = None
            while True:
                try:
                    ask = one.send(reply)
                except StopIteration as done:
                    return done.value
                reply = await passes.surprise(ask)

        try:
            return await asyncio.gather(*map(drive, steps))
        finally:
            writer.close()

    return asyncio.run(go())


def both(texts: tuple[str, ...]) -> list[Any]:
    slate = Slate("task", texts, tuple(range(len(texts))))
    return [d.suspicion(texts, slate) for d in (Perplexity("m"), WindowedPerplexity("m"))]


def test_two_detectors_share_one_pass_per_text_and_texts_go_together() -> None:
    scorer = Scorer()
    asked(scorer, both(("a", "bb", "a", "ccc")))
    assert scorer.batches == [("a", "bb", "ccc")]


def test_what_arrives_while_the_model_is_busy_goes_out_together() -> None:
    async def go() -> tuple[int, Scorer]:
        scorer = Scorer()
        passes = Passes(lambda ask: (ask.model, scorer.surprise), Ledger(Writer(), None, "off"))

        async def late(i: int) -> Any:
            await asyncio.sleep(0.002 if i else 0)
            return await passes.surprise(Surprise("m", (f"text {i}",)))

        found = await asyncio.gather(*[late(i) for i in range(9)])
        return len(found), scorer

    n, scorer = asyncio.run(go())
    assert n == 9 and [len(b) for b in scorer.batches] == [1, 8]


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    first, second = Scorer(), Scorer()
    path = tmp_path / "ledger.sqlite"
    told = asked(first, both(("a", "bb")), path, "live")
    assert asked(second, both(("bb", "a")), path, "live") != told and second.batches == []
    assert asked(second, both(("a", "bb")), path, "live") == told and second.batches == []


def test_a_fault_reaches_everyone_who_waits_and_is_not_kept() -> None:
    async def go() -> None:
        scorer = Scorer()
        passes = Passes(lambda ask: (ask.model, scorer.surprise), Ledger(Writer(), None, "off"))
        for _ in range(2):
            found = await asyncio.gather(
                passes.surprise(Surprise("m", ("broken",))),
                passes.surprise(Surprise("m", ("broken", "fine"))),
                return_exceptions=True,
            )
            assert all(isinstance(f, RuntimeError) for f in found)
        (kept,) = await passes.surprise(Surprise("m", ("fine",)))
        assert kept.logprobs == (-4.0, -1.0)

    asyncio.run(go())


def test_another_context_is_another_pass() -> None:
    async def go() -> list[tuple[str, ...]]:
        scorer = Scorer()
        passes = Passes(lambda ask: (ask.model, scorer.surprise), Ledger(Writer(), None, "off"))
        await asyncio.gather(
            passes.surprise(Surprise("m", ("x",), "one")), passes.surprise(Surprise("m", ("x",), "two"))
        )
        return scorer.batches

    assert asyncio.run(go()) == [("x",), ("x",)]


@pytest.mark.parametrize("n", [130])
def test_no_batch_is_larger_than_the_limit(n: int) -> None:
    async def go() -> list[int]:
        scorer = Scorer()
        passes = Passes(lambda ask: (ask.model, scorer.surprise), Ledger(Writer(), None, "off"))
        await passes.surprise(Surprise("m", tuple(f"text {i}" for i in range(n))))
        return [len(b) for b in scorer.batches]

    assert asyncio.run(go()) == [64, 64, 2]
