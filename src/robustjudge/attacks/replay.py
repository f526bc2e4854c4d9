"""Replay: attacked texts found before, as an attack of their own, to run against another judge or as regression cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robustjudge import spec
from robustjudge.attacks.base import CHANNELS, Channel, NoCandidate, Plugin
from robustjudge.attacks.search import Provenance
from robustjudge.errors import ConfigError
from robustjudge.nouns import Case, Severity


@spec.register("replay")
@dataclass(frozen=True)
class Replay(Plugin):
    """``texts`` are pairs (case id, attacked text) that the attack ``source`` found, with their provenance.

    A case without a text has no candidate; with ``own`` the attack is for the cases of its texts alone.  Access is NONE:
    on any judge but the one they were searched on, success is transfer.
    """

    source: str
    texts: tuple[tuple[str, str], ...]
    via: Channel = "append"
    provenance: Provenance | None = None
    own: bool = False

    family: ClassVar[str] = "transfer"
    severity: ClassVar[Severity] = "high"

    def __post_init__(self) -> None:
        if self.via not in CHANNELS:
            raise ConfigError(f"channel {self.via!r} is none of {', '.join(CHANNELS)}")

    @property
    def name(self) -> str:
        return f"replay({self.source})"

    @property
    def channel(self) -> Channel:
        return self.via

    def applies(self, case: Case) -> bool:
        """Whether the plan has a cell for this case."""
        return not self.own or any(case.id == name for name, _ in self.texts)

    async def __call__(self, case: Case) -> str:
        found = dict(self.texts).get(case.id)
        if found is None:
            raise NoCandidate(f"no text of {self.source} is kept for this case")
        return found
