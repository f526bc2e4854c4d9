"""Evidence that may be looked at after every block: bets on the sign of paired differences, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
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
    wealth = [0.0] * BETS
    for d in differences:
        x = (d - at_most) / scale
        if x:
            for j in range(BETS):
                wealth[j] += log(max(1.0 + (j + 0.5) / BETS * x, 1e-12))
    return log_mean(wealth)


def log_mean(logs: Iterable[float]) -> float:
    """Log of the mean of the numbers whose logs are given."""
    values = list(logs)
    top = max(values)
    return top + log(sum(exp(v - top) for v in values) / len(values))
