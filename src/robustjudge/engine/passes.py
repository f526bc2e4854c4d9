"""Forward passes of a scoring model: one per text and context, shared by whoever asks, several texts at a time.

Two detectors that score the same text pay for it once, in one run (in flight) and over runs (the ledger).  What arrives
while the model is busy goes out together afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from robustjudge.asks import Surprise
from robustjudge.engine.ledger import Ledger
from robustjudge.nouns import Surprisal
from robustjudge.spec import digest

MOST = 64
"""Texts in one batch."""

Scoring = Callable[[tuple[str, ...], str], Any]
"""``surprise(texts, context)`` of a model."""


class Passes:
    """Answers :class:`~robustjudge.asks.Surprise`.  ``open`` gives a model's identity and its scoring method."""

    def __init__(self, open: Callable[[Surprise], tuple[str, Scoring]], ledger: Ledger) -> None:
        self._open = open
        self._ledger = ledger
        self._flights: dict[str, asyncio.Future[Surprisal]] = {}
        self._waiting: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def surprise(self, ask: Surprise) -> tuple[Surprisal, ...]:
        """The surprisal of every text of ``ask``, in order."""
        identity, score = self._open(ask)
        return tuple(await asyncio.gather(*[self._one(ask, t, identity, score) for t in ask.texts]))

    async def _one(self, ask: Surprise, text: str, identity: str, score: Scoring) -> Surprisal:
        key = digest("surprise", identity, ask.context, text)
        held = self._ledger.get(key)
        if held is not None:
            logprobs, status, reason, ends = held
            return Surprisal(tuple(logprobs), status, reason, tuple(ends))
        if self._ledger.mode == "replay-only":
            return Surprisal(status="error", reason="not_recorded")
        if key not in self._flights:
            self._flights[key] = asyncio.get_running_loop().create_future()
            group = self._waiting.setdefault((identity, ask.context), [])
            group.append((key, text))
            if len(group) == 1:
                task = asyncio.create_task(self._send(ask.model, identity, ask.context, score))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(self._flights[key])

    async def _send(self, model: str, identity: str, context: str, score: Scoring) -> None:
        """Score what waits for this model and context, once the model is free."""
        async with self._locks.setdefault(identity, asyncio.Lock()):
            await asyncio.sleep(0)  # whoever asks in the same turn of the loop comes along
            group = self._waiting.pop((identity, context))
            for at in range(0, len(group), MOST):
                await self._batch(group[at : at + MOST], model, context, score)

    async def _batch(self, group: list[tuple[str, str]], model: str, context: str, score: Scoring) -> None:
        futures = [self._flights[key] for key, _ in group]
        try:
            raw = await score(tuple(text for _, text in group), context)
            for (key, _), future, found in zip(group, futures, raw, strict=True):
                kept = replace(found, logprobs=tuple(float32(x) for x in found.logprobs))
                if kept.status != "error":
                    self._ledger.put(
                        key, model, "surprise", [list(kept.logprobs), kept.status, kept.reason, list(kept.ends)]
                    )
                future.set_result(kept)
        except BaseException as fault:
            for future in futures:
                if not future.done():
                    future.set_exception(fault)
                    future.exception()  # mark as retrieved: waiters get it, nobody else complains
            if not isinstance(fault, Exception):
                raise
        finally:
            for key, _ in group:
                del self._flights[key]


def float32(x: float) -> float:
    """``x`` rounded to single precision, so that a resumed search sees the number the first run saw."""
    from struct import pack as to_bytes, unpack as from_bytes

    value: float = from_bytes("f", to_bytes("f", max(min(x, 3e38), -3e38)))[0]
    return value
