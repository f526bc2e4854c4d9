"""The guard in front of a local page: loopback host, same origin, a secret link, a form token, and a strict policy.

A page on 127.0.0.1 can be reached by every web site the user visits and by every account of the machine.  So a request
must name this host (no DNS rebinding), come from this origin, carry the secret of the printed link, and, where it
changes something, the form token that only our own pages know.  Nothing inline runs, nothing foreign loads.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = ("GET", "HEAD")
MAX_BODY = 1 << 20
CSRF_FIELD = "csrf"
CSRF_HEADER = b"x-csrf-token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def new_token() -> str:
    """A secret for one visitor's link: 256 random bits, URL-safe."""
    return token_urlsafe(32)


def csrf_of(token: str) -> str:
    """The form token of a visitor: derived from the secret of the link, which it does not reveal."""
    return hmac.new(token.encode(), b"robustjudge form", sha256).hexdigest()


def visitor(scope: Mapping[str, Any]) -> str:
    """Who asks: the name behind the token of this request (set by the guard)."""
    return str(scope["state"]["visitor"])


def form_token(scope: Mapping[str, Any]) -> str:
    """The value that a form on this visitor's page must send back as ``csrf``."""
    return str(scope["state"]["csrf"])


class Guard:
    """ASGI middleware that lets through what comes from our own page and refuses everything else.

    ``tokens`` maps the secret of each printed link to the name of its visitor; ``port`` is the one listened on.  The
    first visit (``?token=...``) stores the secret in a cookie and sends the browser on to the same address without it,
    so that it stays out of the history.  Changing requests send ``csrf`` as a form field or ``X-CSRF-Token`` header.
    """

    def __init__(self, app: App, tokens: Mapping[str, str], port: int) -> None:
        if not tokens or min(map(len, tokens)) < 32:
            raise ValueError("a guarded page needs a secret of at least 32 characters for each visitor")
        self.app, self.tokens, self.port = app, dict(tokens), port
        self.cookie = f"robustjudge_{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here
        headers = _headers(scope)
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in {f"{name}:{self.port}" for name in HOSTS}:
            await _refuse(send, 421, "This page answers to its own loopback address only.")
            return
        if not self._same_origin(scope["method"], headers, host):
            await _refuse(send, 403, "The request comes from another site.")
            return
        query = scope.get("query_string", b"").decode("latin-1")
        given = dict(parse_qsl(query)).get("token", "")
        if given and scope["method"] in SAFE_METHODS:
            await self._enter(scope, send, given, query)
            return
        token = self._known(self._stored(headers))
        if not token:
            await _refuse(send, 403, "Open the link that was printed in the terminal.")
            return
        state = scope.setdefault("state", {})
        state["visitor"], state["csrf"] = self.tokens[token], csrf_of(token)
        if scope["method"] not in SAFE_METHODS:
            body = await _body(receive)
            if body is None:
                await _refuse(send, 413, "The request is too large.")
                return
            if not hmac.compare_digest(_sent(headers, body).encode(), csrf_of(token).encode()):
                await _refuse(send, 403, "The form is out of date; reload the page.")
                return
            receive = _replayed(body, receive)
        await self.app(scope, receive, _with_headers(send))

    def _same_origin(self, method: str, headers: Mapping[bytes, bytes], host: str) -> bool:
        """A changing request must name its origin; any request that names one must name ours."""
        origin = headers.get(b"origin")
        if origin is None:
            return method in SAFE_METHODS
        return origin.decode("latin-1").lower() == f"http://{host}"

    def _stored(self, headers: Mapping[bytes, bytes]) -> str:
        try:
            jar = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return ""
        return jar[self.cookie].value if self.cookie in jar else ""

    def _known(self, given: str) -> str:
        found = ""
        for token in self.tokens:  # all are compared, in constant time each
            if hmac.compare_digest(token.encode(), given.encode()):
                found = token
        return found

    async def _enter(self, scope: Scope, send: Send, given: str, query: str) -> None:
        token = self._known(given)
        if not token:
            await _refuse(send, 403, "Open the link that was printed in the terminal.")
            return
        rest = urlencode([(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k != "token"])
        path = "/" + str(scope["path"]).lstrip("/")  # never "//host", which a browser takes for another site
        where = path.encode("ascii", "ignore").decode() + (f"?{rest}" if rest else "")
        cookie = f"{self.cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
        more = [(b"location", where.encode()), (b"set-cookie", cookie.encode())]
        await _plain(send, 303, "", more)


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The request's headers; one that is sent twice is dropped, so that nobody reads the other one."""
    found: dict[bytes, bytes] = {}
    twice: set[bytes] = set()
    for name, value in scope["headers"]:
        key = bytes(name).lower()
        if key in found:
            twice.add(key)
        found[key] = bytes(value)
    return {k: v for k, v in found.items() if k not in twice}


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or ``None`` when it is too large or the client left."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _sent(headers: Mapping[bytes, bytes], body: bytes) -> str:
    """The form token of a request: its header, or the field of an url-encoded form."""
    if CSRF_HEADER in headers:
        return headers[CSRF_HEADER].decode("latin-1")
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/x-www-form-urlencoded":
        return ""
    try:
        fields = parse_qs(body.decode("utf-8"), max_num_fields=1000)
    except ValueError:
        return ""
    return fields.get(CSRF_FIELD, [""])[0]


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            ours = {name for name, _ in HEADERS}
            kept = [(k, v) for k, v in message.get("headers", []) if bytes(k).lower() not in ours]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return guarded


async def _refuse(send: Send, status: int, text: str) -> None:
    await _plain(send, status, text, [])


async def _plain(send: Send, status: int, text: str, more: list[tuple[bytes, bytes]]) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
