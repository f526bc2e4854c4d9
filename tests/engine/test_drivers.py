"""The kernel and its three drivers: equal results, equal ask hashes, divergence, faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from robustjudge.asks import Complete
from robustjudge.engine.backend import Backend
from robustjudge.engine.driver import AsyncDriver, Job, Landed
from robustjudge.engine.kernel import Diverged, Flight
from robustjudge.engine.ledger import Ledger
from robustjudge.engine.lockstep import run_lockstep
from robustjudge.engine.sync import run_sync
from robustjudge.engine.writer import Writer
from robustjudge.errors import BudgetSpent, Incomplete
from robustjudge.nouns import Access, Call, Completion, Sampling, message
from robustjudge.steps import together


def call(text: str, replica: str = "clean/0") -> Call:
    return Call("toy/a", (message("user", text),), Sampling(), replica)


async def ask(text: str, replica: str = "clean/0") -> str:
    (done,) = await Complete((call(text, replica),))
    return done.text


async def tree(i: int) -> Any:
    """Sequential, parallel and nested asks, some of them shared between flights."""
    first = await ask(f"root {i % 3}")
    sides = await together([pair(i), ask(f"leaf {first}"), pair(i + 1)])
    return first, sides, await ask("last", f"final/{i}")


async def pair(i: int) -> tuple[str, ...]:
    return await together([ask(f"a{i}"), ask(f"b{i}")])


def reply(c: Call) -> Completion:
    return Completion(f"<{c.messages[0].text}|{c.replica}>")


class Toy:
    """A model whose replies come back in random order."""

    name, access, context, concurrency, identity = "toy/a", Access.SCORE, None, 8, "toy"

    def __init__(self, seed: int = 0, delay: bool = True) -> None:
        self.random, self.delay, self.sent = random.Random(seed), delay, []  # type: ignore[var-annotated]

    async def complete(self, c: Call) -> Completion:
        self.sent.append(c)
        if self.delay:
            await asyncio.sleep(self.random.random() / 500)
        return reply(c)

    async def close(self) -> None:
        pass


def jobs(n: int) -> Iterator[Job]:
    return (Job(str(i), lambda i=i: tree(i)) for i in range(n))  # type: ignore[misc]


def by_key(landed: list[Landed]) -> dict[str, tuple[Any, str]]:
    assert all(x.error is None for x in landed)
    return {x.job.key: (x.result, x.trace) for x in landed}


def by_sync(n: int) -> dict[str, tuple[Any, str]]:
    out: list[Landed] = []
    run_sync(jobs(n), lambda pending, key: tuple(reply(c) for c in pending.ask.calls), out.append)
    return by_key(out)


def by_async(n: int, toy: Toy, window: int = 5) -> dict[str, tuple[Any, str]]:
    out: list[Landed] = []

    async def main() -> None:
        backend = Backend(lambda name: toy, Ledger(Writer(), None))
        await AsyncDriver(backend, out.append, window=window).run(jobs(n))

    asyncio.run(main())
    return by_key(out)


@pytest.mark.parametrize("seed", range(3))
def test_three_drivers_agree_in_results_and_hashes_in_any_completion_order(seed: int) -> None:
    expected = by_sync(12)
    assert by_async(12, Toy(seed), window=1 + 3 * seed) == expected
    out: list[Landed] = []
    run_lockstep(jobs(12), lambda calls: [reply(c) for c in calls], lambda p, k: None, out.append, window=1 + 4 * seed)
    assert by_key(out) == expected


def test_equal_calls_in_flight_are_sent_once_and_named_replicas_apart() -> None:
    toy = Toy()
    by_async(12, toy, window=12)
    texts = [(c.messages[0].text, c.replica) for c in toy.sent]
    assert len([t for t in texts if t[0] == "last"]) == 12
    assert texts.count(("root 0", "clean/0")) == 1


def test_lockstep_batches_hold_each_distinct_call_once() -> None:
    sizes = []

    def batch(calls: Any) -> list[Completion]:
        assert len({(c.messages[0].text, c.replica) for c in calls}) == len(calls)
        sizes.append(len(calls))
        return [reply(c) for c in calls]

    run_lockstep(jobs(30), batch, lambda p, k: None, lambda landed: None, window=30)
    assert len(sizes) == 3


def test_flights_leave_memory_when_they_land() -> None:
    live, most = 0, 0

    async def counted(i: int) -> Any:
        nonlocal live, most
        live += 1
        most = max(most, live)
        try:
            return await tree(i)
        finally:
            live -= 1

    async def main() -> None:
        backend = Backend(lambda name: Toy(delay=False), Ledger(Writer(), None))
        many = (Job(str(i), lambda i=i: counted(i)) for i in range(300))  # type: ignore[misc]
        await AsyncDriver(backend, lambda landed: None, window=7).run(many)

    asyncio.run(main())
    assert live == 0
    assert most <= 7


def test_a_replay_that_asks_something_else_is_reported_with_the_first_differing_ask_and_sends_nothing() -> None:
    stored: Flight[Any] = Flight(ask("one"))
    (pending,) = stored.launch()
    other: Flight[Any] = Flight(ask("two"), {pending.path: pending.mark})
    assert other.launch() == []
    assert isinstance(other.error, Diverged)
    assert "ask 0 (Complete) differs" in str(other.error)
    stored.close()


def test_an_error_in_one_trial_is_its_row_and_the_run_goes_on() -> None:
    out: list[Landed] = []

    async def bad(i: int) -> Any:
        if i == 2:
            raise KeyError("plugin bug")
        return await tree(i)

    async def main() -> None:
        backend = Backend(lambda name: Toy(), Ledger(Writer(), None))
        await AsyncDriver(backend, out.append).run(Job(str(i), lambda i=i: bad(i)) for i in range(5))  # type: ignore[misc]

    asyncio.run(main())
    failed = [x for x in out if x.error]
    assert [x.job.key for x in failed] == ["2"]
    assert "cell 2" in failed[0].error.__notes__[0]  # type: ignore[union-attr]
    assert len(out) == 5


def test_an_error_inside_together_closes_the_siblings_and_reaches_the_parent() -> None:
    async def broken() -> str:
        await ask("x")
        raise ValueError("inner")

    async def parent() -> str:
        try:
            await together([ask("slow"), broken()])
        except ValueError as fault:
            return f"handled {fault}, then {await ask('after')}"
        return "no"

    out: list[Landed] = []
    run_sync([Job("k", parent)], lambda p, k: tuple(reply(c) for c in p.ask.calls), out.append)
    assert out[0].result == "handled inner, then <after|clean/0>"


def test_a_spent_cap_stops_the_run_and_keeps_what_landed() -> None:
    from robustjudge.engine.caps import Caps

    out: list[Landed] = []
    toy = Toy()

    async def main() -> None:
        backend = Backend(lambda name: toy, Ledger(Writer(), None), caps=Caps(max_calls=20))
        await AsyncDriver(backend, out.append, window=2).run(jobs(50))

    with pytest.raises(BudgetSpent, match="--max-calls 20"):
        asyncio.run(main())
    assert len(toy.sent) == 20
    assert 0 < len(out) < 50


def test_stopping_is_no_error_row() -> None:
    assert issubclass(BudgetSpent, Incomplete)
