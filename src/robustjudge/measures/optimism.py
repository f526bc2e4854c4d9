"""Optimism: how much better a prompt looked on the items that picked it than on items nobody had seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, bounded
from robustjudge.measures.bootstrap import cluster_bootstrap, small_sample_tail
from robustjudge.measures.intervals import mover
from robustjudge.nouns import Estimate
from robustjudge.search.book import Objective, tail

DRAWS = 2000


def objective_rate(rates: ArrayLike, objective: Objective = "worst", seed: int = 0, level: float = LEVEL) -> Estimate:
    """The worst family's mean win rate (or the mean of the worse half) with a cluster-bootstrap interval.

    ``rates``: items (clusters) x families, shares in [0, 1].  Resampling takes the largest anew in every draw, so the
    interval knows that a maximum was taken.
    """
    table = np.asarray(rates, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        return Estimate.undefined("no_items", low=0.0, high=1.0, method="cluster bootstrap")
    if not np.isfinite(table).all() or table.min() < 0 or table.max() > 1:
        raise DataError("rates are shares in [0, 1], one per item and family")
    n, families = table.shape
    k = tail(families, objective)
    value = float(_top(table.mean(axis=0)[None, :], k)[0])
    picks = np.random.default_rng(seed).integers(0, n, size=(DRAWS, n))
    drawn = _top(table[picks].mean(axis=1), k)
    if n < 2 or float(np.ptp(drawn)) <= 1e-12:
        worst = int(table.mean(axis=0).argmax())
        edge = cluster_bootstrap(table[:, worst])
        return bounded(value, min(edge.low or 0.0, value), max(edge.high or 0.0, value), n, edge.method)
    low, high = np.quantile(drawn, small_sample_tail(n, level))
    return bounded(value, float(low), float(high), n, f"cluster bootstrap ({DRAWS} draws, seed {seed}, {n} clusters)")


def _top(means: Floats, k: int) -> Floats:
    return np.asarray(np.sort(means, axis=1)[:, -k:].mean(axis=1), dtype=np.float64)


def optimism_gap(
    train: Sequence[Sequence[float]], test: Sequence[Sequence[float]], objective: Objective = "worst", seed: int = 0
) -> Estimate:
    """Objective on test items minus objective on training items of one prompt; range [-1, 1], above 0 is optimism.

    The items of both sides are distinct, so their intervals are independent and are joined by variance recovery.
    """
    a, b = objective_rate(test, objective, seed), objective_rate(train, objective, seed + 1)
    if a.value is None or b.value is None:
        return Estimate.undefined("no items on one side", low=-1.0, high=1.0, method="cluster bootstrap")
    low, high = mover(a.value, (a.low or 0.0, a.high or 0.0), b.value, (b.low or 0.0, b.high or 0.0))
    return bounded(a.value - b.value, low, high, a.n + b.n, "cluster bootstrap of both sides", span=(-1.0, 1.0))
