"""The chat model behind an HTTP endpoint: one request, its limits, and the adaptations a model asks for.

Subclasses say how a request is written and how an answer is read; everything else is here once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from robustjudge.engine.limits import Attempt, Limiter
from robustjudge.errors import ConfigError
from robustjudge.models.base import Settings, bare, identity
from robustjudge.models.faults import failed, parsed, said, unusable
from robustjudge.models.quirks import Quirks
from robustjudge.models.wire import Reply, Wire
from robustjudge.nouns import Access, Call, Completion, Message

Events = Callable[[str, str, float], None]


class ChatModel:
    """One model behind an endpoint.

    ``name`` is the full ``provider/model`` name, ``model`` what is sent, ``endpoint`` the base URL without
    credentials.  The key is read from the environment variable ``key_env`` at each request and kept nowhere;
    ``needs_key`` says whether a request without one is pointless.
    """

    access = Access.SCORE

    def __init__(
        self,
        name: str,
        model: str,
        settings: Settings,
        base: str,
        path: str,
        key_env: str,
        needs_key: bool,
        quirks: Quirks,
        on_event: Events | None = None,
    ) -> None:
        self.name, self.model, self.settings = name, model, settings
        self.endpoint = bare(base)
        self.effort = settings.effort
        self.identity = identity(name, base, settings)
        self.context: int | None = None
        self.concurrency = settings.max_concurrency
        self.limiter = Limiter(ceiling=settings.max_concurrency, rpm=settings.rpm, tpm=settings.tpm, on_event=on_event)
        self._key_env = settings.key_env or key_env
        self._needs_key = needs_key or bool(settings.key_env)
        self._wire = Wire(base.rstrip("/") + path, settings, self._headers)
        self._quirks = quirks

    def check(self) -> None:
        """Raise :class:`ConfigError` if the key that every request needs is not set; sends nothing."""
        if self._needs_key and not os.environ.get(self._key_env):
            raise ConfigError(
                f"{self.name} needs a key: set the environment variable {self._key_env}"
                " (or name another one as key_env); nothing was sent"
            )

    async def complete(self, call: Call) -> Completion:
        """The reply to one call, with its status.

        Raises only what ends a run: :class:`QuotaExhausted`, and :class:`ConfigError` for a missing key.
        """
        if self._needs_key:
            self.check()
        quirks = self._quirks
        version = -1
        body = b""
        notes: tuple[str, ...] = ()

        async def attempt() -> Attempt:
            nonlocal version, body, notes
            if version != quirks.version:
                version = quirks.version
                fields, notes = self._request(call)
                body = json.dumps(fields).encode()
            reply = await self._wire.post(body)
            result = self._result(reply)
            completion = result.completion
            if result.action == "done" and completion.reason in ("http_400", "http_422"):
                # another call may have learned meanwhile: then this one only has to be written anew
                if quirks.version != version or quirks.learn(said(parsed(reply.body)), json.loads(body)):
                    return Attempt(completion, "adapt")
            elif notes and completion.status != "error":
                return replace(result, completion=replace(completion, notes=(*completion.notes, *notes)))
            return result

        return await self.limiter.send(attempt, _estimate(call) if self.settings.tpm else 0)

    def batch_line(self, key: str, call: Call) -> dict[str, Any]:
        """One request as a line of the provider's batch format; ``key`` comes back as its ``custom_id``."""
        fields, _ = self._request(call)
        return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": fields}

    def from_batch(self, row: dict[str, Any]) -> Completion:
        """The completion in one line of a batch's results (``{"custom_id", "response": {"status_code", "body"}}``)."""
        response = row.get("response") or {}
        body = response.get("body")
        if response.get("status_code") != 200 or not isinstance(body, dict):
            return Completion(status="error", reason=f"http_{response.get('status_code', 'none')}")
        return self._answer(body, 0.0)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._wire.close()

    def _result(self, reply: Reply) -> Attempt:
        if reply.fault or reply.status != 200:
            return failed(reply, self._secrets())
        data = parsed(reply.body)
        if not isinstance(data, dict):
            return unusable(reply, "bad_body" if reply.body.strip() else "empty_body")
        if data.get("error"):  # some gateways wrap the provider's error into a 200
            error = said(data)
            return failed(reply, self._secrets(), error.status or 400, error)
        try:
            return Attempt(self._answer(data, reply.seconds))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as fault:
            result = unusable(reply, "bad_body")
            why = f"provider: {type(fault).__name__}: {fault}"[:200]
            return Attempt(replace(result.completion, notes=(*result.completion.notes, why)))

    def _key(self) -> str:
        return os.environ.get(self._key_env, "") if self._key_env else ""

    def _secrets(self) -> tuple[str, ...]:
        return (self._key(),)

    # ----------------------------------------------------------------------- what a subclass says

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _request(self, call: Call) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The request's fields, and a note for each thing asked for that they leave out."""
        raise NotImplementedError

    def _answer(self, data: dict[str, Any], seconds: float) -> Completion:
        """The completion in a 200's JSON; may raise what reading a wrong shape raises."""
        raise NotImplementedError


def _estimate(call: Call) -> int:
    """Tokens a call may use, for ``tpm``: four characters a token (other languages are settled afterwards)."""
    return sum(len(m.text) for m in call.messages) // 4 + call.sampling.max_tokens


def counted(tokens: object) -> int:
    """A token count, which some gateways write as text; 0 where it is no count: bookkeeping never loses an answer."""
    try:
        return max(int(tokens), 0) if isinstance(tokens, (int, float, str)) else 0
    except (ValueError, OverflowError):
        return 0


def merged(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    """Messages for a model without a system role: the system text stands once, before the first user turn."""
    system = "\n\n".join(m.text for m in messages if m.role == "system")
    rest = [{"role": m.role, "content": m.text} for m in messages if m.role != "system"]
    if not system:
        return rest
    for turn in rest:
        if turn["role"] == "user":
            turn["content"] = f"{system}\n\n{turn['content']}"
            return rest
    return [{"role": "user", "content": system}, *rest]
