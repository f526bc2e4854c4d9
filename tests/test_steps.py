"""Steps, handlers and what may be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from robustjudge.steps import Ask, Handler, NotAnAsk, Stateless, handled, run, together


@dataclass(frozen=True)
class Number(Ask[int]):
    n: int


async def total(*ns: int) -> int:
    return sum([await Number(n) for n in ns])


async def nested() -> tuple[int, ...]:
    first = await together([total(1, 2), total(3)])
    return (*first, await Number(10))


def test_answers_reach_the_steps_in_order() -> None:
    assert run(nested(), lambda ask: ask.n) == (3, 3, 10)


def test_a_handler_reaches_asks_inside_together_and_passes_the_rest_outward() -> None:
    @dataclass(frozen=True)
    class Other(Ask[str]):
        pass

    class Double(Stateless):
        async def answer(self, ask: Ask[Any]) -> Any:
            return 2 * ask.n if isinstance(ask, Number) else await ask

    async def work() -> Any:
        return await together([total(1, 2), other()])

    async def other() -> str:
        return await Other()

    assert run(handled(work(), Double()), lambda ask: "outside") == (6, "outside")


def test_a_handler_divides_itself_over_the_parts() -> None:
    @dataclass
    class Meter:
        left: int

        async def answer(self, ask: Ask[Any]) -> Any:
            self.left -= 1
            return self.left

        def split(self, n: int) -> Iterable[Handler]:
            return [Meter(self.left // n) for _ in range(n)]

    assert run(handled(nested(), Meter(10)), lambda ask: None) == (4 + 3, 4, 9)


def test_an_error_of_the_handler_is_thrown_into_the_steps() -> None:
    class Broken(Stateless):
        async def answer(self, ask: Ask[Any]) -> Any:
            raise ValueError("boom")

    async def careful() -> str:
        try:
            await Number(1)
        except ValueError as fault:
            return f"caught {fault}"
        return "no"

    assert run(handled(careful(), Broken()), lambda ask: None) == "caught boom"


def test_awaiting_anything_but_an_ask_says_so_with_file_and_line() -> None:
    async def wrong() -> None:
        await asyncio.sleep(0)

    with pytest.raises(NotAnAsk, match=r"steps may await only asks, not NoneType \(.*\.py:\d+\)"):
        run(wrong(), lambda ask: None)
