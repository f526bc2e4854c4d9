"""Limits: how many requests are in flight, how fast they leave, and which failures are tried again.

One :class:`Limiter` per model is the only owner of retries.  Concurrency adapts as TCP does (RFC 5681): the first
request goes alone, then the window doubles each round trip (slow start) until the first rate limit, which halves it;
from there it grows by one request per round trip.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from robustjudge.errors import QuotaExhausted
from robustjudge.nouns import Completion

RETRIES = 3
"""Most times one request is tried again after its first try."""

AFTER_PROBE = 8
"""Window after the first request, which goes alone, was answered: a wrong key or a dead host costs one request."""

PATIENCE = 600.0
"""A ``Retry-After`` above this many seconds ends the call as an error row instead of stalling the run."""

Action = Literal["done", "retry", "adapt", "quota"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one request came to.

    ``completion`` is the answer if there is no further try.  ``action``: ``done`` (an answer, good or bad),
    ``retry`` (a passing fault), ``adapt`` (the request was changed to suit the model: send again at once, this is no
    retry), ``quota`` (no request can succeed until somebody pays).  ``fault`` names the kind (``timeout``,
    ``transport``, ``http_500``).  ``slow`` marks a rate ``limit`` or an ``overload``.  ``wait`` is the
    ``Retry-After`` in seconds.
    """

    completion: Completion
    action: Action = "done"
    fault: str = ""
    slow: Literal["", "limit", "overload"] = ""
    wait: float | None = None


class Clock(Protocol):
    """Time as the limiter needs it; tests pass one that never really waits."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """Monotonic seconds and real waiting."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(slots=True)
class Counters:
    """What happened so far: requests ``sent`` (every one, retries included), calls ``answered`` and ``failed``,
    ``retried`` and ``adapted`` requests, seconds ``waited`` for rate limits and back-off, faults by kind."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    adapted: int = 0
    waited: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)


class Bucket:
    """A token bucket: ``per_minute`` units flow in, at most ``burst`` are stored (default: one second's worth).

    Takers queue in order: each takes its amount at once and waits until the level it left has been refilled.
    """

    def __init__(self, per_minute: float, clock: Clock, burst: float | None = None) -> None:
        if per_minute <= 0:
            raise ValueError(f"a rate limit must be positive, not {per_minute}")
        self.rate = per_minute / 60.0
        self.burst = burst if burst is not None else max(1.0, self.rate)
        self._clock = clock
        self._level = self.burst
        self._at = clock.now()

    def take(self, amount: float) -> float:
        """Take ``amount`` and return the seconds to wait before using it."""
        now = self._clock.now()
        self._level = min(self.burst, self._level + (now - self._at) * self.rate)
        self._at = now
        lacking = min(amount, self.burst) - self._level
        self._level -= amount
        return max(0.0, lacking / self.rate)

    def settle(self, estimated: float, actual: float) -> None:
        """Give back what was taken too much, or take what was taken too little."""
        self._level = min(self.burst, self._level + estimated - actual)


class Limiter:
    """Sends requests within the limits and tries passing faults again.

    ``ceiling``: most requests in flight; ``rpm`` and ``tpm``: requests and tokens per minute (``None``: no limit);
    ``on_event(kind, detail, value)`` is called with ``sent``, ``fault`` (detail: kind of fault, value: attempt),
    ``wait`` (value: seconds) and ``window`` (value: new window size).
    """

    def __init__(
        self,
        *,
        ceiling: int = 256,
        rpm: float | None = None,
        tpm: float | None = None,
        retries: int = RETRIES,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        on_event: Callable[[str, str, float], None] | None = None,
    ) -> None:
        if ceiling < 1:
            raise ValueError(f"at least one request must be allowed in flight, not {ceiling}")
        self.ceiling = ceiling
        self.retries = retries
        self.counters = Counters()
        self.window = 1.0
        self.on_event = on_event
        self._clock = clock or RealClock()
        self._draw = draw
        self._requests = Bucket(rpm, self._clock) if rpm else None
        self._tokens = Bucket(tpm, self._clock) if tpm else None
        self._in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._doubling = True
        self._probed = False
        self._cut_at = -1.0
        self._hold_until = 0.0
        self._streak = 0
        self._parked: set[asyncio.Future[None]] = set()
        self._quota = ""

    @property
    def in_flight(self) -> int:
        """Requests that were sent and not yet answered."""
        return self._in_flight

    async def send(self, attempt: Callable[[], Awaitable[Attempt]], tokens: int = 0) -> Completion:
        """Run ``attempt`` until it is done, out of retries, or the quota is spent (:class:`QuotaExhausted`).

        ``tokens`` is the estimate charged to ``tpm``; the difference to the usage reported is settled afterwards.
        The completion's ``attempts`` counts the requests and its ``notes`` name each fault (``fault:timeout``).
        """
        counters = self.counters
        trace: tuple[str, ...] = ()
        tries = requests = 0
        while True:
            await self._enter(tokens, first=requests > 0)
            started = self._clock.now()
            counters.sent += 1
            requests += 1
            if self.on_event is not None:
                self.on_event("sent", "", float(requests))
            try:
                result = await attempt()
            finally:
                self._leave()
            self._learn(result, started, tokens)
            if result.action == "done":
                break
            if result.action == "adapt":
                counters.adapted += 1
                continue
            self._fault(result.fault, requests)
            trace = (*trace, f"fault:{result.fault}")
            if result.action == "quota":
                self._stop(result)
                raise QuotaExhausted(self._quota)
            if tries == self.retries or (result.wait is not None and result.wait > PATIENCE):
                if not result.slow:
                    self._widen()  # else a dead endpoint would be asked one call at a time until the end of the run
                break
            pause = self._pause(result, tries)
            tries += 1
            counters.retried += 1
            parks = result.slow == "limit" and result.wait is None
            await (self._park(pause) if parks else self._sleep(pause))
        completion = result.completion
        if completion.status == "error":
            counters.failed += 1
            if result.action == "done":
                self._fault(completion.reason, requests)
        else:
            counters.answered += 1
        if requests > 1:
            completion = replace(completion, attempts=requests, notes=(*completion.notes, *trace))
        return completion

    # ----------------------------------------------------------------------- entering and leaving

    async def _enter(self, tokens: int, first: bool) -> None:
        """Wait for a place in the window, then for the hold and the rate limits; retries go ``first``, or a long
        queue would use up their tries."""
        if self._queue or self._in_flight >= int(self.window):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if first:
                self._queue.appendleft(place)
            else:
                self._queue.append(place)
            try:
                await place  # whoever frees a place hands it over already counted
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._leave()
                raise
        else:
            self._in_flight += 1
        try:
            await self._ready(tokens)
        except BaseException:
            self._leave()
            raise

    async def _ready(self, tokens: int) -> None:
        if self._quota:
            raise QuotaExhausted(self._quota)
        wait = 0.0
        if self._requests is not None:
            wait = self._requests.take(1.0)
        if self._tokens is not None and tokens:
            wait = max(wait, self._tokens.take(tokens))
        if wait > 0.0:
            await self._sleep(wait)
        while self._hold_until and (held := self._hold_until - self._clock.now()) > 0.0:
            await self._sleep(held + self._draw() * self._spread(held))
        if self._quota:
            raise QuotaExhausted(self._quota)

    def _leave(self) -> None:
        self._in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Hand free places to those who wait, first come first served."""
        queue = self._queue
        while queue and self._in_flight < int(self.window):
            place = queue.popleft()
            if not place.done():
                self._in_flight += 1
                place.set_result(None)

    # ----------------------------------------------------------------------- learning from results

    def _learn(self, result: Attempt, started: float, tokens: int) -> None:
        """Adapt the window and settle the token bucket."""
        if self._tokens is not None and tokens and (usage := result.completion.usage).prompt:
            self._tokens.settle(tokens, usage.prompt + usage.completion)
        if result.slow:
            self._narrow(started)
        elif result.action == "done":
            if self._streak and started >= self._cut_at:  # the door is open again: those it turned away go first
                self._streak = 0
                for door in self._parked:
                    if not door.done():
                        door.set_result(None)
            self._widen()

    def _widen(self) -> None:
        if self.window >= self.ceiling:
            return
        if not self._probed:
            self._probed = True
            self.window = float(min(AFTER_PROBE, self.ceiling))
        elif self._in_flight + 1 < int(self.window) // 2 and not self._queue:
            return  # an unused window proves nothing about the endpoint
        else:
            step = 1.0 if self._doubling else 1.0 / self.window
            self.window = min(float(self.ceiling), self.window + step)
        self._admit()

    def _narrow(self, started: float) -> None:
        """Halve once per round trip: the other replies of the same burst carry no new information."""
        if started < self._cut_at:
            return
        self._cut_at = self._clock.now()
        self._streak += 1
        self._doubling = False
        self._probed = True
        self.window = max(1.0, self.window / 2.0)
        if self.on_event is not None:
            self.on_event("window", "", self.window)

    def _pause(self, result: Attempt, tries: int) -> float:
        """Seconds before the next try, and for how long everybody else is held back.

        Passing faults: exponential back-off with full jitter, uniform in [0, 2**tries] (overload: four times that).
        A ``Retry-After`` is never undercut and holds for all.  A rate limit without one waits 10 * 2**tries, so that
        three waits outlast a one-minute window (less if another request gets through before), and holds the others
        the longer the more often in a row it struck: otherwise they would use up their tries against a closed door.
        Jitter on top keeps workers from waking together.
        """
        now = self._clock.now()
        if result.wait is not None:
            if result.slow:
                self._hold_until = max(self._hold_until, now + result.wait)
            return result.wait + self._draw() * self._spread(result.wait)
        if result.slow == "limit":
            self._hold_until = max(self._hold_until, now + min(60.0, 2.0 ** (self._streak - 1) - 1.0))
            floor = 10.0 * 2.0**tries
            return floor + self._draw() * floor
        return float(self._draw() * 2.0**tries * (4.0 if result.slow else 1.0))

    @staticmethod
    def _spread(wait: float) -> float:
        return max(1.0, wait / 4.0)

    def _stop(self, result: Attempt) -> None:
        said = next((n.removeprefix("provider: ") for n in result.completion.notes if n.startswith("provider: ")), "")
        self._quota = f"the account has no quota left{f' ({said})' if said else ''}; nothing more was sent"

    def _fault(self, kind: str, attempt: int) -> None:
        self.counters.faults[kind] = self.counters.faults.get(kind, 0) + 1
        if self.on_event is not None:
            self.on_event("fault", kind, float(attempt))

    async def _park(self, seconds: float) -> None:
        """Wait ``seconds``, or less if the endpoint takes requests again before: a fixed wait would wake up to find
        that others used the new minute's allowance."""
        door: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.add(door)
        pause = asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait((door, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._parked.discard(door)
            pause.cancel()

    async def _sleep(self, seconds: float) -> None:
        if self.on_event is not None:
            self.on_event("wait", "", seconds)
        started = self._clock.now()
        try:
            await self._clock.sleep(seconds)
        finally:
            self.counters.waited += self._clock.now() - started
