"""Families of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from robustjudge.errors import ConfigError
from robustjudge.models.families import UNKNOWN, family_of, same_family, table


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("openai/gpt-4o-2024-08-06", "gpt"),
        ("openai/o3-mini", "gpt"),
        ("anthropic/claude-opus-5", "claude"),
        ("http://h/v1#anthropic.claude-opus-5", "claude"),
        ("http://h/v1#meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("hf//models/Qwen2.5-7B", "qwen"),
        ("llamacpp//models/SmolLM2-135M-Instruct.Q4.gguf", "smollm"),
        ("llamacpp/smollm2", "smollm"),
        ("prometheus-7b-v2.0", "mistral"),
        ("hf/JudgeLM-7B", "llama"),
        ("scripted/noisy", "scripted"),
        ("openai/some-finetune", UNKNOWN),
        ("deepseek-r1-distill-qwen-7b", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_family(name: str, family: str) -> None:
    assert family_of(name) == family


def test_override_wins() -> None:
    assert family_of("openai/gpt-4o", "Mine") == "mine"


def test_same_family_is_three_valued() -> None:
    assert same_family("gpt", "gpt") is True
    assert same_family("gpt", "claude") is False
    assert (
        same_family("gpt", UNKNOWN) is None and same_family(UNKNOWN, UNKNOWN) is None and same_family("", "gpt") is None
    )


def test_every_family_cites_a_source() -> None:
    for family in table():
        assert family.source.startswith("https://") and family.patterns


def test_a_user_file_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "families.toml"
    file.write_text('[[family]]\nname = "ours"\npatterns = ["gpt-4o*"]\nsource = "we know"\n')
    families = table(str(file))
    assert family_of("openai/gpt-4o", families=families) == "ours"
    assert family_of("openai/gpt-5", families=families) == "gpt"
    file.write_text('[[family]]\nname = "ours"\n')
    table.cache_clear()
    with pytest.raises(ConfigError, match="patterns"):
        table(str(file))
