"""The sync driver: one flight at a time, every ask answered where it stands; for traces, replays and debuggers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from robustjudge.engine.driver import Job, Landed
from robustjudge.engine.kernel import Flight, Pending
from robustjudge.errors import Incomplete


def run_sync(jobs: Iterable[Job], answer: Callable[[Pending, str], Any], land: Callable[[Landed], None]) -> None:
    """Fly jobs one after another; ``answer(pending, key)`` returns each reply (or raises into the steps)."""
    for job in jobs:
        flight: Flight[Any] = Flight(job.make(), job.known)
        try:
            waiting = flight.launch()
            while waiting:
                pending = waiting.pop(0)
                reply, error = None, None
                try:
                    reply = answer(pending, job.key)
                except Incomplete:
                    raise
                except Exception as fault:
                    error = fault
                waiting[:0] = flight.answer(pending, reply, error)
        finally:
            if not flight.done:
                flight.close()
        land(Landed.of(job, flight))
