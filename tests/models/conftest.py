"""Every test of an endpoint client has the strict server's key in its environment."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    from strict_server import KEY

    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return KEY
