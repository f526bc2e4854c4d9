"""Approved variants: red-team texts written beforehand and released by a review, as an attack of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from robustjudge import spec
from robustjudge.attacks.base import CHANNELS, Channel, NoCandidate, Plugin
from robustjudge.errors import ConfigError
from robustjudge.nouns import Case, Severity


@spec.register("approved")
@dataclass(frozen=True)
class Approved(Plugin):
    """``texts`` are pairs (case id, text) of the strategy called ``name``; category and severity were set before the run.
    ``scores`` are pairs (case id, score of a robust judge) where a text has its own."""

    name: str = "redteam"
    texts: tuple[tuple[str, str], ...] = ()
    channel: Channel = "append"
    category: str = "injection"
    severity: Severity = "high"
    scores: tuple[tuple[str, float], ...] = ()

    family: ClassVar[str] = "redteam"

    def __post_init__(self) -> None:
        if self.channel not in CHANNELS:
            raise ConfigError(f"channel {self.channel!r} is none of {', '.join(CHANNELS)}")

    @property
    def id(self) -> str:
        return self.name

    def applies(self, case: Case) -> bool:
        """Whether a text was written for this case."""
        return any(name == case.id for name, _ in self.texts)

    def narrowed(self, case: Case) -> Approved:
        """The attack with this case's text alone, so that texts approved later change no other cell."""
        return replace(
            self,
            texts=tuple([t for t in self.texts if t[0] == case.id]),
            scores=tuple([s for s in self.scores if s[0] == case.id]),
        )

    def expected(self, case: Case) -> float | None:
        """The score that a robust judge would give; ``None`` for that of the case."""
        return dict(self.scores).get(case.id)

    async def __call__(self, case: Case) -> str:
        found = dict(self.texts).get(case.id)
        if found is None:
            raise NoCandidate("no text was written for this case")
        return found
