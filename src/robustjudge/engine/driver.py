"""The asyncio driver: a window of flights, every pending ask a task, rows written as flights land."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from robustjudge.engine.backend import Backend
from robustjudge.engine.collector import rare
from robustjudge.engine.events import Event, Listener
from robustjudge.engine.kernel import Flight, Pending
from robustjudge.engine.outbox import Unsent
from robustjudge.errors import Incomplete

DRAIN_SECONDS = 10.0
SLICE_SECONDS = 0.05
"""After this long of work that needs no waiting (a replay, kept rows) the event loop gets its turn, so that calls in
flight, timers and Ctrl-C are never starved."""


@dataclass(frozen=True)
class Job:
    """One flight to fly: its key, how to make its steps, and the ask hashes of an earlier, unfinished flight."""

    key: str
    make: Callable[[], Coroutine[Any, Any, Any]]
    known: dict[str, str] | None = None


@dataclass(frozen=True)
class Landed:
    """A finished flight: its result or its error, and the hash of its ask sequence."""

    job: Job
    result: Any
    error: BaseException | None
    trace: str

    @classmethod
    def of(cls, job: Job, flight: Flight[Any]) -> Landed:
        """What became of a flight that is done; an error is told where it happened."""
        if flight.error is not None:
            flight.error.add_note(f"cell {job.key}, ask {flight.asks}")
        return cls(job, flight.result, flight.error, flight.trace)


class Interrupted(Incomplete):
    """Ctrl-C: what was answered is kept."""

    exit_code = 130


class _End:
    """The end of the jobs."""


_END = _End()

OnLand = Callable[[Landed], None]
OnAnswer = Callable[[str, Pending], None]


class AsyncDriver:
    """Runs jobs with at most ``window`` flights live.

    ``land`` is called once per finished flight, ``answered`` once per answered ask (the journal).  Ctrl-C stops
    issuing asks, lets calls in flight finish for up to ten seconds, and closes every coroutine; a second one leaves at
    once; so does cancelling the task that runs.  A spent budget, an exhausted quota and a full disk stop the run the same
    way.
    """

    def __init__(
        self,
        backend: Backend,
        land: OnLand,
        *,
        window: int = 64,
        answered: OnAnswer | None = None,
        listener: Listener | None = None,
        fail_fast: bool = False,
    ) -> None:
        self._backend = backend
        self._land = land
        self._answered = answered
        self._tell = listener or (lambda event: None)
        self._window = max(1, window)
        self._fail_fast = fail_fast
        self._live: dict[int, tuple[Job, Flight[Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: BaseException | None = None
        self._idle: asyncio.Event | None = None
        self._work: deque[tuple[int, Pending]] = deque()
        self._jobs: Iterator[Job | None] = iter(())
        self._serial = 0
        self._unsent: dict[int, int] = {}
        self.put_aside = 0
        self._empty = False

    async def run(self, jobs: Iterator[Job | None]) -> None:
        """Fly every job; raises what stopped the run, after what is in flight was kept.

        ``None`` among the jobs is no job: an iterator that skips long stretches gives way with it.
        """
        with rare():
            await self._run(jobs)

    async def _run(self, jobs: Iterator[Job | None]) -> None:
        self._jobs = jobs
        self._idle = asyncio.Event()
        restore = self._signals()
        try:
            self._pump()
            while (self._live or not self._empty) and self._stop is None:
                try:
                    await self._idle.wait()
                except asyncio.CancelledError as cancelled:  # stopped from outside, as by Ctrl-C: what flies may land
                    self._halt(cancelled)
                self._idle.clear()
                self._pump()
            if self._stop is not None and self._tasks:
                self._backend.stopping = True
                await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
        finally:
            restore()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.gather(*self._tasks, return_exceptions=True)
            for _, flight in self._live.values():
                flight.close()
            self._live.clear()
        if self._stop is not None:
            self._tell(Event("stopped", detail=type(self._stop).__name__))
            raise self._stop

    # ------------------------------------------------------------------ inside

    def _pump(self) -> None:
        """Launch jobs while the window has room, and turn pending asks into tasks or immediate answers."""
        until = monotonic() + SLICE_SECONDS
        while self._stop is None:
            if monotonic() > until:
                self._give_way()
                return
            if self._work:
                self._issue(*self._work.popleft())
            elif len(self._live) < self._window and not self._empty:
                job = next(self._jobs, _END)
                if isinstance(job, _End):
                    self._empty = True
                    continue
                if job is None:
                    self._give_way()
                    return
                flight: Flight[Any] = Flight(job.make(), job.known)
                number, self._serial = self._serial, self._serial + 1
                self._live[number] = (job, flight)
                self._push(number, flight.launch())
            else:
                return

    def _give_way(self) -> None:
        assert self._idle is not None
        asyncio.get_running_loop().call_soon(self._idle.set)

    def _push(self, number: int, fresh: list[Pending]) -> None:
        self._work.extend((number, p) for p in fresh)
        job, flight = self._live[number]
        if flight.done:
            del self._live[number]
            self._done(job, flight)

    def _issue(self, number: int, pending: Pending) -> None:
        if number not in self._live:
            return
        try:
            reply = self._backend.stored(pending)
        except Exception as fault:
            self._push(number, self._live[number][1].answer(pending, error=fault))
            return
        if reply is not None:
            self._push(number, self._live[number][1].answer(pending, reply))
            return
        task = asyncio.get_running_loop().create_task(self._answer(number, pending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, pending: Pending) -> None:
        if number not in self._live:  # a sibling failed, and the flight landed before this ask was sent
            return
        job, flight = self._live[number]
        reply, error = None, None
        try:
            reply = await self._backend.answer(pending, job.key)
            if self._answered is not None:
                self._answered(job.key, pending)
        except Unsent:
            self._aside(number)
            return
        except Incomplete as fault:
            self._halt(fault)
            return
        except Exception as fault:
            error = fault
        if self._stop is None and number in self._live:
            self._push(number, flight.answer(pending, reply, error))
            if self._unsent.get(number) == flight.waiting and number in self._live:
                self._unsent[number] -= 1
                self._aside(number)
        if self._idle is not None:
            self._idle.set()

    def _aside(self, number: int) -> None:
        """One more ask of a flight waits for a batch; when all its asks do, the flight leaves without a row."""
        _, flight = self._live.get(number, (None, None))
        if flight is not None:
            self._unsent[number] = self._unsent.get(number, 0) + 1
            if self._unsent[number] == flight.waiting:
                flight.close()
                del self._live[number], self._unsent[number]
                self.put_aside += 1
        if self._idle is not None:
            self._idle.set()

    def _done(self, job: Job, flight: Flight[Any]) -> None:
        if isinstance(flight.error, Incomplete):
            self._halt(flight.error)
            return
        try:
            self._land(Landed.of(job, flight))
        except Exception as fault:  # the row cannot be kept (disk full, --fail-fast): nothing more may be spent
            self._halt(fault)
            return
        self._tell(Event("row", job.key))
        if flight.error is not None and self._fail_fast:
            self._halt(flight.error)

    def _halt(self, why: BaseException) -> None:
        self._stop = self._stop or why
        self._backend.stopping = True
        if self._idle is not None:
            self._idle.set()

    def _signals(self) -> Callable[[], None]:
        """Ctrl-C handling, in the main thread only; returns the undo."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if self._stop is not None:
                loop.remove_signal_handler(signal.SIGINT)
                for task in self._tasks:
                    task.cancel()
                return
            self._halt(Interrupted("what was answered is kept; `robustjudge run --resume runs` goes on"))

        try:
            loop.add_signal_handler(signal.SIGINT, interrupt)
        except (NotImplementedError, RuntimeError):
            return lambda: None

        def restore() -> None:
            loop.remove_signal_handler(signal.SIGINT)

        return restore
