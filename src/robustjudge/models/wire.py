"""The wire: one POST over aiohttp, shared by every endpoint client; faults of the world come back as values."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from robustjudge.errors import ConfigError
from robustjudge.models.base import Settings, expand

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_BODY = 64 * 1024 * 1024
"""A reply above this many bytes is an error row: an endpoint must not be able to fill the memory."""

_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: HTTP status (0: nothing), headers, body, seconds, and the kind of fault, if any."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    fault: str = ""
    detail: str = ""


class Wire:
    """An HTTP connection pool for one endpoint; opened at the first request, closed by :meth:`close`."""

    def __init__(self, url: str, settings: Settings, headers: Callable[[], Mapping[str, str]]) -> None:
        parts = urlsplit(url)
        if "${" not in url and parts.scheme not in ("http", "https"):
            raise ConfigError(f"{url!r} is no HTTP address; expected http://host/path or https://host/path")
        self._url, self._settings, self._headers = url, settings, headers
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._target: URL | None = None
        self._proxy: str | None = None

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp
        from yarl import URL

        settings = self._settings
        context: ssl.SSLContext | bool = True
        if settings.ca:
            try:
                context = ssl.create_default_context(cafile=settings.ca)
            except (OSError, ssl.SSLError) as fault:
                raise ConfigError(f"the CA file {settings.ca} cannot be used: {fault}") from None
        self._target = URL(expand(self._url)).update_query({k: expand(v) for k, v in settings.query})
        self._proxy = expand(settings.proxy) or None
        self._loop = asyncio.get_running_loop()
        # limit=0: the limiter alone decides what is in flight, so that its window is the truth
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            timeout=aiohttp.ClientTimeout(total=settings.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # would also read .netrc and send its credentials
        )
        return self._session

    async def post(self, body: bytes) -> Reply:
        """Send ``body`` as JSON; faults of the world come back as a reply with ``fault`` set."""
        session = self._session
        if session is None or self._loop is not asyncio.get_running_loop():
            session = self._open()
        assert self._target is not None
        headers = {**_JSON, **self._headers()}
        for name, value in self._settings.headers:
            headers[name] = expand(value)
        started = time.perf_counter()
        try:
            reply = await self._exchange(session, self._target, body, headers, started)
            if reply.status in (307, 308):
                onward = self._onward(reply)
                if onward is not None:
                    reply = await self._exchange(session, onward, body, headers, started)
        except TimeoutError:
            return Reply(0, {}, b"", time.perf_counter() - started, "timeout")
        except (OSError, _client_error()) as fault:
            detail = f"{type(fault).__name__}: {fault}"
            kind = "certificate" if isinstance(fault, ssl.SSLCertVerificationError) else "transport"
            if isinstance(getattr(fault, "certificate_error", None), Exception):
                kind = "certificate"
            return Reply(0, {}, b"", time.perf_counter() - started, kind, detail)
        return reply

    async def _exchange(
        self, session: aiohttp.ClientSession, url: URL, body: bytes, headers: Mapping[str, str], started: float
    ) -> Reply:
        # redirects are looked at by hand: a client that follows them would carry the key to another host
        async with session.post(url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy) as r:
            if (r.content_length or 0) > MAX_BODY:
                r.close()
                return Reply(r.status, r.headers, b"", time.perf_counter() - started, "body_too_large")
            if r.content_length is not None and "Content-Encoding" not in r.headers:
                raw = await r.read()
            else:
                chunks: list[bytes] = []
                size = 0
                async for chunk in r.content.iter_any():
                    size += len(chunk)
                    if size > MAX_BODY:
                        r.close()
                        return Reply(r.status, r.headers, b"", time.perf_counter() - started, "body_too_large")
                    chunks.append(chunk)
                raw = b"".join(chunks)
            return Reply(r.status, r.headers, raw, time.perf_counter() - started)

    def _onward(self, reply: Reply) -> URL | None:
        """Where a 307 or 308 leads, if it stays on the same scheme, host and port; else ``None``."""
        from yarl import URL

        assert self._target is not None
        onward = URL(urljoin(str(self._target), reply.headers.get("Location", "")), encoded=True)
        return onward if onward.origin() == self._target.origin() and onward != self._target else None

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()


def _client_error() -> type[Exception]:
    from aiohttp import ClientError

    return ClientError
