"""Peers on the draws of ``coverage_rates.py --peers``: runs in an environment of its own that holds judgy and ppi-python.

Reads JSON lines {cell, rate, tp, fp, fn, tn, yes, n}, writes one line per cell: coverage and mean width of each peer.
judgy 0.1.0 takes its 95 % interval from 1,000 bootstrap draws; ppi-python 0.2.3 from ``ppi_mean_ci`` (lambda tuned).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from itertools import groupby

import numpy as np
from judgy import estimate_success_rate
from ppi_py import ppi_mean_ci

warnings.simplefilter("ignore")


def judgy(truth: np.ndarray, said: np.ndarray, rest: np.ndarray) -> tuple[float, float]:
    _, low, high = estimate_success_rate(truth.astype(int), said.astype(int), rest.astype(int), 1000)
    return float(low), float(high)


def ppi(truth: np.ndarray, said: np.ndarray, rest: np.ndarray) -> tuple[float, float]:
    low, high = ppi_mean_ci(truth, said, rest, alpha=0.05)
    return float(np.ravel(low)[0]), float(np.ravel(high)[0])


Peer = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float]]
PEERS: dict[str, Peer] = {"judgy": judgy, "ppi-python": ppi}


def main() -> None:
    np.random.seed(0)
    for cell, lines in groupby(map(json.loads, sys.stdin), key=lambda d: str(d["cell"])):
        draws = list(lines)
        print(f"{cell:42s} " + "; ".join(told(name, peer, draws) for name, peer in PEERS.items()), flush=True)


def told(name: str, peer: Peer, draws: list[dict[str, float]]) -> str:
    """One peer's coverage, width and faults over the draws of a cell."""
    rows = []
    for d in draws:
        counts = [round(d[k]) for k in ("tp", "fp", "fn", "tn")]
        truth, said = np.repeat([1.0, 0.0, 1.0, 0.0], counts), np.repeat([1.0, 1.0, 0.0, 0.0], counts)
        rest = np.repeat([1.0, 0.0], [round(d["yes"]), round(d["n"] - d["yes"])])
        try:
            low, high = peer(truth, said, rest)
        except (ValueError, ZeroDivisionError):
            continue
        rows.append((low <= d["rate"] <= high, high - low, low < -1e-12 or high > 1 + 1e-12))
    lost = len(draws) - len(rows)
    if not rows:
        return f"{name} failed on all {lost}"
    cover, width, out = np.asarray(rows, dtype=float).mean(0)
    return f"{name} {cover:.3f} (width {width:.3f}, {out:.0%} leave [0, 1], {lost} failed)"


if __name__ == "__main__":
    main()
