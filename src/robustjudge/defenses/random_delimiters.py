"""X3 random delimiters: a fence with a fresh code of at least 64 bits for every request, so that no author can close it.

Nothing an author learned from earlier requests helps: the code changes with any text on the slate and with the replica.
"""

from __future__ import annotations

from dataclasses import dataclass

from robustjudge import spec
from robustjudge.defenses.base import Prompting, code, request_rng
from robustjudge.defenses.delimiters import told
from robustjudge.errors import ConfigError
from robustjudge.nouns import Frame, Slate


@spec.register("random_delimiters")
@dataclass(frozen=True)
class RandomDelimiters(Prompting):
    """``bits`` of code per request (64 or more); look-alikes in data are broken by the renderer."""

    bits: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.bits < 64:
            raise ConfigError(f"{self.bits} bits can be guessed; a random delimiter needs 64 or more")

    def frame(self, slate: Slate) -> Frame:
        nonce = code(request_rng(self.seed, slate, "random delimiters"), self.bits)
        opening, closing = f"<<DATA {nonce}>>", f"<<END {nonce}>>"
        return Frame(before=(told(opening, closing),), fences=((opening, closing),))
