"""Helpers for tests of endpoint clients: calls, and a limiter that never really waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from robustjudge.engine.limits import Limiter
from robustjudge.models.base import Settings
from robustjudge.models.http import HttpModel
from robustjudge.nouns import Call, Message, Sampling, message

T = TypeVar("T")


class NoWait:
    """Real time, but sleeping only moves the clock."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return time.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def call(text: str = "Judge this.", system: str = "", **sampling: Any) -> Call:
    """A call of one user turn, with a system turn before it if given."""
    turns: tuple[Message, ...] = (message("user", text),)
    if system:
        turns = (message("system", system), *turns)
    return Call("openai/m", turns, Sampling(**sampling))


def patient(model: Any, **limits: Any) -> Any:
    """``model`` with a limiter that never waits."""
    model.limiter = Limiter(clock=NoWait(), **limits)
    return model


def http_model(url: str, model: str = "m", **settings: Any) -> Any:
    """An HTTP model at ``url`` that never waits."""
    settings.setdefault("key_env", "TEST_KEY")
    return patient(HttpModel(f"openai/{model}", model, Settings(base_url=url, **settings)))


def ask(model: Any, use: Callable[[Any], Awaitable[T]]) -> T:
    """Run ``use(model)`` on a loop of its own and close the model."""

    async def main() -> T:
        try:
            return await use(model)
        finally:
            await model.close()

    return asyncio.run(main())
