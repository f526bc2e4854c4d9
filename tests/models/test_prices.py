"""Prices: dated, sourced, overridable; unknown is None."""

from __future__ import annotations

from pathlib import Path

import pytest

from robustjudge.errors import ConfigError
from robustjudge.models.prices import PriceTable, cost, table
from robustjudge.nouns import Usage


def test_known_prices() -> None:
    assert cost(Usage(1_000_000, 1_000_000), "openai/gpt-4o") == pytest.approx(12.5)
    assert cost(Usage(1_000_000, 0, cached=400_000), "openai/gpt-4o") == pytest.approx(0.6 * 2.5 + 0.4 * 1.25)
    assert cost(Usage(1000, 10), "gpt-4o-2024-08-06") == cost(Usage(1000, 10), "openai/gpt-4o")
    assert cost(Usage(1000, 10), "claude-sonnet-4-5-20250929") == pytest.approx(0.003 + 0.00015)


def test_a_long_prompt_costs_its_own_price_for_the_whole_call() -> None:
    assert cost(Usage(100_000, 0), "anthropic/claude-haiku-5-5") == pytest.approx(0.01)
    assert cost(Usage(100_001, 1000), "anthropic/claude-haiku-5-5") == pytest.approx(0.0500005 + 0.0025)
    assert table().highest("anthropic/claude-haiku-5-5") == (0.5, 2.5)


def test_unknown_is_none_and_local_is_free() -> None:
    assert cost(Usage(10, 10), "openai/gpt-99") is None
    assert cost(Usage(10, 10), "http://h/v1#mine") is None
    assert table().highest("openai/gpt-99") is None
    for name in ("llamacpp/smollm2", "hf//m", "scripted/noisy", "recorded/x.jsonl"):
        assert cost(Usage(10, 10), name) == 0.0


def test_a_mini_is_not_priced_as_its_big_sister() -> None:
    assert cost(Usage(1_000_000), "openai/gpt-4o-mini") == pytest.approx(0.15)
    assert cost(Usage(1_000_000), "openai/gpt-4o-audio") is None


def test_every_entry_is_dated_and_sourced() -> None:
    for p in table().prices:
        assert p.source.startswith("https://") and p.date[:2] == "20"
        assert 0 < p.input < p.output and (p.cached is None or p.cached < p.input)
    assert len({p.model for p in table().prices}) == len(table().prices)


def test_a_user_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    entry = 'input = 1\noutput = 2.0\ndate = "2026-11"\nsource = "our contract"\n'
    file.write_text(f'[[price]]\nmodel = "gpt-4o"\n{entry}\n[[price]]\nmodel = "gpt-4o-2024-08-06"\n{entry}')
    prices = table(file)
    assert prices.cost(Usage(1_000_000, 1_000_000), "openai/gpt-4o") == 3.0
    assert prices.cost(Usage(1_000_000), "openai/gpt-4o-mini") == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[price]\n", "prices.toml"),
        ('[[price]]\nmodel = "m"\ninputs = 1\n', "unknown key 'inputs'"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 2\ndate = "d"\n', "'source' is missing"),
        ('[[price]]\nmodel = "m"\ninput = -1\noutput = 2\ndate = "d"\nsource = "s"\n', "price 1 \\(m\\): input"),
        ('[[price]]\nmodel = "m"\ninput = nan\noutput = 2\ndate = "d"\nsource = "s"\n', "input"),
        ('[[price]]\nmodel = "m"\ninput = true\noutput = 2\ndate = "d"\nsource = "s"\n', "input"),
    ],
)
def test_a_bad_file_names_the_entry(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        table(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        table(tmp_path / "none.toml")


def test_an_empty_table_knows_nothing() -> None:
    assert PriceTable(()).cost(Usage(1), "openai/gpt-4o") is None


def test_the_price_of_a_models_settings_wins() -> None:
    prices = table().with_price("http://h/v1#org/Mine", (1.0, 2.0)).with_price("openai/gpt-4o", (0.0, 0.0))
    assert prices.cost(Usage(1_000_000, 1_000_000), "http://h/v1#org/Mine") == 3.0
    assert prices.cost(Usage(1_000_000, 1_000_000), "gpt-4o-2024-08-06") == 0.0
