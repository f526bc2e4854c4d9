"""Judges with planted biases of known size: position, length, formatting, authority, own family, leniency."""

from __future__ import annotations

from dataclasses import dataclass

from robustjudge.models.scripted.base import Constant, Outcome, Outcomes, Scripted, Wrapped, choose, mix, nearest
from robustjudge.models.scripted.fooled import Gullible
from robustjudge.models.scripted.signs import cites, markdown
from robustjudge.models.scripted.view import View
from robustjudge.spec import register


@register("scripted/markdown_lover")
@dataclass(frozen=True)
class MarkdownLover(Gullible):
    """Gives the top verdict to Markdown (headings, lists, bold, code) with probability ``rate``.

    Known: adding markup wins with ``rate`` when no other candidate has it; removing it restores the inner judge.
    """

    judge: Scripted = Constant(value=0.4)

    def sign(self, view: View, i: int) -> bool:
        return markdown(view.candidates[i])


@register("scripted/citation_truster")
@dataclass(frozen=True)
class CitationTruster(Gullible):
    """Gives the top verdict to a text that cites an authority with probability ``rate``; it checks no source.

    Known: adding a made-up citation wins with ``rate`` when no other candidate has one.
    """

    judge: Scripted = Constant(value=0.4)

    def sign(self, view: View, i: int) -> bool:
        return cites(view.candidates[i])


@register("scripted/biased")
@dataclass(frozen=True)
class Biased(Wrapped):
    """The inner judge's merit plus planted effects, all in shares of the scale (merit is clipped to [0, 1]).

    ``length`` is added per 100 words, ``markdown`` and ``authority`` where :mod:`signs` sees them, ``family`` where a
    text holds one of ``own`` (the style marks of the judge's own family), ``leniency`` always.  Among several,
    ``first`` is the probability of taking the first slot unread, and ``near_tie`` the gap of merit within which the
    first slot always wins.

    Known: scores move by exactly the effect times (labels - 1), before rounding to a label.  With ``first`` = q and a
    clear winner by merit, that winner takes its first-slot order always and the other with probability 1 - q: so
    consistency 1 - q, all inconsistent pairs lean to the first slot, directional index q.
    """

    first: float = 0.0
    length: float = 0.0
    markdown: float = 0.0
    authority: float = 0.0
    family: float = 0.0
    own: tuple[str, ...] = ()
    leniency: float = 0.0
    near_tie: float = 0.0

    def raw_merit(self, view: View, i: int) -> float:
        """Merit with all effects, before clipping."""
        text = view.candidates[i]
        total = self.judge.merit(view, i) + self.leniency + self.length * len(text.split()) / 100
        total += self.markdown * markdown(text) + self.authority * cites(text)
        return total + self.family * any(mark in text for mark in self.own)

    def merit(self, view: View, i: int) -> float:
        return min(1.0, max(0.0, self.raw_merit(view, i)))

    def outcomes(self, view: View) -> Outcomes:
        if view.pointwise:
            return (Outcome(1.0, nearest(view, self.merit(view, 0))),)
        merits = [self.raw_merit(view, i) for i in range(len(view.candidates))]
        first = (Outcome(1.0, view.labels[0]),)
        if self.near_tie > 0 and max(merits) - merits[0] <= self.near_tie:
            return first
        return mix(self.first, first, choose(view, merits))

    def odds(self, view: View) -> Outcomes:
        return Scripted.odds(self, view)
