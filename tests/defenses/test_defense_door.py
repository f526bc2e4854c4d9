from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

import pytest

from robustjudge.defenses import library
from robustjudge.errors import ConfigError, UnknownName


@dataclass(frozen=True)
class Point:
    name: str
    value: str = "other.package:Thing"

    def load(self) -> type:
        return library.BUILT["sandwich"]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    library.known.cache_clear()
    yield
    library.known.cache_clear()


def test_a_defense_of_another_package_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: [Point("house")] if group == library.GROUP else [])
    assert "house" in library.defense_names()
    assert library.defense_of("house", {"where": "both"}) == library.defense_of("sandwich", {"where": "both"})


@pytest.mark.parametrize("name", ["sandwich", "D6"])
def test_a_name_that_is_taken_is_an_error_naming_both(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: [Point(name)])
    with pytest.raises(ConfigError, match=r"robustjudge.* and other\.package:Thing"):
        library.known()


def test_an_unknown_defense_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="sandwich"):
        library.defense_of("sandwhich", {})
