"""Seeded Jeffreys posteriors of counts: intervals for functions that have no closed form.

A Beta(x + 1/2, n - x + 1/2) or Dirichlet(counts + 1/2) draw is never 0 or 1, so a ratio of two rates stays finite and
no interval has zero width, whatever the counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robustjudge.measures.base import Floats

DRAWS = 20_000


JEFFREYS = 0.5
NEUTRAL = 1 / 3
"""Beta(1/3, 1/3): the posterior median is x/n whatever x (Kerman 2011)."""


def beta_draws(x: float, n: float, *, seed: int = 0, draws: int = DRAWS, prior: float = JEFFREYS) -> Floats:
    """Draws of a rate after ``x`` events in ``n``; give variables that are independent different seeds."""
    return np.asarray(np.random.default_rng(seed).beta(x + prior, n - x + prior, size=draws), dtype=np.float64)


def dirichlet_draws(counts: ArrayLike, *, seed: int = 0, draws: int = DRAWS, prior: float = 0.5) -> Floats:
    """Draws (draws x cells) of cell shares after ``counts``."""
    flat = np.asarray(counts, dtype=np.float64).ravel()
    return np.asarray(np.random.default_rng(seed).dirichlet(flat + prior, size=draws), dtype=np.float64)


def quantiles(draws: Floats, level: float) -> tuple[float, float]:
    """The equal-tailed bounds of ``draws``."""
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)
