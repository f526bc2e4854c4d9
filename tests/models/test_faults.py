"""What each failure means: Retry-After, overflow, filters, quota, and texts without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.models.base import scrub
from robustjudge.models.faults import failed, parsed, retry_after, said
from robustjudge.models.wire import Reply


def reply(status: int, body: bytes = b"", **headers: str) -> Reply:
    return Reply(status, {k.replace("_", "-"): v for k, v in headers.items()}, body, 0.1)


def said_so(message: str, **more: str | None) -> str:
    return json.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "x", "Retry-After": "2"}, 2.0),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT", "Date": "Fri, 31 Dec 1999 23:59:39 GMT"}, 20.0),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:00 GMT", "Date": "Fri, 31 Dec 1999 23:59:39 GMT"}, 0.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 30.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, wall=lambda: 70.0) == seconds


@pytest.mark.parametrize(
    ("status", "body", "action", "outcome"),
    [
        (400, said_so("the context window of 8192 tokens is exceeded"), "done", "context_overflow"),
        (500, said_so("the request exceeds the available context size"), "done", "context_overflow"),
        (413, said_so("prompt is too long"), "done", "context_overflow"),
        (400, said_so("max_tokens is too large: 99999. This model supports at most 16384"), "done", "http_400"),
        (429, said_so("You exceeded your current quota per minute", code="rate_limit_exceeded"), "retry", "http_429"),
        (429, said_so("x", type="insufficient_quota", code=None), "quota", "quota"),
        (402, "", "quota", "quota"),
        (403, said_so("x", type="billing_error"), "quota", "quota"),
        (500, said_so("your credit balance is too low"), "retry", "http_500"),
        (400, said_so("no", code="content_policy_violation"), "done", "content_filter"),
        (418, "I am a teapot", "done", "http_418"),
        (200, "", "done", "http_200"),
        (304, "", "done", "redirect"),
    ],
)
def test_meaning(status: int, body: str, action: str, outcome: str) -> None:
    attempt = failed(reply(status, body.encode()))
    assert (attempt.action, attempt.completion.reason) == (action, outcome)


@pytest.mark.parametrize(
    ("status", "slow"), [(429, "limit"), (503, "overload"), (529, "overload"), (500, ""), (408, ""), (409, "")]
)
def test_which_faults_narrow_the_window(status: int, slow: str) -> None:
    attempt = failed(reply(status, Retry_After="4"))
    assert (attempt.slow, attempt.wait, attempt.action) == (slow, 4.0, "retry")


def test_error_bodies_of_many_shapes() -> None:
    assert said({"error": "plain"}).message == "plain"
    assert said({"detail": "Not Found"}).message == "Not Found"
    assert said({"message": "x", "code": "c"}).code == "c"
    assert said({"error": {"message": {"deep": 1}}}).message == '{"deep": 1}'
    assert said({"error": {"code": 429, "message": "m"}}).status == 429
    assert said([1]).message == said(None).message == ""
    assert parsed(b"<html>") is None and parsed(b"") is None and parsed(b"[" * 100_000) is None


@given(st.integers(100, 599), st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_failure_is_a_row(status: int, body: bytes) -> None:
    completion = failed(reply(status, body)).completion
    assert completion.status in ("error", "refused") and completion.reason


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-S3CR3TS3CR3T.",
        "Authorization: Bearer S3CR3TS3CR3T",
        '{"x-api-key": "S3CR3TS3CR3T"}',
        "api_key=S3CR3TS3CR3T&x=1",
        "proxy http://me:S3CR3TS3CR3T@host/ failed",
        "token hf_S3CR3TS3CR3T",
        "key AIzaS3CR3TS3CR3T12345",
        "jwt eyJS3CR3TS3CR3T.S3CR3T.S3CR3T",
        "your password: S3CR3TS3CR3T",
    ],
)
def test_scrub(text: str) -> None:
    assert "S3CR3T" not in scrub(text)


def test_scrub_leaves_plain_texts_and_takes_given_secrets() -> None:
    plain = "The model `gpt-4o` does not exist; maximum context length is 8192 tokens, token 17."
    assert scrub(plain) == plain
    assert scrub("echo odd-looking-thing", "odd-looking-thing") == "echo [secret]"
    assert scrub("abc", "") == "abc"


def test_control_characters_and_length_of_messages_are_bounded() -> None:
    body: Any = ('{"error": {"message": "\\ud800' + "x" * 5000 + '"}}').encode()
    (note,) = failed(reply(400, body)).completion.notes
    assert len(note) < 600 and note.startswith("provider: \\ud800")
