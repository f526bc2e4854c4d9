"""A run against an endpoint that fails in every way: it completes, every fault is a row, no answer changes places."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from endpoint_help import call, http_model
from strict_server import Fault, StrictServer, chat, error

from robustjudge.asks import Complete
from robustjudge.engine.backend import Backend
from robustjudge.engine.driver import AsyncDriver, Job, Landed
from robustjudge.engine.ledger import Ledger
from robustjudge.engine.writer import Writer
from robustjudge.errors import QuotaExhausted
from robustjudge.nouns import Completion

FATAL = [
    error(400, "bad"),
    Fault("html"),
    Fault("garbage"),
    Fault("empty"),
    error(400, "x", "context_length_exceeded"),
    error(400, "filtered", "content_filter"),
    Fault("json", body=chat(None, message={"refusal": "no"})),
    Fault("json", body=chat("VERDI", choice={"finish_reason": "length"})),
]
PASSING = [
    Fault("status", 500),
    Fault("reset"),
    Fault("cut"),
    Fault("status", 429, {"error": {"message": "slow down"}}, {"Retry-After": "2"}),
    Fault("status", 529, {"error": {"type": "overloaded_error", "message": "busy"}}),
]


def run(server: StrictServer, n: int) -> dict[str, Completion]:
    """``n`` jobs of one call each through the real driver; completions by job key."""
    model: Any = http_model(server.url)
    landed: list[Landed] = []

    async def one(i: int) -> Completion:
        (completion,) = await Complete((call(f"case {i}"),))
        return completion

    async def main() -> None:
        backend = Backend(lambda name: model, Ledger(Writer(), None))
        try:
            jobs = (Job(str(i), lambda i=i: one(i)) for i in range(n))  # type: ignore[misc]
            await AsyncDriver(backend, landed.append, window=16).run(jobs)
        finally:
            await backend.close()

    asyncio.run(main())
    assert not [x.error for x in landed if x.error]
    return {x.job.key: x.result for x in landed}


def test_B114_every_fault_is_a_row_and_every_answer_keeps_its_place() -> None:
    faults = [f for pair in zip(FATAL, PASSING + PASSING) for f in pair]

    def echo(body: dict[str, Any]) -> dict[str, Any]:
        return chat(body["messages"][-1]["content"])

    with StrictServer(*faults, answer=echo) as server:
        rows = run(server, 60)
        assert len(server.requests) == 60 + len(PASSING + PASSING[:3])
    assert len(rows) == 60
    good = {k: c for k, c in rows.items() if c.status == "ok"}
    assert all(c.text == f"case {k}" for k, c in good.items())
    bad = sorted((c.status, c.reason) for c in rows.values() if c.status != "ok")
    assert bad == [
        ("error", "bad_body"),
        ("error", "bad_body"),
        ("error", "context_overflow"),
        ("error", "empty_body"),
        ("error", "http_400"),
        ("refused", "content_filter"),
        ("refused", "refusal"),
        ("truncated", "length"),
    ]


def test_B137_an_exhausted_quota_ends_the_run_after_one_request() -> None:
    quota = error(429, "You exceeded your current quota", "insufficient_quota")
    with StrictServer(*[quota] * 30, latency=0.02) as server:
        with pytest.raises(QuotaExhausted, match="no quota left"):
            run(server, 30)
        assert len(server.requests) == 1
