"""Evidence that may be looked at after every block: bets on the sign of paired differences, in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import exp, log

BETS = 20
"""Sizes of bet that are mixed, evenly spread in (0, 1)."""


def log_e(differences: Iterable[float], at_most: float = 0.0) -> float:
    """Natural log of an e-value against "the mean of these differences is ``at_most`` or less".

    Differences lie in [-1, 1], one per independent item, in the order observed.  The wealth of a bettor who stakes a
    fixed share on each item is a test martingale; the even mixture over shares is one too, so ``log_e >= log(1/alpha)``
    may stop a search at any time with error at most alpha (Waudby-Smith and Ramdas 2024).  For differences of -1, 0 and
    1 and ``at_most`` 0 it is the one-sided sequential McNemar test.
    """
    scale = 1.0 + at_most
    counts = Counter((d - at_most) / scale for d in differences)  # the order of the items does not change the product
    rows = [(n, _stakes(x)) for x, n in counts.items() if x]
    return log_mean(sum(n * row[j] for n, row in rows) for j in range(BETS))


@lru_cache(maxsize=4096)
def _stakes(x: float) -> tuple[float, ...]:
    """Log growth of each bettor on one item."""
    return tuple(log(max(1.0 + (j + 0.5) / BETS * x, 1e-12)) for j in range(BETS))


def log_mean(logs: Iterable[float]) -> float:
    """Log of the mean of the numbers whose logs are given."""
    values = list(logs)
    top = max(values)
    return top + log(sum(exp(v - top) for v in values) / len(values))
