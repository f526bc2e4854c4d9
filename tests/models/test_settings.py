"""Settings hold no secret and refuse nonsense."""

from __future__ import annotations

import pytest

from robustjudge import spec
from robustjudge.errors import ConfigError
from robustjudge.models.base import Settings, bare, expand


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
