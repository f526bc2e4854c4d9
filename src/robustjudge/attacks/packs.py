"""Payload packs: TOML files of adversarial test texts, keyed by language and protocol.

A pack is about ten lines: ``id, name, family, category, severity, placement, separator, source, held_out`` and one
table per language holding a list of paraphrases per protocol (``any`` serves all of them).  ``{top}``, ``{low}``,
``{high}``, ``{criteria}``, ``{verdict}`` and ``{close}`` are filled from the target; ``{H1}`` is the payload of
pack H1 in the same wording number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from robustjudge.attacks.base import CHANNELS, PROTOCOLS, Channel, ProtocolKind
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.nouns import Severity

SLOT = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
FACTS = ("top", "low", "high", "criteria", "verdict", "close")
LANGUAGES = ("en", "zh", "de")
Group = Literal["all", "train", "held_out"]


@dataclass(frozen=True)
class Variant:
    """What one variant of a pack changes; an unset field keeps the pack's own value.

    ``before`` and ``after`` wrap the payload; ``close`` is which closing marks ``{close}`` gives (``real``,
    ``fuzzed`` or none); ``verdict`` is ``top`` or ``tie``; ``use`` takes the paraphrases of another pack;
    ``dress`` disguises the payload.
    """

    placement: str = ""
    separator: str | None = None
    before: str = ""
    after: str = ""
    close: str = ""
    verdict: str = "top"
    use: str = ""
    dress: str = ""


@dataclass(frozen=True)
class Pack:
    """One payload pack.  ``number``: whether its default wording names the top number of the scale."""

    id: str
    name: str
    family: str
    category: str
    severity: Severity
    placement: Channel
    separator: str
    source: str
    held_out: int
    number: bool
    variants: Mapping[str, Variant] = field(hash=False)
    texts: Mapping[str, Mapping[str, tuple[str, ...]]] = field(hash=False)

    def paraphrases(
        self, language: str, protocol: ProtocolKind, number: bool = False, group: Group = "all"
    ) -> tuple[str, ...]:
        """The wordings for a protocol, unfilled; ``number`` prefers those that name the top number."""
        table = self.texts[language]
        key = f"{protocol}_number"
        found = table[key] if number and key in table else table.get(protocol) or table.get("any", ())
        cut = len(found) - self.held_out
        return found if group == "all" else found[:cut] if group == "train" else found[cut:]

    def speaks(self, language: str) -> str:
        """``language`` if the pack has it, else ``en``."""
        return language if language in self.texts else "en"


_OPTIONAL: dict[str, Any] = {"separator": " ", "placement": "append", "held_out": 2, "number": False, "source": ""}
_NEEDED = ("id", "name", "family", "category", "severity")


def read(text: str, origin: str) -> Pack:
    """Parse one pack.  Raises :class:`ConfigError` naming ``origin`` and what is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{origin}: not valid TOML: {fault}") from None
    if missing := [k for k in _NEEDED if k not in data]:
        raise ConfigError(f"{origin}: payload pack lacks {', '.join(missing)}")
    data = {**_OPTIONAL, **data}
    if data["placement"] not in CHANNELS:
        raise ConfigError(f"{origin}: placement {data['placement']!r} is none of {', '.join(CHANNELS)}")
    if data["severity"] not in ("low", "medium", "high", "critical"):
        raise ConfigError(f"{origin}: severity {data['severity']!r} is none of low, medium, high, critical")
    variants = data.pop("variants", {})
    texts = {k: data.pop(k) for k in tuple(data) if isinstance(data[k], dict)}
    if "en" not in texts:
        raise ConfigError(f"{origin}: payload pack has no English table [en], which every other language falls back to")
    known = {*PROTOCOLS, "any", *(f"{p}_number" for p in PROTOCOLS)}
    for language, table in texts.items():
        for key, listed in table.items():
            if key not in known:
                raise UnknownName(f"protocol in {origin} [{language}]", key, tuple(known))
            if not isinstance(listed, list) or not all(isinstance(t, str) for t in listed):
                raise ConfigError(f"{origin}: [{language}] {key} must be a list of texts")
            for slot in {s for t in listed for s in SLOT.findall(t)}:
                if slot not in FACTS and not re.fullmatch(r"[A-Z][A-Z0-9]*[0-9](_[a-z]+)?|bands", slot):
                    raise UnknownName(f"slot in {origin} [{language}]", slot, FACTS)
        if lacking := [p for p in PROTOCOLS if p not in table and "any" not in table]:
            raise ConfigError(f"{origin}: [{language}] has no texts for {', '.join(lacking)}")
    try:
        return Pack(
            **data,
            variants={k: Variant(**v) for k, v in variants.items()},
            texts={lang: {k: tuple(v) for k, v in table.items()} for lang, table in texts.items()},
        )
    except TypeError as fault:
        raise ConfigError(f"{origin}: {fault}") from None


_ADDED: dict[str, Pack] = {}


def add(pack_: Pack) -> None:
    """Make a user's pack known under its id (domain-specific vectors); a taken id is an error."""
    if pack_.id in _shipped() or _ADDED.get(pack_.id, pack_) != pack_:
        raise ConfigError(f"payload pack {pack_.id!r} exists already; choose another id")
    _ADDED[pack_.id] = pack_


@cache
def _shipped() -> Mapping[str, Pack]:
    folder = files("robustjudge.attacks") / "payloads"
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    packs = [read(f.read_text(encoding="utf-8"), f.name) for f in found]
    return {p.id: p for p in packs}


def pack(id_: str) -> Pack:
    """The pack with this id.  Raises :class:`~robustjudge.errors.UnknownName`."""
    found = _ADDED.get(id_) or _shipped().get(id_)
    if found is None:
        raise UnknownName("payload pack", id_, pack_ids())
    return found


def pack_ids() -> tuple[str, ...]:
    """Ids of all packs, shipped and added, sorted."""
    return tuple(sorted({*_shipped(), *_ADDED}))
