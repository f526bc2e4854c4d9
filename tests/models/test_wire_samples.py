"""Recorded wire samples, written from the public API references, read by the real clients over a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from endpoint_help import ask, call, http_model, patient
from strict_server import Fault, StrictServer

from robustjudge.errors import QuotaExhausted
from robustjudge.models.anthropic import AnthropicModel
from robustjudge.models.base import Settings

SAMPLES = sorted((Path(__file__).parent / "wire").glob("*.json"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_sample(path: Path) -> None:
    sample: dict[str, Any] = json.loads(path.read_text("utf-8"))
    expect = sample["expect"]
    with StrictServer(Fault("status", sample["status"], sample["body"])) as server:
        model = (
            patient(AnthropicModel("anthropic/m", "m", Settings(base_url=server.url, key_env="TEST_KEY")))
            if path.stem.startswith("anthropic")
            else http_model(server.url)
        )
        if "raises" in expect:
            with pytest.raises(QuotaExhausted):
                ask(model, lambda m: m.complete(call()))
            assert len(server.requests) == 1
            return
        completion = ask(model, lambda m: m.complete(call()))
        assert len(server.requests) == 1, "none of these is ever retried"
    usage = completion.usage
    seen = {
        "status": completion.status,
        "text": completion.text,
        "finish": completion.finish,
        "reason": completion.reason,
        "refusal": completion.refusal,
        "reasoning": completion.reasoning,
        "model": completion.model,
        "usage": [usage.prompt, usage.completion, usage.cached, usage.reasoning],
        "tokens": len(completion.tokens),
    }
    for name, value in expect.items():
        if name == "never":
            assert value not in repr(completion)
        else:
            assert seen[name] == value, name
    assert completion.latency > 0 and completion.attempts == 1


def test_every_sample_cites_its_source() -> None:
    assert len(SAMPLES) >= 20
    for path in SAMPLES:
        source = json.loads(path.read_text("utf-8"))["source"]
        assert source["title"] and source["url"].startswith("https://")
