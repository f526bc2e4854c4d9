"""What a call costs: a dated, sourced, overridable price table.  An unknown price is ``None``, never 0."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.models.registry import LOCAL, ModelName, parse_name
from robustjudge.nouns import Usage

_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million ``input``, ``cached`` input and ``output`` tokens; ``over_*`` hold for the whole of a call
    whose prompt exceeds ``over`` tokens.  ``date`` and ``source`` say when and where the provider stated it."""

    model: str
    input: float
    output: float
    date: str
    source: str
    cached: float | None = None
    over: int | None = None
    over_input: float | None = None
    over_cached: float | None = None
    over_output: float | None = None

    def cost(self, usage: Usage) -> float:
        """USD for one call.  Cached tokens without a price of their own cost as much as fresh ones."""
        long = self.over is not None and usage.prompt > self.over
        new = self.over_input if long and self.over_input is not None else self.input
        out = self.over_output if long and self.over_output is not None else self.output
        old = self.over_cached if long else self.cached
        cached = min(usage.cached, usage.prompt)
        fresh = usage.prompt - cached
        return (fresh * new + cached * (old if old is not None else new) + usage.completion * out) / 1e6


_FREE = Price("", 0.0, 0.0, "", "runs on your own machine")


@dataclass(frozen=True)
class PriceTable:
    """Prices by model name; the first entry of a name wins."""

    prices: tuple[Price, ...]

    def price(self, model: str) -> Price | None:
        """The price of ``provider/model`` or of a resolved model name; ``None`` is unknown.  Models on this machine
        cost nothing; a dated snapshot costs what its undated name costs unless it has an entry of its own."""
        parsed = _parsed(model)
        if parsed is not None and parsed.provider in LOCAL:
            return _FREE
        name = _short(model)
        return self._by_name.get(name) or self._by_name.get(_SNAPSHOT.sub("", name))

    @cached_property
    def _by_name(self) -> dict[str, Price]:
        out: dict[str, Price] = {}
        for p in self.prices:
            out.setdefault(p.model.lower(), p)
        return out

    def cost(self, usage: Usage, model: str) -> float | None:
        """USD of one call, or ``None`` where the price is unknown."""
        price = self.price(model)
        return None if price is None else price.cost(usage)

    def with_price(self, model: str, price: tuple[float, float]) -> PriceTable:
        """The table with ``price`` (USD per million prompt and completion tokens) for ``model``, as its settings say."""
        own = Price(_short(model), price[0], price[1], "as configured", "the settings of this model")
        return PriceTable((own, *self.prices))

    def highest(self, model: str) -> tuple[float, float] | None:
        """USD per million prompt and completion tokens at most: what a hard cap on the cost has to reckon with."""
        price = self.price(model)
        if price is None:
            return None
        return max(price.input, price.over_input or 0.0), max(price.output, price.over_output or 0.0)


def _parsed(model: str) -> ModelName | None:
    try:
        return parse_name(model)
    except ConfigError:  # a resolved name, without its provider
        return None


def _short(model: str) -> str:
    """The last part of a model's name, lower case."""
    parsed = _parsed(model)
    return (model if parsed is None else parsed.model).rpartition("/")[2].lower()


def table(path: str | Path | None = None) -> PriceTable:
    """The shipped price table, with the entries of the TOML file ``path`` before them."""
    shipped = read(files("robustjudge.models").joinpath("prices.toml").read_text("utf-8"), "prices.toml")
    if path is None:
        return PriceTable(shipped)
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"the price file {path} cannot be read: {fault}") from None
    return PriceTable(read(text, str(path)) + shipped)


def read(text: str, where: str) -> tuple[Price, ...]:
    """The entries of a price file; each error names the file and the entry."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{where}: {fault}") from None
    known = {f.name for f in fields(Price)}
    needed = {"model", "input", "output", "date", "source"}
    out = []
    for i, row in enumerate(data.get("price", []), 1):
        if unknown := sorted(set(row) - known):
            raise ConfigError(f"{where}, price {i}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
        if missing := sorted(needed - set(row)):
            raise ConfigError(f"{where}, price {i} ({row.get('model', 'no model')}): {missing[0]!r} is missing")
        out.append(_price(row, f"{where}, price {i} ({row['model']})"))
    return tuple(out)


def _price(row: dict[str, Any], where: str) -> Price:
    for name, value in row.items():
        if name in ("model", "date", "source"):
            if not isinstance(value, str) or not value:
                raise ConfigError(f"{where}: {name} must be text")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            raise ConfigError(f"{where}: {name} must be a number of 0 or more")
    return Price(**row)


@lru_cache(maxsize=1)
def _shipped() -> PriceTable:
    return table()


def cost(usage: Usage, model: str, prices: PriceTable | None = None) -> float | None:
    """USD of one call by ``prices`` (default: the shipped table); ``None`` where the price is unknown."""
    return (prices or _shipped()).cost(usage, model)
