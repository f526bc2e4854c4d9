"""A strict endpoint on loopback: refuses what the real APIs refuse, and fails on command.

It knows the request fields of the two public APIs and rejects any other, rejects wrong headers, and answers the
scripted faults first.  Every request it saw is kept.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "test-key-0123456789"

OPENAI_FIELDS = {
    "model",
    "messages",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
    "response_format",
    "reasoning_effort",
}
ANTHROPIC_FIELDS = {
    "model",
    "messages",
    "system",
    "max_tokens",
    "temperature",
    "top_p",
    "stop_sequences",
    "output_config",
}


@dataclass
class Seen:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    body: Any
    at: float


@dataclass
class Fault:
    """One scripted answer.  ``kind``: status, hang, reset, cut, garbage, html, empty, json (``body`` with 200)."""

    kind: str
    status: int = 500
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def error(
    status: int, message: str, code: str | None = None, kind: str = "invalid_request_error", **rest: Any
) -> Fault:
    """An error in OpenAI's form."""
    return Fault(
        "status", status, {"error": {"message": message, "type": kind, "param": rest.get("param"), "code": code}}
    )


def chat(text: str | None = "VERDICT: 7", **change: Any) -> dict[str, Any]:
    """A chat completion in OpenAI's form; ``message`` and ``choice`` entries of ``change`` are merged in."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None, **change.pop("message", {})},
        "logprobs": None,
        "finish_reason": "stop",
        **change.pop("choice", {}),
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        **change,
    }


class StrictServer:
    """``with StrictServer() as server``: ``server.url`` is the base, ``server.requests`` what arrived.

    ``script`` holds faults for the next requests; ``answer`` maps a request body to the response JSON;
    ``refuses`` names request fields this model does not take; ``latency`` seconds pass before each answer.
    """

    def __init__(
        self,
        *faults: Fault,
        answer: Callable[[Any], Any] | None = None,
        refuses: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
        latency: float = 0.0,
    ) -> None:
        self.script: deque[Fault] = deque(faults)
        self.requests: list[Seen] = []
        self.answer = answer
        self.refuses = refuses
        self.most_in_flight = 0
        self._in_flight = 0
        self._tls, self._latency = tls, latency
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> StrictServer:
        self._thread.start()
        assert self._ready.wait(10), "the test server did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._done is not None
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._counted(self._openai))
        app.router.add_post("/v1/messages", self._counted(self._anthropic))
        app.router.add_post("/judge", self._counted(self._judge))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._done = asyncio.Event()
        self._ready.set()
        await self._done.wait()
        await runner.cleanup()

    def _counted(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(request: web.Request) -> web.StreamResponse:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            try:
                raw = await request.read()
                try:
                    body = json.loads(raw)
                except ValueError:
                    return web.json_response(
                        {"error": {"message": "invalid JSON", "type": "invalid_request_error"}}, status=400
                    )
                now = asyncio.get_running_loop().time()
                self.requests.append(Seen(request.path, dict(request.headers), dict(request.query), body, now))
                if self._latency:
                    await asyncio.sleep(self._latency)
                if request.content_type != "application/json":
                    return web.json_response({"error": {"message": "wrong Content-Type"}}, status=415)
                if self.script:
                    return await self._fail(request, self.script.popleft())
                return await handler(request, body)
            finally:
                self._in_flight -= 1

        return counted

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        match fault.kind:
            case "status":
                if isinstance(fault.body, (dict, list)):
                    return web.json_response(fault.body, status=fault.status, headers=fault.headers)
                return web.Response(status=fault.status, headers=fault.headers, text=fault.body or "")
            case "json":
                return web.json_response(fault.body, headers=fault.headers)
            case "raw":
                return web.Response(body=fault.body, content_type="application/json")
            case "hang":
                await asyncio.sleep(30)
            case "reset":
                assert request.transport is not None
                request.transport.abort()
            case "cut":
                response = web.StreamResponse(headers={"Content-Length": "500", "Content-Type": "application/json"})
                await response.prepare(request)
                await response.write(b'{"choices": [{"mess')
                assert request.transport is not None
                request.transport.close()
                return response
            case "garbage":
                return web.Response(body=b"\x00\xff{{{", content_type="application/json")
            case "html":
                return web.Response(text="<html><script>alert(1)</script></html>", content_type="text/html")
        return web.Response(text="")

    async def _openai(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        def no(message: str, param: str | None, code: str | None, status: int = 400) -> web.Response:
            text = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
            return web.json_response(text, status=status)

        if request.headers.get("Authorization") != f"Bearer {KEY}":
            sent = request.headers.get("Authorization", "")
            return no(f"Incorrect API key provided: {sent.removeprefix('Bearer ')}.", None, "invalid_api_key", 401)
        for name in body:
            if name not in OPENAI_FIELDS:
                return no(f"Unrecognized request argument supplied: {name}", name, None)
        for name in self.refuses:
            if name == "system" and any(m["role"] == "system" for m in body["messages"]):
                return no("System role not supported by this chat template", "messages", None)
            if name == "max_tokens" and name in body:
                hint = "Use 'max_completion_tokens' instead."
                return no(
                    f"Unsupported parameter: 'max_tokens' is not supported with this model. {hint}",
                    name,
                    "unsupported_parameter",
                )
            if name == "temperature" and body.get(name, 1) != 1:
                value = body[name]
                only = "Only the default (1) value is supported."
                return no(
                    f"Unsupported value: 'temperature' does not support {value} with this model. {only}",
                    name,
                    "unsupported_value",
                )
            if name in body:
                return no(
                    f"Unsupported parameter: '{name}' is not supported with this model.", name, "unsupported_parameter"
                )
        if {"max_tokens", "max_completion_tokens"} <= set(body):
            return no("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", None, None)
        if "top_logprobs" in body and not body.get("logprobs"):
            return no("'top_logprobs' needs 'logprobs'", "top_logprobs", None)
        if not 0 <= body.get("top_logprobs", 0) <= 20:
            return no("'top_logprobs' must be at most 20", "top_logprobs", None)
        for m in body["messages"]:
            if set(m) != {"role", "content"} or not isinstance(m["content"], str):
                return no("bad message", "messages", None)
        return web.json_response(self.answer(body) if self.answer else chat())

    async def _anthropic(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        def no(message: str, kind: str = "invalid_request_error", status: int = 400) -> web.Response:
            return web.json_response({"type": "error", "error": {"type": kind, "message": message}}, status=status)

        if request.headers.get("x-api-key") != KEY or "Authorization" in request.headers:
            return no("invalid x-api-key", "authentication_error", 401)
        if request.headers.get("anthropic-version") != "2023-06-01":
            return no("anthropic-version: header is required")
        for name in body:
            if name not in ANTHROPIC_FIELDS:
                return no(f"{name}: Extra inputs are not permitted")
        if "max_tokens" not in body:
            return no("max_tokens: Field required")
        for name in self.refuses:
            if name in body:
                return no(f"`{name}` is deprecated for this model.")
        if not body["messages"] or any(m["role"] not in ("user", "assistant") for m in body["messages"]):
            return no("messages: at least one message, of role user or assistant")
        reply = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [{"type": "text", "text": "VERDICT: 7"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 4,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2,
            },
        }
        return web.json_response(self.answer(body) if self.answer else reply)

    async def _judge(self, request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response(self.answer(body) if self.answer else {"score": 7, "why": "fine"})
