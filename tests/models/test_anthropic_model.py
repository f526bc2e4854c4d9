"""The Messages API client against a strict endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from endpoint_help import ask, call, patient
from strict_server import Fault, StrictServer

from robustjudge.errors import ConfigError
from robustjudge.models.anthropic import AnthropicModel
from robustjudge.models.base import Provider, Settings, Weighs
from robustjudge.nouns import Access, Call, message


def model(url: str, **settings: Any) -> Any:
    settings.setdefault("key_env", "TEST_KEY")
    return patient(AnthropicModel("anthropic/claude-x", "claude-x", Settings(base_url=url, **settings)))


def complete(m: Any, c: Call) -> Any:
    return ask(m, lambda x: x.complete(c))


def test_every_field_is_one_the_reference_knows() -> None:
    asked = call(system="You judge.", max_tokens=9, top_p=0.9, stop=("END",), schema='{"type":"object"}', effort="low")
    with StrictServer() as server:
        done = complete(model(server.url), asked)
        assert server.requests[0].body == {
            "model": "claude-x",
            "max_tokens": 9,
            "temperature": 0.0,
            "system": "You judge.",
            "messages": [{"role": "user", "content": "Judge this."}],
            "top_p": 0.9,
            "stop_sequences": ["END"],
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        }
    assert (done.status, done.text, done.notes) == ("ok", "VERDICT: 7", ())
    assert (done.usage.prompt, done.usage.cached, done.usage.completion) == (17, 5, 4)
    assert done.model == "claude-sonnet-4-5-20250929"


def test_what_the_api_lacks_is_noted_not_sent() -> None:
    with StrictServer() as server:
        done = complete(model(server.url), call(seed=3, top_logprobs=5))
    assert done.status == "ok" and done.notes == ("seed_not_applied", "logprobs_not_applied")


def test_a_model_without_temperature_costs_one_adapted_call() -> None:
    with StrictServer(refuses=("temperature",)) as server:
        done = complete(model(server.url), call())
        assert len(server.requests) == 2
    assert (done.status, done.attempts, done.notes) == ("ok", 2, ("temperature_not_applied",))


def test_temperature_stays_where_only_one_sampler_is_allowed() -> None:
    both = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": both}}
    with StrictServer(Fault("status", 400, body)) as server:
        done = complete(model(server.url), call(top_p=0.5))
        assert "temperature" in server.requests[-1].body and "top_p" not in server.requests[-1].body
    assert done.notes == ("top_p_not_applied",)


def test_a_prompt_of_system_text_alone_becomes_a_user_turn() -> None:
    with StrictServer() as server:
        complete(model(server.url), Call("anthropic/x", (message("system", "All of it."),)))
        body = server.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "All of it."}] and "system" not in body


def test_an_overloaded_endpoint_is_tried_again() -> None:
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with StrictServer(Fault("status", 529, busy)) as server:
        done = complete(model(server.url), call())
    assert (done.status, done.attempts, done.notes) == ("ok", 2, ("fault:http_529",))


def test_the_base_url_may_or_may_not_end_in_v1() -> None:
    with StrictServer() as server:
        assert complete(model(server.url), call()).status == "ok"
        assert complete(model(server.url.removesuffix("/v1") + "/"), call()).status == "ok"


def test_a_missing_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        complete(AnthropicModel("anthropic/claude-x", "claude-x"), call())


def test_it_offers_no_log_probabilities() -> None:
    m = AnthropicModel("anthropic/claude-x", "claude-x")
    assert isinstance(m, Provider) and not isinstance(m, Weighs) and m.access == Access.SCORE


@pytest.mark.parametrize("usage", [None, "none", {"input_tokens": "17"}, {"input_tokens": {}, "output_tokens": None}])
def test_bookkeeping_of_another_shape_never_loses_a_paid_answer(usage: object) -> None:
    done = model("http://127.0.0.1:9")._answer({"content": [{"type": "text", "text": "7"}], "usage": usage}, 0.1)
    assert (done.status, done.text) == ("ok", "7")
    assert done.usage.prompt == (17 if usage == {"input_tokens": "17"} else 0)
