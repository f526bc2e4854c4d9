"""Shared floor of the measures: normal quantiles, checked arrays, ordered estimates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from robustjudge.errors import DataError
from robustjudge.nouns import Estimate

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

H = TypeVar("H", bound=Hashable)

LEVEL = 0.95
"""The confidence level used unless another is asked for."""


def z_of(level: float = LEVEL) -> float:
    """The two-sided normal quantile of a confidence ``level`` (1.959964 at 0.95)."""
    if not 0.0 < level < 1.0:
        raise DataError(f"a confidence level lies strictly between 0 and 1, got {level}")
    return float(special.ndtri(0.5 + level / 2))


def floats(values: ArrayLike, name: str = "values") -> Floats:
    """``values`` as a one-dimensional float array without NaN or infinity; row numbers are named otherwise."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(f"{name}: not a finite number in row(s) {rows(bad)}; leave missing values out and count them")
    return array


def rows(indices: Sequence[int] | NDArray[np.intp], shown: int = 10) -> str:
    """The first few row numbers (counted from 0) as text, with how many more there are."""
    head = ", ".join(str(int(i)) for i in indices[:shown])
    return head if len(indices) <= shown else f"{head} and {len(indices) - shown} more"


def same_length(**arrays: NDArray[np.generic] | Sequence[object]) -> int:
    """The common length of ``arrays``; unequal lengths are an error that names each (never a silent ``zip``)."""
    sizes = {name: len(a) for name, a in arrays.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise DataError(f"these must have one entry per item, but {told}")
    return next(iter(sizes.values()), 0)


def bounded(
    value: float,
    low: float,
    high: float,
    n: int,
    method: str,
    *,
    span: tuple[float, float] = (0.0, 1.0),
    flags: tuple[str, ...] = (),
) -> Estimate:
    """An Estimate cut to ``span`` with ``low <= value <= high``."""
    lo, hi = span
    value = min(max(value, lo), hi)
    low = min(max(low, lo), value)
    high = max(min(high, hi), value)
    return Estimate(float(value), float(low), float(high), int(n), method, "", flags)


def codes(groups: Sequence[object] | NDArray[np.generic] | None, n: int, name: str = "clusters") -> Ints:
    """Cluster labels as codes 0..G-1; ``None`` makes every row its own cluster."""
    if groups is None:
        return np.arange(n, dtype=np.int64)
    if len(groups) != n:
        raise DataError(f"{name} has {len(groups)} entries for {n} values")
    array = np.asarray(groups)
    if array.ndim == 1 and array.dtype.kind == "i" and n and array.min() >= 0 and array.max() < 8 * n:
        rank = np.cumsum(np.bincount(array) > 0) - 1  # as np.unique's inverse, without sorting
        return np.asarray(rank[array], dtype=np.int64)
    if array.ndim != 1 or array.dtype == object:
        seen: dict[object, int] = {}
        return np.asarray([seen.setdefault(g, len(seen)) for g in groups], dtype=np.int64)
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)


def patterns(columns: Sequence[Sequence[H]], n: int) -> tuple[list[tuple[H, ...]], Ints, list[int]]:
    """The different rows of ``n`` rows given by their columns, which one each row is, and how often each occurs."""
    place: dict[tuple[H, ...], int] = {}
    kind = np.fromiter((place.setdefault(p, len(place)) for p in zip(*columns, strict=True)), np.int64, n)
    return list(place), kind, np.bincount(kind, minlength=len(place)).tolist()
