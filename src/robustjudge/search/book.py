"""What has been observed of which prompt: each (prompt, item, family) is asked once and charged before it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from robustjudge.errors import PlanError
from robustjudge.steps import Steps, together

Config = tuple[int, ...]
"""A prompt of the grid: the index of the option chosen for each component."""

Pair = tuple[str, str]
"""An item (cases that belong together) and an attack family."""

Objective = Literal["worst", "cvar"]


@dataclass(frozen=True, slots=True)
class Result:
    """What one prompt did on one item under one attack family; every share is a mean over the item's cases and orders.

    ``right``: share of cases where the clean judge preferred the reference in every order (pointwise: scored it higher).
    ``won``: share of orders that the attacked text won (pointwise: its score rose by ``tau``).  ``published``: share that
    did not go to the reference (P-ASR; pointwise: whose score rose at all).  ``read`` of ``asked`` verdicts were read.
    ``steady``: share of cases whose clean verdict names one candidate in every order (pointwise: 1).
    """

    item: str
    family: str
    right: float
    won: float
    published: float
    read: int
    asked: int
    steady: float = 1.0


Evaluate = Callable[[Config, Sequence[Pair]], Steps[tuple[Result, ...]]]
"""Steps that judge the given pairs with a prompt and answer in their order."""


class Spent(Exception):
    """The next evaluation does not fit the budget of judge calls."""


@dataclass
class Book:
    """Answers by (prompt, item, family), and the judge calls that they were charged.

    ``cost``: judge calls for one text of one case (2: both orders).  ``clean``: judge calls for the clean verdicts of
    one case (default: ``cost``); an item's are charged with its first family.  ``cases``: how many cases an item holds
    (1 where it is not named).
    """

    evaluate: Evaluate
    cost: int = 2
    budget: int | None = None
    cases: Mapping[str, int] = field(default_factory=dict)
    spent: int = 0
    clean: int | None = None
    _held: dict[Config, dict[Pair, Result]] = field(default_factory=dict)

    def price(self, config: Config, pairs: Iterable[Pair]) -> int:
        """Judge calls that these pairs would cost now."""
        held = self._held.get(config, {})
        seen = {item for item, _ in held}
        new = [p for p in dict.fromkeys(pairs) if p not in held]
        fresh = {item for item, _ in new} - seen
        clean = self.cost if self.clean is None else self.clean
        return self.cost * sum(self.cases.get(i, 1) for i, _ in new) + clean * sum(self.cases.get(i, 1) for i in fresh)

    async def fill(self, configs: Iterable[Config], items: Sequence[str], families: Sequence[str]) -> None:
        """Ask for what is not held yet, all prompts side by side.  Raises :class:`Spent`, with nothing asked, when it
        does not fit."""
        wanted = {c: [(i, f) for i in items for f in families] for c in dict.fromkeys(configs)}
        total = sum(self.price(c, pairs) for c, pairs in wanted.items())
        if self.budget is not None and self.spent + total > self.budget:
            raise Spent(f"{total} calls do not fit into the {self.budget - self.spent} that are left")
        self.spent += total
        asked = []
        for c, pairs in wanted.items():
            held = self._held.setdefault(c, {})
            missing = [p for p in dict.fromkeys(pairs) if p not in held]
            if missing:
                asked.append((c, missing))
        replies: tuple[tuple[Result, ...], ...] = await together(self.evaluate(c, missing) for c, missing in asked)
        for (c, missing), results in zip(asked, replies, strict=True):
            for pair, result in zip(missing, results, strict=True):
                if (result.item, result.family) != pair:
                    raise PlanError(f"the evaluation answered {result.item}/{result.family} where {pair} was asked")
                self._held[c][pair] = result

    def result(self, config: Config, item: str, family: str) -> Result:
        """One observation."""
        return self._held[config][item, family]

    def results(self, config: Config, items: Iterable[str], families: Sequence[str]) -> tuple[Result, ...]:
        """Every observation of a prompt on these items and families, in order."""
        return tuple(self.result(config, i, f) for i in items for f in families)

    def column(self, config: Config, items: Sequence[str], families: Sequence[str], name: str = "won") -> list[float]:
        """For each item, the mean over ``families`` of one field."""
        held: Mapping[Any, Result] = self._held[config]
        return [sum(getattr(held[i, f], name) for f in families) / len(families) for i in items]


def tail(n: int, objective: Objective) -> int:
    """Over how many of ``n`` families the objective averages: one (``worst``) or the worse half (``cvar``, at 0.5)."""
    return 1 if objective == "worst" else ceil(n / 2)


def level(means: Sequence[float], objective: Objective) -> float:
    """The objective of the families' mean win rates: the largest, or the mean of the larger half."""
    k = tail(len(means), objective)
    return sum(sorted(means, reverse=True)[:k]) / k
