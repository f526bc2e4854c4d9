"""A local server that stands in for a webhook and for the comments of a code host."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Box:
    """A local server that keeps what it receives."""

    def __init__(self, status: int = 200) -> None:
        self.got: list[tuple[str, str, Any, dict[str, str]]] = []
        self.status = status
        self.comments: list[dict[str, Any]] = []
        box = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                box.got.append((self.command, self.path, body, dict(self.headers)))
                if self.command == "POST":
                    box.comments.append({"id": len(box.comments) + 1, **(body or {})})
                out = json.dumps(box.comments if self.command == "GET" else {}).encode()
                self.send_response(box.status)
                if box.status == 302:
                    self.send_header("Location", "http://127.0.0.1:9/elsewhere")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
