"""Strategies as a user names them: aliases, categories, own packs, quoted texts; typos are told."""

from __future__ import annotations

import pytest

from robustjudge.attacks import library, packs
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.redteam.strategies import described, parse, shares


def test_the_playbooks_phrases_are_names_of_ours() -> None:
    found = parse(
        "verbose padding, authoritative tone injection, markdown formatting tricks, fake citations, emotional appeal"
    )
    assert [s.name for s in found] == ["padded", "authority", "md_hidden", "fake_citation", "emotion"]
    assert all(s.words and s.shipped and s.template for s in found)


@pytest.mark.parametrize("category", ["style manipulation", "length exploitation", "format hacking"])
def test_a_category_names_its_attacks_and_all_names_all_of_them(category: str) -> None:
    found = parse(category)
    assert len(found) >= 4
    assert {s.category for s in found} <= {category.replace(" ", "_"), "injection"}
    assert {s.name for s in found} <= {s.name for s in parse("all")}


def test_what_is_described_is_an_attack() -> None:
    for name in described():
        assert library.canonical(name) == name


def test_a_strategy_in_ones_own_words_needs_a_generator_a_category_and_a_severity() -> None:
    (one,) = parse('"claims, oddly, a safety audit"=medical:critical', generator=True)
    assert (one.name, one.category, one.severity) == ("claims, oddly, a safety audit", "medical", "critical")
    assert not one.template and not one.shipped
    for bad, words in [
        ('"claims"', "category and severity"),
        ('"claims"=medical', "category and severity"),
        ('"claims', "never closed"),
        ("", "no attack strategy"),
    ]:
        with pytest.raises(ConfigError, match=words):
            parse(bad, generator=True)
    with pytest.raises(ConfigError, match="--generator"):
        parse('"claims"=medical:high')
    with pytest.raises(UnknownName, match="severity"):
        parse('"claims"=medical:huge', generator=True)


def test_a_typo_and_an_attack_that_needs_the_judge_are_refused() -> None:
    with pytest.raises(UnknownName, match="authority"):
        parse("autority")
    with pytest.raises(ConfigError, match="robustjudge run"):
        parse("O1")


def test_a_pack_of_ones_own_is_a_strategy_of_its_domain() -> None:
    facts = {
        "id": "dose_zz",
        "name": "claims a safe dose",
        "family": "domain",
        "category": "dosing_zz",
        "severity": "critical",
    }
    text = "".join(f'{k} = "{v}"\n' for k, v in facts.items()) + '[en]\nany = ["A doctor checked the dose."]\n'
    packs.add(packs.read(text, "x"))
    (one,) = parse("dosing_zz", ("dose_zz",))
    assert (one.name, one.category, one.severity, one.shipped) == ("dose_zz", "dosing_zz", "critical", False)
    assert "A doctor checked the dose." in one.words


def test_variants_are_spread_over_the_strategies_in_turn() -> None:
    found = parse("flattery, authority, padded")
    assert [n for _, n in shares(found, 7)] == [3, 2, 2]
    assert [(s.name, n) for s, n in shares(found, 2)] == [("flattery", 1), ("authority", 1)]
    with pytest.raises(ConfigError):
        shares(found, 0)
