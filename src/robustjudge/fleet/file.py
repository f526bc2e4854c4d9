"""The fleet file: which judges there are, by which policy each is decided, and who is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from robustjudge.config.files import read_yaml, validated
from robustjudge.config.schema import Strict
from robustjudge.errors import ConfigError


class Member(Strict):
    """One configuration of the fleet; relative paths are relative to the fleet file."""

    name: str = Field(
        min_length=1, max_length=60, description="name on the status page and part of the run folders' place"
    )
    config: str = Field("robustjudge.yaml", description="configuration with the judge (or judges)")
    policy: str = Field("", description="policy file (default: the configuration's own, else strict)")
    waivers: str = Field("", description="file of accepted risks")
    baseline: str = Field("", description="run folder of the release to compare with")
    profile: str = Field("", description="judge package whose expiry is watched")
    judge: str = Field("", description="the one judge to run, where the configuration has several")


class Fleet(Strict):
    """The whole file."""

    judges: list[Member] = Field(min_length=1, description="the members of the fleet")
    alerts: list[str] = Field(
        default_factory=list, description="webhook or Apprise addresses; ${VARIABLE} stands for a secret one"
    )
    expiry_days: int = Field(14, ge=0, description="days before the end of a waiver or judge package that it is told")


def read_fleet(path: Path) -> Fleet:
    """The fleet of a YAML file.  Raises :class:`ConfigError` for a fault, with the key and the nearest known one."""
    data: Any = read_yaml(path)
    fleet: Fleet = validated(Fleet, data, str(path))
    seen: dict[str, str] = {}
    for m in fleet.judges:
        other = seen.setdefault(place(m.name), m.name)
        if other is not m.name:
            raise ConfigError(
                f"{path}: the names {other!r} and {m.name!r} lead to one folder; every member needs its own"
            )
    return fleet


def place(name: str) -> str:
    """The folder of a member under the output folder: letters, digits and dashes of its name."""
    flat = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
    return "-".join(filter(None, flat.split("-")))[:40] or "judge"
