"""Seeded shares of a data set for fitting and testing; a cluster never falls on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.errors import ConfigError, DataError
from robustjudge.nouns import Case
from robustjudge.spec import digest

_NAMES = ("train", "validation", "test")


@spec.register("split")
@dataclass(frozen=True)
class Split:
    """Shares of the clusters for training, validation and test, which sum to 1; ``seed`` decides which goes where.

    Clusters (articles, programs, queries; the case itself where it has none) are ordered by a hash, so the order of
    the file does not matter.  Shares are of clusters: shares of cases differ where clusters differ in size.
    """

    train: float = 0.6
    validation: float = 0.2
    test: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        shares = self.train, self.validation, self.test
        if any(not math.isfinite(s) or s < 0 for s in shares) or abs(sum(shares) - 1) > 1e-9:
            raise ConfigError(f"the shares of a split must be 0 or more and sum to 1, not {shares}")

    def __call__(self, cases: Iterable[Case]) -> Parts:
        """The cases of each share, in their given order; :class:`DataError` if a share above 0 would be empty."""
        given = tuple(cases)
        clusters = sorted({c.cluster or c.id for c in given}, key=lambda name: digest("split", str(self.seed), name))
        ends = round(len(clusters) * self.train), round(len(clusters) * (self.train + self.validation))
        side = {name: 0 if i < ends[0] else 1 if i < ends[1] else 2 for i, name in enumerate(clusters)}
        parts = tuple(tuple(c for c in given if side[c.cluster or c.id] == k) for k in range(3))
        for name, share, part in zip(_NAMES, (self.train, self.validation, self.test), parts, strict=True):
            if share > 0 and not part:
                raise DataError(
                    f"{len(clusters)} clusters are too few for a {name} share of {share:g}; "
                    "load more cases or set it to 0"
                )
        return Parts(*parts)


@dataclass(frozen=True, slots=True)
class Parts:
    """The cases of each share."""

    train: tuple[Case, ...]
    validation: tuple[Case, ...]
    test: tuple[Case, ...]
