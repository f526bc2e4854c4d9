"""The guard: what comes from our own page passes, everything else is refused and reaches no handler."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest

from robustjudge.errors import ConfigError
from robustjudge.web import Guard, Server, csrf_of, new_token, visitor

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
TOKEN = "a" * 43
OTHER = "b" * 43


class Page:
    """Remembers who asked and with what body."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        if scope["method"] == "POST":
            body = (await receive())["body"]
        self.seen.append((visitor(scope), body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"public")]})
        await send({"type": "http.response.body", "body": b"hello"})


def ask(
    page: Page, method: str = "GET", *, host: str = HOST, cookie: str = "", origin: str = "", query: str = "",
    path: str = "/", form: dict[str, str] | None = None, headers: tuple[tuple[bytes, bytes], ...] = (),
) -> tuple[int, dict[bytes, bytes]]:  # fmt: skip
    sent: list[Any] = []
    given = [(b"host", host.encode()), *headers]
    if cookie:
        given.append((b"cookie", f"robustjudge_{PORT}={cookie}".encode()))
    if origin:
        given.append((b"origin", origin.encode()))
    if form is not None:
        given.append((b"content-type", b"application/x-www-form-urlencoded"))
    body = urlencode(form or {}).encode()
    scope = {"type": "http", "method": method, "headers": given, "query_string": query.encode(), "path": path}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Guard(page, {TOKEN: "ann", OTHER: "bob"}, PORT)(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])


def test_link_sets_a_strict_cookie_and_drops_the_secret_from_the_address() -> None:
    page = Page()
    status, headers = ask(page, query=f"token={TOKEN}&x=1", path="//evil.example/")
    assert status == 303 and headers[b"location"] == b"/evil.example/?x=1"
    assert b"HttpOnly" in headers[b"set-cookie"] and b"SameSite=Strict" in headers[b"set-cookie"]
    assert not page.seen


def test_cookie_names_the_visitor_and_every_answer_has_the_policy() -> None:
    page = Page()
    status, headers = ask(page, cookie=OTHER)
    assert status == 200 and page.seen == [("bob", b"")]
    assert b"default-src 'none'" in headers[b"content-security-policy"] and headers[b"cache-control"] == b"no-store"
    assert b"unsafe-inline" not in headers[b"content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example:8123", "127.0.0.1", "127.0.0.1:9", "127.0.0.1.evil.example:8123", ""])
def test_foreign_host_is_refused(host: str) -> None:
    page = Page()
    assert ask(page, host=host, cookie=TOKEN)[0] == 421 and not page.seen


@pytest.mark.parametrize("cookie", ["", "c" * 43, TOKEN[:-1]])
def test_no_or_wrong_secret_is_refused(cookie: str) -> None:
    page = Page()
    assert ask(page, cookie=cookie)[0] == 403 and ask(page, query="token=" + "c" * 43)[0] == 403
    assert not page.seen


def test_form_with_its_token_passes_and_keeps_its_body() -> None:
    page = Page()
    form = {"csrf": csrf_of(TOKEN), "label": "YES"}
    assert ask(page, "POST", cookie=TOKEN, origin=f"http://{HOST}", form=form)[0] == 200
    assert page.seen == [("ann", urlencode(form).encode())]


@pytest.mark.parametrize(
    ("origin", "csrf"),
    [("", csrf_of(TOKEN)), ("http://evil.example", csrf_of(TOKEN)), ("null", csrf_of(TOKEN)),
     (f"http://{HOST}", ""), (f"http://{HOST}", csrf_of(OTHER)), (f"http://localhost:{PORT}", csrf_of(TOKEN))],
)  # fmt: skip
def test_forged_forms_are_refused(origin: str, csrf: str) -> None:
    page = Page()
    assert ask(page, "POST", cookie=TOKEN, origin=origin, form={"csrf": csrf})[0] == 403 and not page.seen


def test_form_token_may_come_as_header_and_large_bodies_do_not_come_in() -> None:
    page = Page()
    header = ((b"x-csrf-token", csrf_of(TOKEN).encode()),)
    assert ask(page, "DELETE", cookie=TOKEN, origin=f"http://{HOST}", headers=header)[0] == 200
    assert ask(page, "POST", cookie=TOKEN, origin=f"http://{HOST}", form={"x": "y" * (1 << 20)})[0] == 413
    assert len(page.seen) == 1


def test_header_sent_twice_counts_as_none() -> None:
    page = Page()
    assert ask(page, cookie=TOKEN, headers=((b"host", b"evil.example"),))[0] == 421


def test_short_secrets_are_refused() -> None:
    with pytest.raises(ValueError, match="32 characters"):
        Guard(Page(), {"guess": "ann"}, PORT)


def test_server_listens_on_loopback_and_says_when_the_port_is_taken() -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    token = new_token()
    with Server(Page(), {token: "ann"}) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://127.0.0.1:{server.port}/", timeout=5)
        assert refused.value.code == 403
        assert server.link("ann") == f"http://127.0.0.1:{server.port}/?token={token}"
        with pytest.raises(ConfigError, match="cannot be listened"):
            Server(Page(), {token: "ann"}, server.port)
