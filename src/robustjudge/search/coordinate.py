"""Algorithm 1 of the RobustJudge paper as published: coordinate ascent over the components of a judge prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from robustjudge.errors import ConfigError
from robustjudge.search.book import Config
from robustjudge.spec import register
from robustjudge.steps import Steps, together

Value = Callable[[Config], Steps[float]]
"""The evaluation function E: higher is better."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where the ascent ended, how often E was evaluated, and the value after each sweep (the start's first)."""

    config: Config
    value: float
    sweeps: int
    evaluations: int
    trace: tuple[float, ...]
    stopped: Literal["unchanged", "limit"]


@register("coordinate_ascent")
@dataclass(frozen=True)
class CoordinateAscent:
    """Hold all components but one, take its best option, go on to the next; at most ``sweeps`` times through.

    Updates are used at once (Gauss-Seidel) and ties keep the incumbent.  It stops when fewer than ``eps`` components
    changed in a sweep (configurations are categorical: the norm counts changed components).  E is evaluated
    ``sweeps * sum |C_i| + 1`` times: the incumbent's own option is evaluated again, as published.  There is no
    constraint, no held-out data and no notion of noise; it is here to compare with.
    """

    sweeps: int = 3
    eps: int = 1

    def __post_init__(self) -> None:
        if self.sweeps < 1 or self.eps < 1:
            raise ConfigError("coordinate ascent needs at least one sweep and eps >= 1")

    async def __call__(self, start: Config, sizes: Sequence[int], value: Value) -> Ascent:
        """The configuration found from ``start``; ``sizes`` are the numbers of options."""
        here, best = start, await value(start)
        evaluations, trace = 1, [best]
        for sweep in range(1, self.sweeps + 1):
            before = here
            for i, size in enumerate(sizes):
                tried = [(*here[:i], option, *here[i + 1 :]) for option in range(size)]
                values: tuple[float, ...] = await together(value(c) for c in tried)
                evaluations += size
                best = values[here[i]]
                for config, found in zip(tried, values, strict=True):
                    if found > best:
                        here, best = config, found
            trace.append(best)
            if sum(a != b for a, b in zip(before, here, strict=True)) < self.eps:
                return Ascent(here, best, sweep, evaluations, tuple(trace), "unchanged")
        return Ascent(here, best, self.sweeps, evaluations, tuple(trace), "limit")
