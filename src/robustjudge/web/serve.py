"""A small server for a local page: it listens on loopback only, knows its port before the page is built, and can be
stopped from another thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.web.guard import App, Guard

LOOPBACK = "127.0.0.1"


class Server:
    """A guarded page, listening.  ``tokens`` maps secrets to visitors; ``port`` 0 takes a free one."""

    def __init__(self, app: App, tokens: Mapping[str, str], port: int = 0) -> None:
        import uvicorn

        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((LOOPBACK, port))
            self.socket.listen(64)  # from here on the printed link is answered, as soon as the page runs
        except OSError as fault:
            self.socket.close()
            raise ConfigError(
                f"port {port} of {LOOPBACK} cannot be listened on ({fault.strerror}); choose --port"
            ) from None
        self.port: int = self.socket.getsockname()[1]
        self.tokens = dict(tokens)
        guarded: Any = Guard(app, tokens, self.port)
        # no log_config: uvicorn's own would close the handlers of whoever runs us
        quiet = uvicorn.Config(
            guarded, log_config=None, log_level="warning", access_log=False, server_header=False, ws="none"
        )
        self._server = uvicorn.Server(quiet)
        self._thread: threading.Thread | None = None

    def link(self, who: str, path: str = "/") -> str:
        """The secret address of one visitor."""
        token = next(t for t, name in self.tokens.items() if name == who)
        return f"http://{LOOPBACK}:{self.port}{path}?token={token}"

    def run(self) -> None:
        """Serve until interrupted (Ctrl-C) or stopped."""
        try:
            self._server.run(sockets=[self.socket])
        except KeyboardInterrupt:
            return  # the way to end a local page; every request was finished before
        finally:
            self.socket.close()

    def __enter__(self) -> Server:
        """Serve in a thread (for tests and notebooks) until the block ends."""
        self._thread = threading.Thread(target=self.run, name="robustjudge-web", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()


def serve(app: App, tokens: Mapping[str, str], port: int = 0, ready: Callable[[Server], None] | None = None) -> None:
    """Listen, tell ``ready`` (which prints the links), and serve until interrupted."""
    server = Server(app, tokens, port)
    if ready is not None:
        ready(server)
    server.run()
