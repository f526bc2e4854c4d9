"""Settings hold no secret and refuse nonsense."""

from __future__ import annotations

import pytest

from robustjudge import spec
from robustjudge.errors import ConfigError
from robustjudge.models.base import Settings, bare, expand, settings_from


@pytest.mark.parametrize(
    "options",
    [
        {"headers": (("Authorization", "Bearer abc"),)},
        {"headers": (("X-Api-Key", "abc"),)},
        {"query": (("api_key", "abc"),)},
        {"base_url": "https://me:pw@host/v1"},
        {"proxy": "http://me:pw@host:3128"},
        {"timeout": 0.0},
        {"max_concurrency": 0},
        {"rpm": 0.0},
        {"tpm": -1.0},
    ],
)
def test_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Settings(**options)  # type: ignore[arg-type]


def test_references_are_allowed_and_read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(
        headers=(("Authorization", "Bearer ${TEAM}"),), proxy="http://me:${PW}@host", query=(("v", "1"),)
    )
    monkeypatch.setenv("TEAM", "t0p")
    assert expand(settings.headers[0][1]) == "Bearer t0p"
    assert "t0p" not in spec.canonical(spec.dump(settings))
    assert spec.load(spec.dump(settings)) == settings
    monkeypatch.delenv("TEAM")
    with pytest.raises(ConfigError, match="TEAM"):
        expand("${TEAM}")


def test_bare_urls() -> None:
    assert bare("https://me:pw@host:8080/v1/?key=abc#x") == "https://host:8080/v1"


def test_from_a_configuration_file() -> None:
    data = {"base_url": "https://h/v1", "headers": {"X-A": "1"}, "price": [1, 2], "rpm": 30, "logprobs": None}
    assert settings_from(data) == Settings("https://h/v1", headers=(("X-A", "1"),), price=(1.0, 2.0), rpm=30)
    assert settings_from({"rpm": 5}, Settings(timeout=3.0)) == Settings(timeout=3.0, rpm=5)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"base-url": "x"}, "Did you mean base_url"),
        ({"timeout": "long"}, "timeout must be of type float"),
        ({"timeout": True}, "timeout"),
        ({"max_concurrency": 2.5}, "max_concurrency"),
        ({"headers": ["a"]}, "mapping"),
        ({"price": [1]}, "two numbers"),
        ({"headers": {"Authorization": "Bearer x"}}, "literal credential"),
    ],
)
def test_a_wrong_configuration_is_told(data: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        settings_from(data)
