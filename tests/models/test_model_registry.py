"""Names of models, lazy back ends, aliases."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import ConfigError, UnknownName
from robustjudge.models.base import Settings
from robustjudge.models.registry import ModelName, is_alias, open_model, parse_name


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai/gpt-5-mini", "openai", "gpt-5-mini"),
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        ("openai:/gpt-5-mini", "openai", "gpt-5-mini"),
        ("OpenAI/gpt-5-mini", "openai", "gpt-5-mini"),
        ("openai/meta-llama/Llama-3.1-8B", "openai", "meta-llama/Llama-3.1-8B"),
        ("openai/ft:gpt-4o:me::abc", "openai", "ft:gpt-4o:me::abc"),
        ("llamacpp/smollm2", "llamacpp", "smollm2"),
        ("llamacpp//models/a.gguf", "llamacpp", "/models/a.gguf"),
        ("llamacpp:/models/a.gguf", "llamacpp", "/models/a.gguf"),
        ("hf//models/a", "hf", "/models/a"),
        ("scripted/noisy?seed=3", "scripted", "noisy?seed=3"),
    ],
)
def test_names(text: str, provider: str, model: str) -> None:
    assert parse_name(text) == ModelName(provider, model)
    assert parse_name(str(parse_name(text))) == parse_name(text)


def test_urls() -> None:
    name = parse_name("http://user:${PW}@host:8000/v1#org/model")
    assert (name.provider, name.model, name.base_url) == ("http", "org/model", "http://user:${PW}@host:8000/v1")
    assert str(name) == "http://host:8000/v1#org/model"


@pytest.mark.parametrize("text", ["", "gpt-4o", "openai/", "openai:", "/x", "http://host/v1", "http://host/v1#", " /x"])
def test_malformed_names_say_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_name(text)


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_name_or_a_config_error(text: str) -> None:
    try:
        name = parse_name(text)
    except ConfigError:
        return
    assert name.provider and name.model


def test_unknown_provider() -> None:
    with pytest.raises(UnknownName, match="Did you mean openai"):
        open_model("opanai/gpt-4o")


def test_the_classes_behind_names() -> None:
    assert type(open_model("openai/gpt-4o")).__name__ == "HttpModel"
    assert type(open_model("anthropic/claude-sonnet-4-5")).__name__ == "AnthropicModel"
    local = open_model("http://127.0.0.1:8000/v1#m", Settings(revision="r"))
    assert local.name == "http://127.0.0.1:8000/v1#m"
    assert local.endpoint == "http://127.0.0.1:8000/v1"  # type: ignore[attr-defined]
    assert open_model("scripted/perfect").name


def test_opening_a_name_needs_no_network_library() -> None:
    code = (
        "import sys, robustjudge.models.registry as r, robustjudge.models.prices, robustjudge.models.families;"
        "r.open_model('openai/gpt-4o');"
        "bad = {'aiohttp', 'torch', 'transformers', 'numpy', 'xllamacpp', 'pydantic'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("openai/gpt-4o", True),
        ("openai/gpt-4o-2024-08-06", False),
        ("openai/chatgpt-4o-latest", True),
        ("openai/gpt-4-0613", False),
        ("openai/gpt-5-mini", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("anthropic/claude-sonnet-4-5-20250929", False),
        ("anthropic/claude-3-5-sonnet-latest", True),
        ("anthropic/claude-opus-4-6", False),
        ("anthropic/claude-opus-5", False),
        ("llamacpp/smollm2", False),
        ("scripted/noisy", False),
        ("http://h/v1#qwen2.5:latest", True),
        ("http://h/v1#my-model", False),
        ("http://h/v1#openai/gpt-4o", True),
    ],
)
def test_aliases(name: str, alias: bool) -> None:
    assert is_alias(name) is alias
