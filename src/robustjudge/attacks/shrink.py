"""Shrinking: reduce a successful attacked text to a shortest that still flips the verdict, for a regression case.

Delta debugging (Zeller and Hildebrandt, 2002, "ddmin") over the payload's words, then its characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robustjudge.asks import Score
from robustjudge.attacks.base import Exhausted, Split, split
from robustjudge.attacks.search import worths

_UNITS = re.compile(r"\s*(?:[\u3400-\u9fff]|[^\s\u3400-\u9fff]+)|\s+$")


@dataclass(frozen=True)
class Shrunk:
    """``text`` still has worth >= the goal when ``flips``; ``minimal`` means that no single unit can be left out."""

    text: str
    flips: bool
    minimal: bool
    queries: int


@dataclass
class _Search:
    parts: Split
    goal: float
    queries: int = 0

    async def first(self, payloads: Sequence[str]) -> int | None:
        """The index of the first payload that still flips, asked in one batch."""
        feedback = worths(await Score(tuple(self.parts.around(p) for p in payloads)))
        self.queries += len(feedback)
        return next((i for i, worth in enumerate(feedback) if worth >= self.goal - 1e-9), None)

    async def ddmin(self, units: list[str], keep: Callable[[list[str]], None]) -> None:
        """Leave out ever finer chunks while the rest still flips; ``keep`` is told of every success."""
        n = 2
        while units:
            size = -(-len(units) // n)
            rests = [units[:i] + units[i + size :] for i in range(0, len(units), size)]
            found = await self.first(["".join(r) for r in rests])
            if found is not None:
                units = rests[found]
                keep(units)
                n = max(2, n - 1)
            elif size == 1:
                return
            else:
                n = min(len(units), 2 * n)


async def shrink(response: str, attacked: str, goal: float = 1.0, characters: int = 80) -> Shrunk:
    """The shortest text found that still reaches ``goal``; the weak response itself is never changed.

    ``response`` is the weak response, so that only what was added (or, for a rewrite, the whole text) is reduced.
    A remainder of at most ``characters`` characters is reduced by characters as well.  Ends early when the budget does;
    what was reached by then still flips.
    """
    search = _Search(split(response, attacked), goal)
    units = _UNITS.findall(search.parts.payload) or [search.parts.payload]
    held = list(units)
    minimal = False

    def keep(found: list[str]) -> None:
        held[:] = found

    flips = False
    try:
        flips = await search.first([search.parts.payload]) is not None
        if not flips:
            return Shrunk(attacked, False, False, search.queries)
        await search.ddmin(units, keep)
        if len("".join(held)) <= characters:
            await search.ddmin(list("".join(held)), keep)
        minimal = True
    except Exhausted:
        pass  # what is held was seen to flip
    return Shrunk(search.parts.around("".join(held)) if flips else attacked, flips, minimal, search.queries)
