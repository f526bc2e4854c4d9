"""Peers on the draws of ``coverage_rates.py --peers``: runs in an environment of its own that holds judgy and ppi-python.

Reads JSON lines {cell, rate, tp, fp, fn, tn, yes, n}, writes one line per cell: coverage and mean width of each peer.
judgy 0.1.0 takes its 95 % interval from 1,000 bootstrap draws; ppi-python 0.2.3 from ``ppi_mean_ci`` (lambda tuned).
"""

from __future__ import annotations

import json
import sys
import warnings

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


PEERS = {"judgy": judgy, "ppi-python": ppi}


def main() -> None:
    np.random.seed(0)
    found: dict[str, dict[str, list[tuple[bool, float, bool]]]] = {}
    failed: dict[str, dict[str, int]] = {}
    for line in sys.stdin:
        d = json.loads(line)
        counts = [round(d[k]) for k in ("tp", "fp", "fn", "tn")]
        truth, said = np.repeat([1.0, 0.0, 1.0, 0.0], counts), np.repeat([1.0, 1.0, 0.0, 0.0], counts)
        rest = np.repeat([1.0, 0.0], [d["yes"], d["n"] - d["yes"]])
        for name, peer in PEERS.items():
            try:
                low, high = peer(truth, said, rest)
            except (ValueError, ZeroDivisionError):
                failed.setdefault(d["cell"], {}).setdefault(name, 0)
                failed[d["cell"]][name] += 1
                continue
            out = low < -1e-12 or high > 1 + 1e-12
            found.setdefault(d["cell"], {}).setdefault(name, []).append((low <= d["rate"] <= high, high - low, out))
    for cell, peers in found.items():
        told = []
        for name, rows in peers.items():
            cover, width, out = np.asarray(rows, dtype=float).T
            lost = failed.get(cell, {}).get(name, 0)
            told.append(
                f"{name} {cover.mean():.3f} (width {width.mean():.3f}, {out.mean():.0%} leave [0, 1], {lost} failed)"
            )
        print(f"{cell:42s} " + "; ".join(told))


if __name__ == "__main__":
    main()
