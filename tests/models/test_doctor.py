"""One live call, and words about what went wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from strict_server import Fault, StrictServer, error

from robustjudge.models.base import Settings
from robustjudge.models.doctor import LiveCheck, live


def check(server: StrictServer, model: str = "openai/gpt-4o", **settings: Any) -> LiveCheck:
    return asyncio.run(live(model, Settings(base_url=server.url, key_env="TEST_KEY", **settings)))


def test_one_call_and_what_it_told() -> None:
    with StrictServer() as server:
        found = check(server)
        assert len(server.requests) == 1
    text = "\n".join(found.lines)
    assert found.ok and "gpt-4o-2024-08-06" in text and "USD" in text and "family gpt" in text and "alias" in text


def test_an_unknown_price_is_said() -> None:
    with StrictServer() as server:
        assert any("price unknown" in line for line in check(server, "openai/mine").lines)


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (error(401, "Incorrect API key provided: sk-abcdef123456"), "key was refused"),
        (error(404, "no such model"), "model name"),
        (Fault("html"), "web page"),
        (Fault("status", 302, headers={"Location": "https://elsewhere.invalid"}), "final address"),
        (error(429, "no money", "insufficient_quota"), "no quota left"),
    ],
)
def test_failures_come_with_advice_and_without_secrets(fault: Fault, hint: str) -> None:
    with StrictServer(fault) as server:
        found = check(server)
        assert len(server.requests) == 1
    text = "\n".join(found.lines)
    assert not found.ok and hint in text and "sk-abcdef" not in text


def test_settings_that_cannot_work_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY" in asyncio.run(live("openai/gpt-4o")).lines[0]
    assert "Did you mean" in asyncio.run(live("opanai/gpt-4o")).lines[0]
