"""Families: which pretrained line a model comes from, so that judge and attacker of one line can be warned about."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from robustjudge.errors import ConfigError
from robustjudge.models.registry import parse_name

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Family:
    """One family with the name patterns that belong to it and where that is stated."""

    name: str
    patterns: tuple[str, ...]
    source: str


@lru_cache(maxsize=8)
def table(path: str | None = None) -> tuple[Family, ...]:
    """The shipped families, with those of the TOML file ``path`` before them."""
    shipped = _read(files("robustjudge.models").joinpath("families.toml").read_text("utf-8"), "families.toml")
    if path is None:
        return shipped
    try:
        return _read(Path(path).read_text("utf-8"), path) + shipped
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"the family file {path} cannot be read: {fault}") from None


def _read(text: str, where: str) -> tuple[Family, ...]:
    try:
        rows = tomllib.loads(text).get("family", [])
        return tuple(Family(str(r["name"]), tuple(map(str, r["patterns"])), str(r["source"])) for r in rows)
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{where}: {fault}") from None
    except KeyError as fault:
        raise ConfigError(f"{where}: every family needs name, patterns and source; {fault} is missing") from None


def family_of(model: str, override: str = "", families: tuple[Family, ...] | None = None) -> str:
    """The family of ``provider/model`` (or of a bare model name); ``unknown`` where the table has none.

    ``override`` (the ``family`` of the model's settings) wins.  Scripted models are a family of their own.
    """
    if override:
        return override.lower()
    name = model
    try:
        parsed = parse_name(model)
    except ConfigError:
        pass
    else:
        if parsed.provider == "scripted":
            return "scripted"
        name = parsed.model
    last = name.rstrip("/").rpartition("/")[2].lower()
    for family in table() if families is None else families:
        if any(fnmatchcase(last, pattern) for pattern in family.patterns):
            return family.name
    return UNKNOWN


def same_family(a: str, b: str) -> bool | None:
    """Whether two *families* (answers of :func:`family_of`) are the same; ``None`` where either is unknown."""
    if UNKNOWN in (a, b) or not a or not b:
        return None
    return a == b
