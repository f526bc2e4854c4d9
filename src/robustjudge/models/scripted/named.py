"""Scripted judges by name: ``scripted/obedient?words=best,perfect&rate=0.5``."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints
from urllib.parse import parse_qsl

from robustjudge import spec
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.models.scripted.base import Constant, Scripted
from robustjudge.models.scripted.faulty import BadParser, Down, Drifting, NoisyFlip, Refuser, Slow, Truncating
from robustjudge.models.scripted.fooled import Copycat, Echo, Fenced, Gameable, LastInstruction, Obedient
from robustjudge.models.scripted.plain import FirstPosition, LengthBiased, Noisy, Perfect, Table, perfect
from robustjudge.models.scripted.taste import Biased, CitationTruster, MarkdownLover
from robustjudge.models.scripted.whitebox import Additive, Hamming

ZOO: dict[str, type[Scripted]] = {
    spec.name_of(cls()).removeprefix("scripted/"): cls
    for cls in (
        Additive, BadParser, Biased, CitationTruster, Constant, Copycat, Down, Drifting, Echo, Fenced, FirstPosition,
        Gameable, Hamming, LastInstruction, LengthBiased, MarkdownLover, Noisy, NoisyFlip, Obedient, Perfect, Refuser,
        Slow, Table, Truncating,
    )
}  # fmt: skip
"""Every scripted judge by its short name."""


def open_scripted(name: str) -> Scripted:
    """The judge of a name such as ``scripted/noisy``, ``noisy?seed=3`` or ``refuser?rate=0.2&judge=first_position``.

    ``perfect`` by name is right on the built-in cases; for others build it with :func:`perfect`.
    Text lists are separated by commas; ``judge`` is a name of its own (escape its ``?`` and ``&`` as %3F and %26).
    Raises :class:`UnknownName` for an unknown judge or setting and :class:`ConfigError` for a bad value.
    """
    kind, _, query = name.removeprefix("scripted/").partition("?")
    cls = ZOO.get(kind.replace("-", "_"))
    if cls is None:
        raise UnknownName("scripted judge", kind, tuple(ZOO))
    hints = get_type_hints(cls)
    settable = {f.name: hints[f.name] for f in dataclasses.fields(cls)}
    settings: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise ConfigError(f"{name!r}: settings are written ?name=value&name=value") from None
    for key, text in pairs:
        if key not in settable:
            raise UnknownName(f"setting of scripted/{kind}", key, tuple(settable))
        settings[key] = _value(name, key, text, settable[key])
    if cls is Perfect:
        return perfect(builtin(), **settings)
    return cls(**settings)


def _value(name: str, key: str, text: str, wanted: Any) -> Any:
    """``text`` as the field's type."""
    try:
        if wanted is Scripted:
            return open_scripted(text)
        if wanted is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if wanted is int:
            return int(text)
        if wanted in (float, float | None):
            return float(text)
        if wanted == tuple[str, ...]:
            return tuple(w for w in text.split(",") if w)
        if wanted == tuple[float, ...]:
            return tuple(float(w) for w in text.split(","))
        if wanted == tuple[tuple[str, float], ...]:
            return tuple((w.partition(":")[0], float(w.partition(":")[2])) for w in text.split(","))
    except (ValueError, KeyError):
        raise ConfigError(f"{name!r}: {key} cannot be {text!r}") from None
    if wanted == tuple[tuple[str, str], ...]:
        raise ConfigError(f"{name!r}: {key} cannot be written in a name; build the judge in Python")
    return text
