"""Does a judge's 0.7 come true seven times in ten?  Score calibration of a profile, judged on other folds than fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from robustjudge.measures import scorecal
from robustjudge.nouns import Estimate

FOLDS = 5


def score_calibration(items: Sequence[str], positive: Sequence[bool], score: Sequence[float]) -> dict[str, Any] | None:
    """Brier score, its parts, log loss, AUROC, calibration error, reliability curve and a monotone map.

    ``score`` in [0, 1] is the judge's probability of the positive label.  ``brier_after`` is the map's own score on
    folds (by item) that it was not fitted on.  ``None`` without items.  A map does not repair ranking.
    """
    if not items:
        return None
    y, p = np.asarray(positive, dtype=np.float64), np.asarray(score, dtype=np.float64)
    fitted = scorecal.fit_map(p, y)
    large = scorecal.fit_logistic(p, y, fixed_slope=1.0)
    parts = scorecal.brier_parts(y, p)
    return {
        "n": len(items),
        "map": fitted.as_dict() if fitted is not None else None,
        "map_reason": "" if fitted is not None else "one class, or scores separate the classes: no finite map",
        "brier": scorecal.brier(y, p),
        "brier_after": _held_out(items, y, p),
        "brier_skill": scorecal.brier_skill(y, p),
        "brier_parts": None
        if parts is None
        else {k: getattr(parts, k) for k in ("reliability", "resolution", "uncertainty")},
        "log_loss": scorecal.log_loss(y, p),
        "auroc": scorecal.auroc(y, p),
        "ece": scorecal.ece(y, p),
        "in_the_large": large.intercept if large is not None else None,
        "reliability": [
            {"low": b.low, "high": b.high, "forecast": b.forecast, "observed": b.observed}
            for b in scorecal.reliability_curve(y, p)
        ],
    }


def _held_out(items: Sequence[str], y: Any, p: Any) -> Estimate:
    """Brier score of the map on items it has not seen; items go to folds by a checksum of their id."""
    fold = np.asarray([crc32(i.encode("utf-8", "surrogatepass")) % FOLDS for i in items])
    after = np.array(p, dtype=np.float64)
    for k in range(FOLDS):
        mine = fold == k
        if not mine.any():
            continue
        fitted = scorecal.fit_map(p[~mine], y[~mine])
        if fitted is None:
            return Estimate.undefined("no map could be fitted on a fold", n=len(items), low=0.0, high=1.0)
        after[mine] = np.clip(fitted(p[mine]), 0.0, 1.0)
    return scorecal.brier(y, after)
