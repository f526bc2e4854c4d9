"""The OpenAI-compatible client against a strict endpoint: fields, adaptations, faults (known faults, area I)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from endpoint_help import ask, call, http_model, patient
from hypothesis import given, settings, strategies as st
from strict_server import KEY, Fault, StrictServer, chat, error

from robustjudge.errors import ConfigError, QuotaExhausted
from robustjudge.models.base import Provider, Settings
from robustjudge.models.http import HttpModel
from robustjudge.nouns import Access, Call, Completion, message


def complete(model: Any, *calls: Call) -> list[Completion]:
    async def use(m: Any) -> list[Completion]:
        return [await m.complete(c) for c in calls]

    return ask(model, use)


def test_every_field_is_one_the_reference_knows() -> None:
    everything = call(
        system="You judge.",
        temperature=0.0,
        max_tokens=9,
        top_p=0.9,
        seed=3,
        stop=("END",),
        top_logprobs=5,
        schema='{"type":"object"}',
        effort="low",
    )
    with StrictServer() as server:
        (done,) = complete(http_model(server.url), everything)
        assert done.status == "ok" and done.text == "VERDICT: 7"
        assert server.requests[0].body == {
            "model": "m",
            "messages": [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge this."}],
            "temperature": 0.0,
            "max_tokens": 9,
            "top_p": 0.9,
            "seed": 3,
            "stop": ["END"],
            "logprobs": True,
            "top_logprobs": 5,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": {"type": "object"}},
            },
            "reasoning_effort": "low",
        }
        assert server.requests[0].path == "/v1/chat/completions"


def test_B129_a_refused_parameter_costs_one_adapted_call_then_none() -> None:
    with StrictServer(refuses=("temperature",)) as server:
        first, second = complete(http_model(server.url, "gpt-5-mini"), call(), call("Another."))
        assert [sorted(r.body) for r in server.requests] == [
            ["max_tokens", "messages", "model", "temperature"],
            ["max_tokens", "messages", "model"],
            ["max_tokens", "messages", "model"],
        ]
    assert (first.status, first.attempts, first.notes) == ("ok", 2, ("temperature_not_applied",))
    assert (second.status, second.attempts, second.notes) == ("ok", 1, ("temperature_not_applied",))


def test_B129_the_token_limit_is_renamed_and_the_temperature_dropped() -> None:
    with StrictServer(refuses=("max_tokens", "temperature")) as server:
        (done,) = complete(http_model(server.url), call(max_tokens=50))
        assert len(server.requests) == 3
        assert server.requests[-1].body["max_completion_tokens"] == 50
    assert done.notes == ("temperature_not_applied",)  # a renamed limit was applied: nothing to note


def test_openai_itself_gets_the_current_name_of_the_limit_at_once() -> None:
    model = HttpModel("openai/gpt-5-mini", "gpt-5-mini")
    fields, notes = model._request(call(max_tokens=50))
    assert fields["max_completion_tokens"] == 50 and "max_tokens" not in fields and notes == ()


@pytest.mark.parametrize(
    ("refused", "sampling", "note"),
    [
        ("seed", {"seed": 1}, "seed_not_applied"),
        ("top_p", {"top_p": 0.5}, "top_p_not_applied"),
        ("response_format", {"schema": "{}"}, "response_format_not_applied"),
        ("reasoning_effort", {"effort": "low"}, "reasoning_effort_not_applied"),
        ("logprobs", {"top_logprobs": 2}, "top_logprobs_not_applied"),
    ],
)
def test_other_refused_parameters_are_dropped_and_noted(refused: str, sampling: dict[str, Any], note: str) -> None:
    with StrictServer(refuses=(refused,)) as server:
        (done,) = complete(http_model(server.url), call(**sampling))
        assert len(server.requests) == 2
    assert done.status == "ok" and note in done.notes


def test_a_grammar_is_for_local_models_and_is_noted() -> None:
    with StrictServer() as server:
        (done,) = complete(http_model(server.url), call(grammar='root ::= "7"'))
    assert done.notes == ("grammar_not_applied",)


def test_calls_in_flight_share_one_lesson() -> None:
    with StrictServer(refuses=("seed",), latency=0.05) as server:

        async def use(m: Any) -> list[Completion]:
            await m.complete(call())  # teaches nothing: it has no seed
            return await asyncio.gather(*(m.complete(call(seed=i)) for i in range(5)))

        done = ask(http_model(server.url), use)
        assert len(server.requests) == 1 + 5 + 5
    assert {(c.status, c.notes) for c in done} == {("ok", ("seed_not_applied",))}


def test_B045_system_text_is_merged_once_into_the_first_user_turn() -> None:
    conversation = Call(
        "openai/m",
        (message("system", "Rules."), message("user", "One"), message("assistant", "Two"), message("user", "3")),
    )
    with StrictServer(refuses=("system",)) as server:
        (done,) = complete(http_model(server.url), conversation)
        assert server.requests[-1].body["messages"] == [
            {"role": "user", "content": "Rules.\n\nOne"},
            {"role": "assistant", "content": "Two"},
            {"role": "user", "content": "3"},
        ]
    assert done.notes == ("system_merged",)


def test_a_400_that_teaches_nothing_stands() -> None:
    with StrictServer(error(400, "something else is wrong")) as server:
        (done,) = complete(http_model(server.url), call())
        assert len(server.requests) == 1
    assert (done.status, done.reason, done.notes) == ("error", "http_400", ("provider: something else is wrong",))


def test_adapting_always_ends() -> None:
    stubborn = error(400, "Unsupported parameter: 'temperature' is not supported.", param="temperature")
    with StrictServer(*[stubborn] * 20) as server:
        (done,) = complete(http_model(server.url), call())
        assert len(server.requests) == 2
    assert (done.status, done.reason) == ("error", "http_400")


def test_B131_a_refusal_is_a_status_and_is_not_retried() -> None:
    body = chat(None, message={"refusal": "I can't grade this"})
    with StrictServer(answer=lambda _: body) as server:
        (done,) = complete(http_model(server.url), call())
        assert len(server.requests) == 1
    assert (done.status, done.refusal, done.text) == ("refused", "I can't grade this", "")


def test_B133_a_length_stop_keeps_cause_text_and_usage() -> None:
    body = chat('{"reason": "abc', choice={"finish_reason": "length"})
    with StrictServer(answer=lambda _: body) as server:
        (done,) = complete(http_model(server.url), call())
    assert (done.status, done.text, done.finish, done.usage.completion) == ("truncated", '{"reason": "abc', "length", 3)


def test_B135_null_content_is_an_empty_reply_in_its_own_row() -> None:
    count = iter(range(100))
    with StrictServer(answer=lambda _: chat(None if next(count) == 2 else "VERDICT: 7")) as server:
        done = complete(http_model(server.url), *[call()] * 10)
    assert [c.text for c in done].count("") == 1 and done[2].text == ""
    assert {c.status for c in done} == {"ok"}


def test_B137_an_exhausted_quota_is_one_request_for_the_run() -> None:
    quota = error(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota")
    with StrictServer(*[quota] * 20, latency=0.05) as server:

        async def use(m: Any) -> list[object]:
            return await asyncio.gather(*(m.complete(call()) for _ in range(20)), return_exceptions=True)

        results = ask(http_model(server.url), use)
        assert len(server.requests) == 1
    assert all(isinstance(r, QuotaExhausted) for r in results) and len({str(r) for r in results}) == 1


def test_B120_a_lone_surrogate_in_a_reply_becomes_visible() -> None:
    raw = json.dumps(chat("ok \ud83d [[7]]\x00")).encode()
    with StrictServer(Fault("raw", body=raw)) as server:
        (done,) = complete(http_model(server.url), call())
    assert done.text == "ok \\ud83d [[7]]\\u0000" and done.notes == ("text_mapped",)


@pytest.mark.parametrize(
    ("fault", "reason", "requests"),
    [
        (Fault("status", 500, "oops"), "http_500", 4),
        (Fault("status", 408), "http_408", 4),
        (Fault("status", 409), "http_409", 4),
        (Fault("status", 429, {"error": {"message": "slow down"}}, {"Retry-After": "3"}), "http_429", 4),
        (Fault("status", 529, {"error": {"type": "overloaded_error", "message": "busy"}}), "http_529", 4),
        (Fault("reset"), "transport", 4),
        (Fault("cut"), "transport", 4),
        (Fault("status", 400, "no"), "http_400", 1),
        (Fault("status", 401, "no"), "http_401", 1),
        (Fault("status", 404, "no"), "http_404", 1),
        (Fault("garbage"), "bad_body", 1),
        (Fault("html"), "bad_body", 1),
        (Fault("empty"), "empty_body", 1),
        (Fault("json", body=[]), "bad_body", 1),
        (Fault("json", body={"choices": []}), "bad_body", 1),
        (Fault("json", body={"choices": [{"message": {"content": 7}}]}), "bad_body", 1),
        (Fault("json", body={"choices": "x"}), "bad_body", 1),
    ],
    ids=lambda x: x.kind if isinstance(x, Fault) else str(x),
)
def test_every_fault_is_a_row_with_its_reason(fault: Fault, reason: str, requests: int) -> None:
    with StrictServer(*[fault] * requests) as server:
        model = http_model(server.url)
        bad, good = complete(model, call(), call())
        assert len(server.requests) == requests + 1
    assert (bad.status, bad.reason, bad.attempts, bad.text) == ("error", reason, requests, "")
    assert (good.status, good.text) == ("ok", "VERDICT: 7"), "the next call is not harmed"
    if fault.headers:
        assert len(model.limiter._clock.slept) == 3 and min(model.limiter._clock.slept) >= 3.0


def test_a_hanging_endpoint_is_a_timeout_row() -> None:
    with StrictServer(*[Fault("hang")] * 4) as server:
        (done,) = complete(http_model(server.url, timeout=0.1), call())
    assert (done.status, done.reason, done.attempts) == ("error", "timeout", 4)


def test_a_dead_endpoint_is_a_transport_row() -> None:
    (done,) = complete(http_model("http://127.0.0.1:9/v1"), call())
    assert (done.status, done.reason, done.attempts) == ("error", "transport", 4)
    assert done.notes[0].startswith("provider: ")


def test_three_faults_then_success_leave_a_trace_of_four() -> None:
    with StrictServer(Fault("status", 503), Fault("reset"), Fault("status", 500)) as server:
        (done,) = complete(http_model(server.url), call())
        assert len(server.requests) == 4
    assert (done.status, done.attempts) == ("ok", 4)
    assert done.notes == ("fault:http_503", "fault:transport", "fault:http_500")


def test_a_wrong_key_is_told_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "hunter2-is-my-secret")
    with StrictServer() as server:
        (done,) = complete(http_model(server.url), call())
    assert done.reason == "http_401"
    assert "hunter2" not in repr(done) and "[secret]" in done.notes[0]


def test_a_missing_key_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        complete(patient(HttpModel("openai/gpt-4o", "gpt-4o")), call())
    monkeypatch.delenv("TEST_KEY")
    with StrictServer() as server:
        with pytest.raises(ConfigError, match="TEST_KEY"):
            complete(http_model(server.url), call())
        assert not server.requests


def test_the_key_is_read_at_each_request_and_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with StrictServer() as server:
        model = http_model(server.url)

        async def use(m: Any) -> tuple[Completion, Completion]:
            monkeypatch.setenv("TEST_KEY", "wrong-one-entirely")
            first = await m.complete(call())
            monkeypatch.setenv("TEST_KEY", KEY)
            return first, await m.complete(call())

        first, second = ask(model, use)
    assert (first.reason, second.status) == ("http_401", "ok")

    def texts(thing: Any, depth: int = 0) -> list[str]:
        if depth > 6:
            return []
        if isinstance(thing, str):
            return [thing]
        inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple, set)) else ()
        own = vars(thing).values() if hasattr(thing, "__dict__") and not isinstance(thing, type) else ()
        return [t for x in (*inner, *own) for t in texts(x, depth + 1)]

    assert not [t for t in texts(model) if KEY in t]


def test_headers_and_query_are_sent_and_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "team-token-value")
    options: dict[str, Any] = {
        "headers": (("X-Team-Token", "${TEAM_TOKEN}"), ("X-Trace", "on")),
        "query": (("api-version", "2024-10-21"),),
    }
    with StrictServer() as server:
        (done,) = complete(http_model(server.url, **options), call())
        seen = server.requests[0]
    assert done.status == "ok"
    assert (seen.headers["X-Team-Token"], seen.headers["X-Trace"]) == ("team-token-value", "on")
    assert seen.query == {"api-version": "2024-10-21"}


def test_many_calls_never_exceed_the_ceiling() -> None:
    with StrictServer(latency=0.01) as server:
        model = http_model(server.url, max_concurrency=16)
        patient(model, ceiling=16)

        async def use(m: Any) -> list[Completion]:
            return await asyncio.gather(*(m.complete(call(str(i))) for i in range(200)))

        done = ask(model, use)
        assert server.most_in_flight <= 16 and len(server.requests) == 200
    assert {c.status for c in done} == {"ok"}


def test_a_model_serves_one_loop_after_another() -> None:
    with StrictServer() as server:
        model = http_model(server.url)
        assert complete(model, call())[0].status == "ok"
        assert complete(model, call())[0].status == "ok"


def test_what_a_model_says_of_itself() -> None:
    model = HttpModel("openai/gpt-4o", "gpt-4o", Settings(base_url="https://user:${PW}@host/v1/", revision="r2"))
    assert isinstance(model, Provider)
    assert model.endpoint == "https://host/v1" and "user" not in model.identity
    assert model.access == Access.ODDS
    other = HttpModel("openai/gpt-4o", "gpt-4o", Settings(base_url="https://host/v1", revision="r3"))
    assert other.identity != model.identity
    assert HttpModel("openai/gpt-5-mini", "gpt-5-mini").access == Access.SCORE
    assert HttpModel("openai/gpt-5.1", "gpt-5.1", Settings(logprobs=True)).access == Access.ODDS


@pytest.mark.parametrize(
    ("extra", "prompt"),
    [
        ({"usage": {"prompt_tokens": "11", "completion_tokens": "3"}}, 11),
        ({"usage": {"prompt_tokens": "many", "completion_tokens": [3]}}, 0),
        ({"usage": {"prompt_tokens": float("inf"), "completion_tokens": -3}}, 0),
        ({"usage": "none"}, 0),
    ],
)
def test_bookkeeping_of_another_shape_never_loses_a_paid_answer(extra: dict[str, Any], prompt: int) -> None:
    model = HttpModel("openai/m", "m", Settings(base_url="http://x/v1"))
    choice = {"message": {"content": "VERDICT: 7"}, "finish_reason": "stop", "logprobs": {"content": [{"token": 1}]}}
    done = model._answer({"choices": [choice], **extra}, 0.1)
    assert (done.status, done.text, done.usage.prompt, done.tokens) == ("ok", "VERDICT: 7", prompt, ())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda x: (
            st.lists(x, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "usage",
                        "logprobs",
                        "error",
                        "refusal",
                        "finish_reason",
                        "prompt_tokens",
                        "code",
                        "token",
                        "logprob",
                        "top_logprobs",
                    ]
                ),
                x,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
@settings(max_examples=300, deadline=None)
def test_no_body_whatever_raises(body: Any) -> None:
    from robustjudge.models.wire import Reply

    model = HttpModel("openai/m", "m", Settings(base_url="http://x/v1"))
    for status in (200, 400, 500):
        result = model._result(Reply(status, {}, json.dumps(body).encode(), 0.1))
        assert result.completion.status in ("ok", "error", "refused", "truncated")
        assert status == 200 or result.completion.status != "ok"
