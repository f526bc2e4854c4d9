"""Judges that somebody else owns: an HTTP service or a Python callable answers the ask ``Invoke``.

Own or authorised services only: the defaults are one request per second and a call cap.  What comes back is the raw
answer as JSON text; where the score stands in it is the business of :class:`robustjudge.judges.Service`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from robustjudge.asks import Invoke
from robustjudge.door import safe
from robustjudge.engine.limits import Attempt, Limiter
from robustjudge.errors import BudgetSpent, ConfigError
from robustjudge.models.base import Settings, bare, settings_from
from robustjudge.models.faults import failed, parsed, unusable
from robustjudge.models.wire import Reply, Wire
from robustjudge.nouns import Completion, Slate
from robustjudge.spec import canonical, digest, register

_SLOT = re.compile(r"\{([a-z]+)(?:\.([A-Za-z0-9_-]+))?\}")
SLOTS = ("task", "response", "responses", "reference", "history", "exchange", "kind", "language", "meta")
"""Slots of a request: ``response`` is the first candidate, ``responses`` all in the order shown; ``responses.1`` is
one of them and ``meta.NAME`` one entry of the case's ``meta``."""


POLITE = Settings(rpm=60.0, max_concurrency=4)
"""How a service is reached unless its owner agreed to more: one request a second."""


@register("endpoint")
@dataclass(frozen=True)
class Endpoint:
    """An HTTP judge.

    ``request`` is the JSON body as text with slots in its strings (``{"question": "{task}", "answer": "{response}"}``).
    A string that is one slot takes the slot's value (``responses`` and ``history`` are lists); anything else is
    filled as text, in one pass, after the JSON was parsed: data never becomes markup or a slot.  The key, if
    ``settings.key_env`` names one, is sent as ``key_header`` with ``key_prefix`` before it.  ``max_calls`` caps the
    requests of a run.
    """

    url: str
    request: str
    settings: Settings = POLITE
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    max_calls: int = 500

    def __post_init__(self) -> None:
        try:
            body = json.loads(self.request)
        except ValueError as fault:
            raise ConfigError(f"the request of service {bare(self.url)} is no JSON: {fault}") from None
        found = {m[1] for text in _strings(body) for m in _SLOT.finditer(text)}
        unknown = sorted(found - set(SLOTS))
        if unknown:
            raise ConfigError(f"unknown slot {{{unknown[0]}}} in a service request; known: {', '.join(SLOTS)}")
        if not found & {"response", "responses"}:
            raise ConfigError("a service request shows no candidate: it needs the slot {response} or {responses}")


def endpoint_from(data: Mapping[str, Any]) -> Endpoint:
    """An endpoint from a configuration file's mapping: ``url``, ``request`` (the body as a mapping), ``key_header``,
    ``key_prefix``, ``max_calls``, and any model setting (``key_env``, ``rpm``, ``timeout``, ...) beside them."""
    own = {f.name for f in fields(Endpoint)} - {"settings"}
    if missing := {"url", "request"} - set(data):
        raise ConfigError(f"a service needs {' and '.join(sorted(missing))}")
    given = {k: v for k, v in data.items() if k in own}
    if not isinstance(given["request"], str):
        given["request"] = canonical(given["request"])
    settings = settings_from({k: v for k, v in data.items() if k not in own}, POLITE)
    return Endpoint(settings=settings, **given)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for v in value.values() for text in _strings(v)]
    return [text for v in value for text in _strings(v)] if isinstance(value, list) else []


def fill(value: Any, slate: Slate) -> Any:
    """The parsed request with every slot filled from ``slate``."""
    if isinstance(value, Mapping):
        return {k: fill(v, slate) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, slate) for v in value]
    if not isinstance(value, str):
        return value
    whole = _SLOT.fullmatch(value)
    if whole is not None:
        return _slot(whole, slate)
    return _SLOT.sub(lambda m: _as_text(_slot(m, slate)), value)


def _slot(match: re.Match[str], slate: Slate) -> Any:
    name, part = match[1], match[2]
    if name == "meta":
        return dict(slate.meta).get(part or "", "")
    if name == "responses" and part:
        return slate.candidates[int(part)] if part.isdigit() and int(part) < len(slate.candidates) else ""
    if name in ("history", "exchange"):
        return [{"role": t.role, "content": t.text} for t in getattr(slate, name)]
    values = {"task": slate.task, "response": slate.candidates[0], "responses": list(slate.candidates)}
    return values[name] if name in values else getattr(slate, name)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class HttpService:
    """Answers :class:`~robustjudge.asks.Invoke` over HTTP, within the endpoint's own limits."""

    def __init__(
        self, name: str, endpoint: Endpoint, *, on_event: Callable[[str, str, float], None] | None = None
    ) -> None:
        self.name, self.endpoint = name, endpoint
        settings = endpoint.settings
        self.identity = "\n".join(
            ("service", name, bare(endpoint.url), canonical(json.loads(endpoint.request)), settings.revision)
        )
        self.limiter = Limiter(ceiling=settings.max_concurrency, rpm=settings.rpm, tpm=settings.tpm, on_event=on_event)
        self._body = json.loads(endpoint.request)
        self._wire = Wire(endpoint.url, settings, self._headers)

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {self.endpoint.key_header: self.endpoint.key_prefix + key} if key else {}

    def _key(self) -> str:
        name = self.endpoint.settings.key_env
        return os.environ.get(name, "") if name else ""

    def check(self) -> None:
        """Raise :class:`ConfigError` if the key that the settings name is not set; sends nothing."""
        name = self.endpoint.settings.key_env
        if name and not self._key():
            raise ConfigError(f"service {self.name} needs a key: set the environment variable {name}")

    async def invoke(self, ask: Invoke) -> Completion:
        """The service's JSON answer as text, or an error row; :class:`BudgetSpent` once the call cap is reached."""
        self.check()
        body = json.dumps(fill(self._body, ask.slate)).encode()

        async def attempt() -> Attempt:
            if self.limiter.counters.sent > self.endpoint.max_calls:
                raise BudgetSpent(
                    f"service {self.name}: its cap of {self.endpoint.max_calls} calls is reached;"
                    " raise max_calls if the owner agrees, --resume goes on"
                )
            return self._read(await self._wire.post(body))

        return await self.limiter.send(attempt)

    def _read(self, reply: Reply) -> Attempt:
        if reply.fault or not 200 <= reply.status < 300:
            return failed(reply, (self._key(),))
        if parsed(reply.body) is None:
            return unusable(reply, "not_json" if reply.body.strip() else "empty_body")
        text = reply.body.decode("utf-8", "replace")
        return Attempt(Completion(safe(text), latency=reply.seconds, model=self.name))

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()


def _code(function: Callable[..., Any]) -> str:
    """A hash of the module that the function stands in, so that answers of its earlier code are not taken for its own."""
    module = inspect.getmodule(function) or inspect.getmodule(type(function))
    try:
        return digest(inspect.getsource(module)) if module is not None else ""
    except (OSError, TypeError):  # typed at a prompt, or compiled
        return ""


class CallableService:
    """A Python function as a judge: ``(Slate) -> text, number or JSON-able mapping``, plain or async.

    The ledger tells its answers apart by its name and the text of its module; what that module calls is not seen.
    A plain function runs in a thread, one call at a time unless ``concurrency`` says it is thread-safe.  What it
    raises becomes an error row, never the end of the run.
    """

    def __init__(self, name: str, function: Callable[[Slate], Any], *, concurrency: int = 1) -> None:
        self.name = name
        self._function = function
        self._places = asyncio.Semaphore(concurrency)
        where = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
        self.identity = "\n".join(("callable", name, where, _code(function)))

    async def invoke(self, ask: Invoke) -> Completion:
        """The function's answer as JSON text."""
        async with self._places:
            started = time.perf_counter()
            try:
                if inspect.iscoroutinefunction(self._function):
                    value = await self._function(ask.slate)
                else:
                    value = await asyncio.to_thread(self._function, ask.slate)
                    if inspect.isawaitable(value):
                        value = await value
                text = json.dumps(value, ensure_ascii=False, allow_nan=False) if not isinstance(value, str) else value
            except Exception as fault:  # foreign code: whatever it raises is a fact about it, kept in the row
                return Completion(
                    status="error",
                    finish="",
                    reason="callable_raised",
                    model=self.name,
                    latency=time.perf_counter() - started,
                    notes=(f"provider: {type(fault).__name__}: {safe(str(fault))[:300]}",),
                )
            return Completion(safe(text), latency=time.perf_counter() - started, model=self.name)

    async def close(self) -> None:
        """Nothing to close."""


def open_service(
    name: str,
    service: Endpoint | Callable[[Slate], Any],
    *,
    on_event: Callable[[str, str, float], None] | None = None,
) -> HttpService | CallableService:
    """The answering side of a service: what the backend's ``services`` map holds."""
    if isinstance(service, Endpoint):
        return HttpService(name, service, on_event=on_event)
    if callable(service):
        return CallableService(name, service)
    raise ConfigError(f"service {name!r} must be an Endpoint or a callable, not {type(service).__name__}")
