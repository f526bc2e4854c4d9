"""Budget curves of adaptive attacks: success against victim queries, the area under it, and the cost of 50 % success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Curve = Sequence[tuple[int, float]]
"""Of one trial: (queries spent, best worth so far), rising in both."""


@dataclass(frozen=True)
class BudgetCurve:
    """``points``: (queries, share of trials whose best-so-far reached its goal within them).

    ``area``: mean height of the curve from 0 to the largest budget, in [0, 1]; lower is better for the judge.
    ``half``: fewest queries at which half of the trials had succeeded; ``None`` is censored (never within the budget).
    Best-so-far worth is what the *search* saw: selection makes it rosier than the re-measured success.
    """

    trials: int
    budget: int
    points: tuple[tuple[int, float], ...]
    area: float | None
    half: int | None

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "trials": self.trials,
            "budget": self.budget,
            "points": [list(p) for p in self.points],
            "area": self.area,
            "half": self.half,
        }


def first_success(curve: Curve, goal: float) -> int | None:
    """The queries after which the best worth first reached ``goal``; ``None`` if it never did."""
    return next((int(q) for q, worth in curve if worth >= goal - 1e-9), None)


def budget_curve(reached: Sequence[int | None], budget: int, width: int = 40) -> BudgetCurve:
    """The curve of trials that first succeeded after ``reached`` queries (``None``: not within ``budget``); at most
    ``width`` points are kept."""
    n = len(reached)
    if not n or budget <= 0:
        return BudgetCurve(n, budget, (), None, None)
    hits = np.sort(np.array([q for q in reached if q is not None], dtype=np.int64))
    grid = np.unique(np.linspace(0, budget, min(width, budget) + 1).round().astype(np.int64))
    share = np.searchsorted(hits, grid, side="right") / n
    area = float(np.maximum(budget - hits, 0).sum() / (n * budget))
    need = int(np.ceil(n / 2))
    half = int(hits[need - 1]) if hits.size >= need else None
    return BudgetCurve(n, budget, tuple((int(q), float(s)) for q, s in zip(grid, share)), area, half)
