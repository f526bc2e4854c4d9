"""What each kind of failure means: which row it becomes, and whether another try can help.

It only names the fault; the limiter owns the retries.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from robustjudge.door import safe
from robustjudge.engine.limits import Attempt
from robustjudge.models.base import scrub
from robustjudge.models.wire import Reply
from robustjudge.nouns import Completion

_OVERFLOW = (
    "maximum context length",
    "context length",
    "context window",
    "context size",
    "context_length",
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    "exceeds the model's context",
)
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"})
_QUOTA_TEXTS = ("credit balance is too low", "specified api usage limits")


@dataclass(frozen=True, slots=True)
class Said:
    """The error a provider described in its body: machine-readable ``code`` and ``param``, human ``message``."""

    message: str = ""
    code: str = ""
    param: str = ""
    status: int = 0


def said(data: Any) -> Said:
    """Read the error object of a JSON body: ``{"error": {...}}``, ``{"error": "text"}`` or ``{"message": ...}``."""
    if not isinstance(data, dict):
        return Said()
    error = data.get("error", data if "message" in data or "detail" in data else None)
    if isinstance(error, str):
        return Said(error)
    if not isinstance(error, dict):
        return Said()
    code, kind = error.get("code"), error.get("type")
    inner = error.get("innererror")
    if isinstance(inner, dict) and str(inner.get("code", "")).lower() in _FILTER_CODES:
        code = inner["code"]
    status = code if isinstance(code, int) and not isinstance(code, bool) else 0
    if not isinstance(code, str) or kind in _QUOTA_CODES:
        code = kind
    message = error.get("message") or error.get("detail") or ""
    return Said(
        message if isinstance(message, str) else json.dumps(message),
        code if isinstance(code, str) else "",
        error["param"] if isinstance(error.get("param"), str) else "",
        status,
    )


def parsed(body: bytes) -> Any:
    """The JSON of a body, or ``None`` when it is none (an HTML page, a cut text, nothing)."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def failed(reply: Reply, secrets: tuple[str, ...] = (), status: int = 0, error: Said | None = None) -> Attempt:
    """What a reply without a usable answer means: the row it becomes, and whether another try can help.

    ``status`` and ``error`` stand in for the reply's own where a gateway wrapped an error into a 200.
    """
    status = status or reply.status
    error = error or said(parsed(reply.body))
    message = safe(scrub(error.message or reply.detail, *secrets))[:500]
    notes = (f"provider: {message}",) if message else ()
    low, code = message.lower(), error.code.lower()

    def row(reason: str) -> Completion:
        return Completion(status="error", finish="", reason=reason, latency=reply.seconds, notes=notes)

    if reply.fault:
        passing = reply.fault in ("timeout", "transport")
        return Attempt(row(reply.fault), "retry" if passing else "done", reply.fault)
    if code in _FILTER_CODES:
        refused = Completion(
            status="refused",
            finish="content_filter",
            refusal=message,
            reason="content_filter",
            latency=reply.seconds,
            notes=notes,
        )
        return Attempt(refused)
    kind = f"http_{status}"
    if status == 402 or code in _QUOTA_CODES or (status < 500 and any(t in low for t in _QUOTA_TEXTS)):
        return Attempt(row("quota"), "quota", "quota")
    if code == "context_length_exceeded" or (status in (400, 413, 422, 500) and any(t in low for t in _OVERFLOW)):
        return Attempt(row("context_overflow"))
    if 300 <= status < 400:
        return Attempt(row("redirect"))
    if status in (408, 409, 429) or status >= 500 or code == "overloaded_error":
        overload = status in (503, 529) or code == "overloaded_error"
        slow: Literal["", "limit", "overload"] = "overload" if overload else "limit" if status == 429 else ""
        return Attempt(row(kind), "retry", kind, slow, retry_after(reply.headers))
    return Attempt(row(kind))


def unusable(reply: Reply, reason: str) -> Attempt:
    """A 200 that holds no answer: an error row with ``reason``; never retried, since the request was taken."""
    start = safe(scrub(reply.body[:200].decode("utf-8", "replace")))
    notes = (f"body: {start}",) if start else ()
    return Attempt(Completion(status="error", finish="", reason=reason, latency=reply.seconds, notes=notes))


def retry_after(headers: Mapping[str, str], wall: Callable[[], float] = time.time) -> float | None:
    """Seconds a server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or HTTP date (RFC 9110).

    A date is read against the reply's own ``Date`` where there is one, so that a wrong local clock does no harm.
    """
    exact = headers.get("retry-after-ms")
    if exact:
        try:
            return max(0.0, float(exact) / 1000.0)
        except ValueError:
            pass
    text = headers.get("Retry-After")
    if not text:
        return None
    try:
        seconds = float(text)
        return max(0.0, seconds) if seconds == seconds else None
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError):
        return None
    try:
        now = parsedate_to_datetime(headers["Date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        now = wall()
    return max(0.0, until - now)
