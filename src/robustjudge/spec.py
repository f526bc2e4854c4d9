"""Specs: what a user composes is a frozen dataclass, written as canonical JSON over registered names.

``dump(Guarded(j, d))`` gives ``{"kind": "guarded", "judge": {...}, "defense": {...}}``; ``load`` builds only
registered classes with validated fields; nothing is ever evaluated.  Built-ins and third parties use the same door:
the entry-point groups ``robustjudge.<kind>s``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from robustjudge.errors import ConfigError, UnknownName

C = TypeVar("C")
T = TypeVar("T")

_BY_NAME: dict[str, type[Any]] = {}
_BY_CLASS: dict[type[Any], str] = {}
_ORIGIN: dict[str, str] = {}


def register(name: str) -> Callable[[type[C]], type[C]]:
    """Class decorator: make a frozen dataclass known under ``name`` for :func:`dump` and :func:`load`.

    Raises :class:`ConfigError` naming both packages when the name is taken.
    """

    def keep(cls: type[C]) -> type[C]:
        taken = _BY_NAME.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ConfigError(f"{name!r} is registered by both {taken.__module__} and {cls.__module__}; rename one")
        _BY_NAME[name] = cls
        _BY_CLASS[cls] = name
        _ORIGIN[name] = cls.__module__.partition(".")[0]
        return cls

    return keep


def names(base: type[Any] | None = None) -> tuple[str, ...]:
    """Registered names, sorted; with ``base``, of its subclasses only."""
    return tuple(sorted(n for n, c in _BY_NAME.items() if base is None or issubclass(c, base)))


def name_of(thing: object) -> str:
    """The registered name of an object's class."""
    try:
        return _BY_CLASS[type(thing)]
    except KeyError:
        raise ConfigError(
            f"{type(thing).__name__} is not registered; decorate it with @robustjudge.spec.register('name')"
        ) from None


def dump(thing: Any) -> Any:
    """The JSON form of ``thing``: registered dataclasses become objects with a ``kind``; fields that hold their
    default are left out, so that a new optional field never changes an old key."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (tuple, list)):
        return [dump(x) for x in thing]
    if isinstance(thing, (frozenset, set)):
        return sorted(dump(x) for x in thing)
    if isinstance(thing, Mapping):
        return {str(k): dump(v) for k, v in thing.items()}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        out: dict[str, Any] = {"kind": _BY_CLASS[type(thing)]} if type(thing) in _BY_CLASS else {"kind": name_of(thing)}
        for f in dataclasses.fields(thing):
            value = getattr(thing, f.name)
            if not f.metadata.get("spec", True) or _is_default(f, value):
                continue
            out[f.name] = dump(value)
        return out
    raise ConfigError(f"{type(thing).__name__} has no JSON form; specs hold frozen dataclasses, text and numbers")


def _is_default(f: dataclasses.Field[Any], value: Any) -> bool:
    if f.default is not dataclasses.MISSING:
        return bool(value == f.default) and type(value) is type(f.default)
    if f.default_factory is not dataclasses.MISSING:
        return bool(value == f.default_factory())
    return False


def load(data: Any) -> Any:
    """Build what :func:`dump` wrote.  Unknown kinds and fields are errors with the nearest known name."""
    if isinstance(data, list):
        return tuple(load(x) for x in data)
    if not isinstance(data, Mapping):
        return data
    if "kind" not in data:
        return {k: load(v) for k, v in data.items()}
    kind = data["kind"]
    cls = _BY_NAME.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UnknownName("kind", str(kind), tuple(_BY_NAME))
    fields = {f.name for f in dataclasses.fields(cls)}
    given = {k: load(v) for k, v in data.items() if k != "kind"}
    for key in given:
        if key not in fields:
            raise UnknownName(f"field of {kind}", key, tuple(fields))
    try:
        return cls(**given)
    except TypeError as fault:
        raise ConfigError(f"{kind}: {fault}") from None


def canonical(data: Any) -> str:
    """JSON with sorted keys, no spaces, no NaN: equal data give equal bytes."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*texts: str) -> str:
    """A 128-bit content hash of texts, hexadecimal; lengths stand between them, so no two lists run together."""
    joined = "".join([f"{len(t)}:{t}" for t in texts])
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class ByIdentity(Generic[T]):
    """Remembers what was computed of an object, by the object itself: a plan asks for the same few things again and
    again, and hashing a judge's whole prompt to look its hash up would cost more than it saves."""

    def __init__(self, compute: Callable[[Any], T], kept: int = 8192) -> None:
        self._compute = compute
        self._kept = kept
        self._known: dict[int, tuple[Any, T]] = {}

    def __call__(self, thing: Any) -> T:
        found = self._known.get(id(thing))
        if found is None or found[0] is not thing:
            if len(self._known) >= self._kept:
                self._known.clear()
            found = self._known[id(thing)] = (thing, self._compute(thing))
        return found[1]


key: Callable[[Any], str] = ByIdentity(lambda thing: digest(canonical(dump(thing))))
"""The content hash of a spec."""
