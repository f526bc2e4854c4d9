"""Judges whose fault is in the answering: unreadable, refusing, flipping, drifting, down or slow."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from robustjudge.models.scripted.base import Outcome, Outcomes, Scripted, Wrapped, mix
from robustjudge.models.scripted.signs import plea
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Call, Completion
from robustjudge.spec import register


@dataclass(frozen=True)
class Faulty(Wrapped):
    """Base: with probability ``rate`` the fault, else ``judge``; with ``only_pleas`` the fault strikes only where a
    candidate pleads (arms that differ in their drop rate).

    Known: the status has rate ``rate`` in each arm it strikes, independent of the verdict.
    """

    rate: float = 0.1
    only_pleas: bool = False

    def fault(self, view: View) -> Outcomes:
        """What happens instead of a verdict."""
        raise NotImplementedError

    def outcomes(self, view: View) -> Outcomes:
        strikes = not self.only_pleas or any(plea(c) for c in view.candidates)
        return mix(self.rate if strikes else 0.0, self.fault(view), self.judge.outcomes(view))

    def odds(self, view: View) -> Outcomes:
        return self.judge.odds(view) if any(o.status == "ok" for o in self.outcomes(view)) else ()


@register("scripted/bad_parser")
@dataclass(frozen=True)
class BadParser(Faulty):
    """Says something from which no verdict can be read with probability ``rate``.

    Known: unparsed share ``rate``.
    """

    def fault(self, view: View) -> Outcomes:
        return (Outcome(1.0, status="unparsed"),)


@register("scripted/refuser")
@dataclass(frozen=True)
class Refuser(Faulty):
    """Refuses with probability ``rate``.

    Known: refusal share ``rate``.
    """

    def fault(self, view: View) -> Outcomes:
        return (Outcome(1.0, status="refused"),)


@register("scripted/truncating")
@dataclass(frozen=True)
class Truncating(Faulty):
    """Is cut off before its verdict with probability ``rate``.

    Known: truncated share ``rate``.
    """

    def fault(self, view: View) -> Outcomes:
        return (Outcome(1.0, status="truncated"),)


@register("scripted/down")
@dataclass(frozen=True)
class Down(Faulty):
    """Fails in transport with probability ``rate`` (default: always).

    Known: error share ``rate``; with rate 1 there is no verdict at all and the run is incomplete, not failed.
    """

    rate: float = 1.0
    reason: str = "transport"

    def fault(self, view: View) -> Outcomes:
        return (Outcome(1.0, status="error", reason=self.reason),)


@register("scripted/noisy_flip")
@dataclass(frozen=True)
class NoisyFlip(Faulty):
    """Turns the inner verdict into another label, drawn uniformly, with probability ``rate`` = e.

    Known: on two labels a repeat differs with probability 2e(1 - e); noise alone, so every bias is 0.
    """

    def fault(self, view: View) -> Outcomes:
        flipped = []
        for said in self.judge.outcomes(view):
            others = [label for label in view.labels if label != said.label]
            if said.status != "ok" or not others:
                flipped.append(said)
            else:
                flipped += [Outcome(said.p / len(others), label) for label in others]
        return tuple(flipped)

    def odds(self, view: View) -> Outcomes:
        return Scripted.odds(self, view)


@register("scripted/drifting")
@dataclass(frozen=True)
class Drifting(Wrapped):
    """From repeat number ``after`` on (the index in the replica name ``clean/3``) every score is ``shift`` labels off.

    A drift in the order of calls would change with the order of completion, so it is tied to the replica's index.
    Known: repeats before ``after`` agree with the inner judge, later ones differ by exactly ``shift`` labels within
    the scale; among several the choice moves on by ``shift`` slots.
    """

    after: int = 1
    shift: int = 1

    def outcomes(self, view: View) -> Outcomes:
        inner = self.judge.outcomes(view)
        if replica_index(view.replica) < self.after:
            return inner
        return tuple(Outcome(o.p, self._moved(view, o.label), o.status, o.reason) for o in inner)

    def _moved(self, view: View, label: str) -> str:
        if label not in view.labels:
            return label
        at, n = view.labels.index(label) + self.shift, len(view.labels)
        return view.labels[min(n - 1, max(0, at)) if view.pointwise else at % n]

    def odds(self, view: View) -> Outcomes:
        return Scripted.odds(self, view)


def replica_index(replica: str) -> int:
    """The repeat's number in a replica name: 3 for ``clean/3`` and ``clean/3.r0``; 0 where there is none."""
    match = re.search(r"/(\d+)", replica)
    return int(match[1]) if match else 0


@register("scripted/slow")
@dataclass(frozen=True)
class Slow(Wrapped):
    """Answers like ``judge`` after ``seconds``.

    Known: the inner judge's rates; n calls at concurrency c take n * seconds / c.
    """

    seconds: float = 0.05

    async def complete(self, call: Call) -> Completion:
        await asyncio.sleep(self.seconds)
        return await super().complete(call)
