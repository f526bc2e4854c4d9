"""A helper process that answers JSON lines, with a deadline for every reply; whatever goes wrong has a reason."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from queue import Empty, Queue
from typing import IO, Any


class WorkerFault(Exception):
    """The worker gave no usable reply; the text says why (``timeout``, ``crashed``, ``garbage``, ``failed``)."""


class Worker:
    """One child process.  :meth:`ask` is safe to call from several threads; requests are answered one at a time.

    A worker that misses a deadline, dies or speaks nonsense is stopped at once, and the next :meth:`ask` starts a
    fresh one, at most ``restarts`` times in a row without a good reply in between.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        start_s: float = 180.0,
        reply_s: float = 60.0,
        restarts: int = 2,
        env: dict[str, str] | None = None,
    ) -> None:
        self._command, self._start_s, self._reply_s = list(command), start_s, reply_s
        self._restarts, self._env = restarts, env
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lines: Queue[str | None] = Queue()
        self._errors: deque[str] = deque(maxlen=8)
        self._failures, self._next, self._last_fault = 0, 0, ""
        self.hello: dict[str, Any] = {}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; raises :class:`WorkerFault`."""
        with self._lock:
            try:
                reply = self._ask(request)
            except WorkerFault as fault:
                self._failures += 1
                self._last_fault = str(fault)
                self._stop(kill=True)
                raise
            self._failures = 0
            return reply

    def start(self) -> dict[str, Any]:
        """Start now and return the worker's greeting; raises :class:`WorkerFault`."""
        with self._lock:
            try:
                self._started()
            except WorkerFault:
                self._stop(kill=True)
                raise
            return self.hello

    def close(self) -> None:
        """Let the worker end by itself (end of input), and make it end after five seconds."""
        with self._lock:
            self._stop(kill=False)
            self._failures = 0

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None and self._failures > self._restarts:
            raise WorkerFault(f"given up after {self._failures} failures in a row; last: {self._last_fault}")
        process = self._started()
        self._next += 1
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"id": self._next, **request}) + "\n")
            process.stdin.flush()
        except (BrokenPipeError, OSError) as fault:
            raise WorkerFault(self._crash()) from fault
        reply = self._read(self._reply_s)
        if reply.get("id") != self._next:
            raise WorkerFault(f"garbage: the reply is to request {reply.get('id')!r}, not {self._next}")
        return reply

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._process is not None:  # it died between two requests
            why = self._crash()
            self._stop(kill=True)
            raise WorkerFault(why)
        self._lines, self._errors = Queue(), deque(maxlen=8)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=self._env,
                start_new_session=True,  # Ctrl-C is ours to handle: the worker ends when its input ends
            )
        except OSError as fault:
            raise WorkerFault(f"failed: {self._command[0]} cannot be started ({fault.strerror})") from fault
        self._process = process
        assert process.stdout is not None and process.stderr is not None
        threading.Thread(target=_drain, args=(process.stdout, self._lines.put, self._lines), daemon=True).start()
        threading.Thread(target=_drain, args=(process.stderr, self._errors.append, None), daemon=True).start()
        self.hello = self._read(self._start_s)
        if not self.hello.get("ready"):
            raise WorkerFault(f"failed: {self.hello.get('failed', 'no greeting')}")
        return process

    def _read(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise WorkerFault(f"timeout: no reply within {seconds:g} s") from None
        if line is None:
            raise WorkerFault(self._crash())
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise WorkerFault(f"garbage: {line[:80]!r} is not a JSON object")
        return reply

    def _crash(self) -> str:
        code = None
        if self._process is not None:
            try:
                code = self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                code = None
        said = next((e.strip() for e in reversed(self._errors) if e.strip()), "")
        return f"crashed: exit code {code}" + (f", last line: {said[:200]}" if said else "")

    def _stop(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        if process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:  # unsent bytes of a worker that is gone
                process.kill()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _drain(stream: IO[str], keep: Any, end: Queue[str | None] | None) -> None:
    """Move lines from a pipe until it closes, so that a talkative worker never blocks."""
    with stream:
        for line in stream:
            keep(line)
    if end is not None:
        end.put(None)
