"""What is decided before a probe runs: the equivalence band, the smallest sample, and which hypotheses gate."""

from __future__ import annotations

from dataclasses import dataclass

from robustjudge.errors import ConfigError
from robustjudge.spec import register

ITSELF = "#itself"
"""Ends the id of a case whose answer is compared with itself."""

GATING = ("position", "padding", "repetition", "markdown", "leniency", "self_preference")


@register("bias_policy")
@dataclass(frozen=True)
class BiasPolicy:
    """``band``: effects within +- this share of the scale (or of the win rate) do not matter.  ``minimum``: fewer cases
    than this decide nothing.  ``gating``: the hypotheses that Holm's correction runs over; the rest are exploratory.
    ``cut``: from this place on the scale, in [0, 1], a score counts as a pass (leniency)."""

    band: float = 0.1
    minimum: int = 60
    gating: tuple[str, ...] = GATING
    cut: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.band < 1 or not 0 < self.cut <= 1 or self.minimum < 1:
            raise ConfigError("a bias policy needs a band in (0, 1), a cut in (0, 1] and a minimum of at least 1")


DEFAULT = BiasPolicy()
