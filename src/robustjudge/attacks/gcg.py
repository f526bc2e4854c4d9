"""O5 GCG: a discrete suffix guided by the embedding gradient; the step that GCG and JudgeDeceiver share.

Source: arXiv 2307.15043, applied to judges in arXiv 2506.09443 section IV-B.  Integers and a seeded generator only;
losses, gradients and spelling are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from math import inf
from random import Random
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.asks import Losses, Sample, Spell, Swaps
from robustjudge.attacks.base import Exhausted, NoCandidate, Target, objective, stem
from robustjudge.attacks.search import Search
from robustjudge.nouns import Access, Budget, Case, Message, message
from robustjudge.steps import Steps

Ids = tuple[int, ...]
Table = tuple[Ids, ...]
GREEDY = 0.5
"""Share of the swaps that are the best-ranked.  Shares of 0 and 1/4 could not be told from it on the embedded model; an
exact gradient wants the best of each position tried."""


@dataclass
class Track:
    """Best suffix so far, and the best loss after each step (never rising)."""

    ids: Ids = ()
    loss: float = inf
    trace: list[float] = field(default_factory=list)

    def offer(self, ids: Ids, loss: float) -> None:
        if loss < self.loss or (not self.ids and loss < inf):
            self.ids, self.loss = ids, loss


def neighbours(
    suffix: Ids, table: Table, width: int, seen: set[Ids], rng: Random, greedy: float = GREEDY
) -> tuple[Ids, ...]:
    """Up to ``width`` single-token swaps of ``suffix`` not seen before, spread evenly over the positions: a share
    ``greedy`` of them the best-ranked, the rest at random among the ranked.  A swap for the same token is never made."""
    out: list[Ids] = []
    order = rng.sample(range(len(suffix)), len(suffix))

    def add(at: int, token: int) -> None:
        swapped = (*suffix[:at], token, *suffix[at + 1 :])
        if token != suffix[at] and swapped not in seen:
            seen.add(swapped)
            out.append(swapped)

    ranked = ((at, table[at][r]) for r in range(max(map(len, table), default=0)) for at in order if r < len(table[at]))
    for at, token in ranked:
        if len(out) >= greedy * width:
            break
        add(at, token)
    for at in islice(cycle(reversed(order)), 4 * width):
        if len(out) >= width:
            return tuple(out)
        if table[at]:
            add(at, rng.choice(table[at]))
    for at, token in ranked:
        if len(out) >= width:
            break
        add(at, token)
    return tuple(out)


def ranked_swaps(suffix: Ids, batch: Sequence[Ids], losses: Sequence[float]) -> dict[int, int]:
    """The best token found for each position that legal single swaps of ``suffix`` change, best position first."""
    out: dict[int, int] = {}
    for value, ids in sorted(zip(losses, batch)):
        at = next(p for p, (a, b) in enumerate(zip(suffix, ids, strict=True)) if a != b)
        if value < inf:
            out.setdefault(at, ids[at])
    return out


def merged(suffix: Ids, swaps: Mapping[int, int]) -> Ids:
    """All of the swaps made at once."""
    return tuple(swaps.get(at, token) for at, token in enumerate(suffix))


def sizes(merge: int) -> tuple[int, ...]:
    """How many of the best swaps are made at once: 2, 4, 8, ... and ``merge`` itself; none for 0."""
    return tuple(sorted({2**i for i in range(1, merge.bit_length()) if 2**i < merge} | {merge})) if merge > 0 else ()


async def descend(
    start: Ids,
    steps: int,
    width: int,
    loss: Callable[[tuple[Ids, ...]], Steps[Sequence[float]]],
    gradient: Callable[[Ids], Steps[Table]],
    track: Track,
    rng: Random,
    merge: int = 0,
    greedy: float = GREEDY,
) -> None:
    """``steps`` rounds of one gradient and ``width`` losses.  The incumbent moves to the best of each round, as
    published; ``track`` keeps the best of all.  With ``merge`` the last losses of a round go to its best swaps made at
    once, see :func:`sizes`."""
    here = start
    seen = {start}
    together = sizes(merge)
    for _ in range(steps):
        scored: list[tuple[float, Ids]] = []

        async def score(batch: tuple[Ids, ...], scored: list[tuple[float, Ids]] = scored) -> None:
            if batch:
                seen.update(batch)
                found = list(zip(await loss(batch), batch))
                scored += found
                for value, ids in found:
                    track.offer(ids, value)

        table = await gradient(here)
        if not any(table) and not track.ids:
            raise NoCandidate("no prompt shows the suffix: over the context limit, or rewritten by a defense")
        batch = neighbours(here, table, width - len(together), seen, rng, greedy)
        if not batch:
            return  # every swap that the gradient offers has been tried
        await score(batch)
        swaps = ranked_swaps(here, batch, [value for value, _ in scored])
        joint = dict.fromkeys(merged(here, dict(islice(swaps.items(), n))) for n in together)
        await score(tuple(ids for ids in joint if ids not in seen))
        track.trace.append(track.loss)
        best, ids = min(scored)
        if best < inf:
            here = ids


async def opening(case: Case, length: int, seed: int) -> Ids:
    """A legal first suffix: the likeliest next token after the response whose repetition survives the text interface."""
    (drawn,) = await Sample("", (prefix(case, ""),), max(16, length), seed)
    repeated = tuple((token,) * length for token in drawn)
    spelled = await Spell("", repeated)
    for ids, text in zip(repeated, spelled):
        if text.strip():
            return ids
    return tuple(drawn[:length])


def prefix(case: Case, suffix: str) -> tuple[Message, ...]:
    """The chat before a searched suffix, as an author would have written it."""
    return (message("user", case.task), message("assistant", stem(case) + suffix))


async def spelled_out(case: Case, track: Track) -> str:
    """The attacked text of the best suffix."""
    if not track.ids:
        raise NoCandidate("no suffix survived the text interface within the budget")
    (text,) = await Spell("", (track.ids,))
    if not text:
        raise NoCandidate("the best suffix does not survive the text interface")
    return stem(case) + text


@spec.register("gcg")
@dataclass(frozen=True)
class GCG(Search):
    """``length`` tokens, ``steps`` rounds of ``width`` single swaps among the ``k`` best per position.

    ``init`` gives the first suffix as token ids; ``merge`` > 0 also tries the best swaps of 2, 4, 8, ...
    up to that many positions at once.
    Losses: ``steps * width``; gradients: ``steps`` (per context and order of the objective).
    """

    length: int = 20
    steps: int = 500
    width: int = 512
    k: int = 256
    merge: int = 0
    init: tuple[int, ...] = ()
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.GRADIENT
    name: ClassVar[str] = "O5"

    family: ClassVar[str] = "optimisation"
    small: ClassVar[Mapping[str, Any]] = {"length": 8, "steps": 10, "width": 16, "k": 32}
    """Quick: L = 8, T = 10, B = 16, k = 32: 160 losses and 10 gradients.

    Reference: L = 20, T = 500, B = 512, k = 256: 256,000 losses and 500 gradients.
    """

    def ceiling(self) -> Budget:
        return Budget(0, 0, self.steps * self.width, self.steps)

    async def __call__(self, case: Case) -> str:
        return await spelled_out(case, await self.search(case))

    async def search(self, case: Case) -> Track:
        """The best suffix and its trace, in token ids."""
        about = objective(stem=stem(case), joint="")
        track = Track()

        async def loss(batch: tuple[Ids, ...]) -> Sequence[float]:
            return await Losses(about, batch)

        async def gradient(suffix: Ids) -> Table:
            return await Swaps(about, suffix, self.k)

        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            start = self.init or await opening(case, self.length, self.seed)
            rng = Random(f"{self.seed}/{case.id}/gcg")
            await descend(start, self.steps, self.width, loss, gradient, track, rng, self.merge)
        return track
