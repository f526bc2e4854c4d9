"""The lockstep driver: advance every live flight as far as it goes, then answer all calls at once in one batch.

For offline batch inference and provider batches: no event loop, the largest possible batches, each distinct call once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from robustjudge.asks import Complete
from robustjudge.engine.driver import Job, Landed
from robustjudge.engine.kernel import Flight, Pending
from robustjudge.errors import Incomplete
from robustjudge.nouns import Call, Completion


def run_lockstep(
    jobs: Iterable[Job],
    batch: Callable[[Sequence[Call]], Sequence[Completion]],
    other: Callable[[Pending, str], Any],
    land: Callable[[Landed], None],
    window: int = 256,
) -> None:
    """Fly jobs in waves.  ``batch`` answers the distinct calls of a wave, ``other`` every ask that is no ``Complete``.

    Answers of a wave leave memory with it; equal calls of later waves are ``batch``'s to look up (a ledger does).
    """
    source = iter(jobs)
    live: list[tuple[Job, Flight[Any]]] = []
    waiting: list[tuple[int, Pending]] = []
    serial: dict[int, tuple[Job, Flight[Any]]] = {}
    number = 0
    while True:
        for job in islice(source, window - len(serial)):
            flight: Flight[Any] = Flight(job.make(), job.known)
            serial[number] = (job, flight)
            waiting.extend((number, p) for p in flight.launch())
            number += 1
        calls: dict[str, Call] = {}
        completes: list[tuple[int, Pending]] = []
        ready: list[tuple[int, Pending, Any, BaseException | None]] = []
        for n, pending in waiting:
            if isinstance(pending.ask, Complete):
                completes.append((n, pending))
                calls.update(zip(pending.keys, pending.ask.calls, strict=True))
            else:
                try:
                    ready.append((n, pending, other(pending, serial[n][0].key), None))
                except Incomplete:
                    raise
                except Exception as fault:
                    ready.append((n, pending, None, fault))
        replies = dict(zip(calls, batch(tuple(calls.values())), strict=True)) if calls else {}
        ready.extend((n, p, tuple(replies[k] for k in p.keys), None) for n, p in completes)
        waiting = []
        for n, pending, reply, error in ready:
            waiting.extend((n, p) for p in serial[n][1].answer(pending, reply, error))
        live = [(n_job, n_flight) for n_job, n_flight in serial.values() if n_flight.done]
        serial = {n: jf for n, jf in serial.items() if not jf[1].done}
        for job, flight in live:
            land(Landed.of(job, flight))
        if not serial and not live:
            return
