"""One thread owns one local model: calls are queued, ordered by prompt so that shared prefixes meet, and run singly."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

M = TypeVar("M")
R = TypeVar("R")


@dataclass(order=True)
class _Job:
    key: str
    number: int
    work: Callable[[Any], Any] = field(compare=False)
    done: Future[Any] = field(compare=False)


class Owner(Generic[M]):
    """Runs ``work(model)`` on one thread; the model is made there by ``make`` at the first job, and dropped there.

    Whatever waits when the thread is free is sorted by ``key`` (the prompt text) and run before anything newer.
    A failure of ``make`` is the answer of every job; an exception of a job is that job's answer.
    """

    def __init__(self, make: Callable[[], M], name: str) -> None:
        self._make, self._name = make, name
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._count = 0

    @property
    def closed(self) -> bool:
        """No more jobs are taken."""
        return self._closed

    def submit(self, key: str, work: Callable[[M], R]) -> Future[R]:
        """Queue ``work``; cancelling the future before its turn skips it.  RuntimeError after :meth:`close`."""
        done: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} is closed")
            self._count += 1
            self._queue.put(_Job(key, self._count, work, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
                atexit.register(self.close)
        return done

    def close(self) -> None:
        """Let the running job end, cancel those that wait, drop the model on its own thread and wait for that.

        Harmless when repeated."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._closed = True
        if thread is not None:
            self._queue.put(None)
            thread.join()
            atexit.unregister(self.close)

    def _run(self) -> None:
        model: M | None = None
        fault: BaseException | None = None
        try:
            model = self._make()
        except Exception as caught:  # the answer of every job
            fault = caught
        going = True
        while going:
            batch, going = self._waiting()
            for job in sorted(batch):
                if self._closed:
                    job.done.cancel()
                if not job.done.set_running_or_notify_cancel():
                    continue
                if fault is not None:
                    job.done.set_exception(fault)
                    continue
                try:
                    result = job.work(model)
                except BaseException as caught:  # handed to the caller, on its own thread
                    job.done.set_exception(caught)
                else:
                    job.done.set_result(result)

    def _waiting(self) -> tuple[list[_Job], bool]:
        """Everything in the queue (at least one entry), and whether to go on after it."""
        batch, item = [], self._queue.get()
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False
