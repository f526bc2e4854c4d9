"""Adjusted p values: Holm for hypotheses named in advance, Benjamini-Hochberg (or -Yekutieli) for screening."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robustjudge.errors import DataError
from robustjudge.measures.base import Floats, floats


def _checked(p: ArrayLike) -> Floats:
    array = floats(p, "p values")
    if array.size and (array.min() < 0 or array.max() > 1):
        raise DataError("p values lie in [0, 1]")
    return array


def bonferroni(p: ArrayLike) -> Floats:
    """p times the number of hypotheses, at most 1; in the order given."""
    array = _checked(p)
    return np.asarray(np.minimum(1.0, array * max(array.size, 1)), dtype=np.float64)


def holm(p: ArrayLike) -> Floats:
    """Step-down adjusted p values: the family-wise error stays under alpha whatever the dependence (Holm 1979)."""
    array = _checked(p)
    m = array.size
    order = np.argsort(array, kind="stable")
    raised = np.maximum.accumulate(array[order] * (m - np.arange(m)))
    out = np.empty(m)
    out[order] = np.minimum(1.0, raised)
    return out


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Step-up adjusted p values: expected share of false findings under q (Benjamini and Hochberg 1995)."""
    return _step_up(_checked(p), 1.0)


def benjamini_yekutieli(p: ArrayLike) -> Floats:
    """The same under any dependence: BH times the harmonic number of m (Benjamini and Yekutieli 2001)."""
    array = _checked(p)
    return _step_up(array, float(np.sum(1.0 / np.arange(1, array.size + 1))) if array.size else 1.0)


def _step_up(array: Floats, factor: float) -> Floats:
    m = array.size
    order = np.argsort(array, kind="stable")
    scaled = array[order] * factor * m / np.arange(1, m + 1)
    lowered = np.minimum.accumulate(scaled[::-1])[::-1]
    out = np.empty(m)
    out[order] = np.minimum(1.0, lowered)
    return out
