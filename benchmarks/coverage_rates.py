"""Does a nominal 95 % interval cover the true rate 95 times in 100?  For the estimator that the tool itself picks.

    python benchmarks/coverage_rates.py [--replications 2000] [--seed 0] [--design srs] [--peers PYTHON [--only-peers]]

Each cell draws the *counts* of a labelled set and of the judge's verdicts on unlabelled items, so that no row is ever
built (but for active draws, where each item has a probability of its own).  Printed: coverage with its Monte-Carlo
standard error, the mean width, and the raw judge rate and labels-only intervals beside it.  ``--peers`` names the Python
of an environment that holds judgy and ppi-python, whose intervals on the first draws of each cell are told as well
(judgy takes .04 s an interval).  Exit code 1 when a valid estimator covers less than .93 or more than .98
in any cell, or when a cell without one is not refused.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from robustjudge.measures.active import Drawn, correct_active
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.designs import CorrectedRate, Design, correct_rate, correct_stratified
from robustjudge.nouns import Estimate

FLOOR, CEILING = 0.93, 0.98
REFUSES = 0.98  # a judge at chance looks better than chance at 99 % in .5 % of calibrations


@dataclass(frozen=True)
class Cell:
    """A population (true rate, sensitivity, specificity), N unlabelled items and m labels drawn by ``design``."""

    name: str
    design: Design
    rate: float
    se: float
    sp: float
    n: int
    m: int


CELLS = (
    Cell("common", "srs", 0.3, 0.9, 0.8, 1000, 200),
    Cell("rare", "srs", 0.05, 0.8, 0.95, 1000, 100),
    Cell("small", "srs", 0.3, 0.9, 0.8, 150, 75),
    Cell("near-perfect", "srs", 0.9, 0.99, 0.97, 500, 60),
    Cell("weak judge", "srs", 0.5, 0.6, 0.55, 1000, 200),
    Cell("judge at chance", "srs", 0.3, 0.5, 0.5, 1000, 200),
    Cell("common", "class_balanced", 0.2, 0.9, 0.8, 1000, 200),
    Cell("rare", "class_balanced", 0.05, 0.8, 0.95, 1000, 100),
    Cell("near-perfect", "class_balanced", 0.9, 0.97, 0.95, 500, 100),
    Cell("common", "judge_chosen", 0.3, 0.9, 0.8, 1000, 200),
    Cell("rare", "judge_chosen", 0.05, 0.8, 0.95, 1000, 100),
    Cell("near-perfect", "judge_chosen", 0.9, 0.99, 0.97, 500, 100),
    Cell("judge at chance", "judge_chosen", 0.3, 0.5, 0.5, 1000, 200),
    Cell("common", "stratified", 0.3, 0.9, 0.8, 1000, 200),
    Cell("rare", "stratified", 0.05, 0.8, 0.95, 2000, 200),
    Cell("near-perfect", "stratified", 0.9, 0.99, 0.97, 1000, 100),
    Cell("common", "active", 0.3, 0.9, 0.8, 1000, 200),
    Cell("rare", "active", 0.05, 0.8, 0.95, 2000, 200),
    Cell("near-perfect", "active", 0.9, 0.99, 0.97, 1000, 100),
    Cell("weak judge", "active", 0.5, 0.6, 0.55, 1000, 200),
)
REFUSED = (
    Cell("hand-picked", "unknown", 0.3, 0.9, 0.8, 1000, 200),
    Cell("balanced, called random", "srs", 0.1, 0.9, 0.9, 1000, 200),
    Cell("judge at chance", "class_balanced", 0.3, 0.5, 0.5, 1000, 200),
)


def draw(cell: Cell, rng: np.random.Generator, balanced: bool) -> tuple[Confusion, int, int]:
    """Labelled counts, judge positives among the unlabelled, and how many are unlabelled."""
    p = cell.rate
    joint = np.array([p * cell.se, (1 - p) * (1 - cell.sp), p * (1 - cell.se), (1 - p) * cell.sp])
    if balanced:
        half = cell.m // 2
        tp, tn = rng.binomial(half, cell.se), rng.binomial(cell.m - half, cell.sp)
        c = Confusion(tp, cell.m - half - tn, half - tp, tn)
        return c, int(rng.binomial(cell.n, joint[0] + joint[1])), cell.n
    if cell.design == "judge_chosen":
        everything = rng.multinomial(cell.n, joint)
        yes, no = int(everything[0] + everything[1]), int(everything[2] + everything[3])
        m1 = min(yes, cell.m // 2)
        m0 = min(no, cell.m - m1)
        tp = int(rng.hypergeometric(everything[0], everything[1], m1)) if m1 else 0
        fn = int(rng.hypergeometric(everything[2], everything[3], m0)) if m0 else 0
        return Confusion(tp, m1 - tp, fn, m0 - fn), yes - m1, cell.n - m1 - m0
    tp, fp, fn, tn = (int(v) for v in rng.multinomial(cell.m, joint))
    return Confusion(tp, fp, fn, tn), int(rng.binomial(cell.n, joint[0] + joint[1])), cell.n


def stratified(cell: Cell, rng: np.random.Generator) -> CorrectedRate:
    """Two strata of 70 and 30 % of the items, the second with twice the share of positives (or negatives, where those
    are rare) of the whole; half of the labels come from each."""
    sizes, half = (round(0.7 * cell.n), cell.n - round(0.7 * cell.n)), cell.m // 2
    rare = min(cell.rate, 1 - cell.rate)
    shares = [0.4 / 0.7 * rare, 2 * rare]
    if cell.rate > 0.5:
        shares = [1 - v for v in shares]
    positives = [int(rng.binomial(n, p)) for n, p in zip(sizes, shares)]
    events = [int(rng.hypergeometric(x, n - x, half)) for x, n in zip(positives, sizes)]
    said = sum(int(rng.binomial(x, cell.se) + rng.binomial(n - x, 1 - cell.sp)) for x, n in zip(positives, sizes))
    return correct_stratified(sizes, events, [half, half], said, cell.n)


def active(cell: Cell, rng: np.random.Generator) -> CorrectedRate:
    """Items drawn on their own, the likelier the less sure the judge's score is of them (and never less than a third as
    likely as at random); an unsure judge errs more often."""
    y = rng.random(cell.n) < cell.rate
    sure = rng.beta(4, 1.2, size=cell.n)
    wrong = np.where(y, 1 - cell.se, 1 - cell.sp) * (1 - sure) / (1 - 4 / 5.2)  # as often as se and sp say, on average
    said = y ^ (rng.random(cell.n) < wrong)
    doubt = np.sqrt(1 - sure**2)
    p = np.clip(cell.m / cell.n * (1 / 3 + 2 / 3 * doubt / doubt.mean()), 0, 1)
    drawn = rng.random(cell.n) < p
    return correct_active(Drawn.of(y[drawn], said[drawn], p[drawn]), int(said.sum()), cell.n)


def covers(e: Estimate, rate: float) -> bool:
    return e.low is not None and e.high is not None and e.low <= rate <= e.high


def width(e: Estimate) -> float:
    return (e.high or 0.0) - (e.low or 0.0)


def is_balanced(cell: Cell) -> bool:
    return cell.design == "class_balanced" or cell.name.startswith("balanced")


def run(cell: Cell, replications: int, seed: int) -> tuple[float, float]:
    """Print one row; (coverage of the picked estimator among the runs it was not refused, share refused)."""
    rng = np.random.default_rng(seed)
    hits: dict[str, list[bool]] = {"picked": [], "labels": [], "raw": []}
    wide: list[float] = []
    refused, name = 0, "-"
    for _ in range(replications):
        if cell.design == "stratified":
            r = stratified(cell, rng)
        elif cell.design == "active":
            r = active(cell, rng)
        else:
            r = correct_rate(cell.design, *draw(cell, rng, is_balanced(cell)))
        if r.refusal:
            refused += 1
            continue
        name = r.estimator
        hits["picked"].append(covers(r.corrected, cell.rate))
        hits["labels"].append(covers(r.labels_only, cell.rate))
        hits["raw"].append(covers(r.raw, cell.rate))
        wide.append(width(r.corrected))
    kept = len(wide)
    share: Callable[[str], float] = lambda key: float(np.mean(hits[key])) if kept else float("nan")  # noqa: E731
    got = share("picked")
    error = sqrt(max(got * (1 - got), 0.0) / kept) if kept else float("nan")
    print(
        f"{cell.design:15s} {cell.name:25s} {cell.rate:.2f} {name:16s} {got:7.3f} +-{error:.3f} "
        f"{float(np.mean(wide)) if kept else float('nan'):6.3f} {share('labels'):7.3f} {share('raw'):6.3f} "
        f"{refused / replications:8.3f}",
        flush=True,
    )
    return got, refused / replications


def peers(python: str, replications: int, seed: int, design: str = "") -> None:
    """The peers' coverage on the first draws of every cell."""
    lines = []
    for cell in (c for c in CELLS if c.design not in ("stratified", "active") and design in ("", c.design)):
        rng = np.random.default_rng(seed)
        for _ in range(replications):
            c, yes, n = draw(cell, rng, is_balanced(cell))
            counts = {"tp": c.tp, "fp": c.fp, "fn": c.fn, "tn": c.tn, "yes": yes, "n": n}
            lines.append(
                json.dumps({"cell": f"{cell.design:15s} {cell.name}", "rate": cell.rate} | counts, default=int)
            )
    script = Path(__file__).with_name("coverage_peers.py")
    print(f"peers, {replications} replications", flush=True)
    subprocess.run([python, str(script)], input="\n".join(lines), text=True, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", default="", help="Python of an environment with judgy and ppi-python")
    parser.add_argument("--peer-replications", type=int, default=200)
    parser.add_argument("--only-peers", action="store_true", help="do not run our own estimators")
    parser.add_argument("--design", default="", help="cells of this label design only")
    options = parser.parse_args()
    if options.only_peers:
        peers(options.peers, options.peer_replications, options.seed, options.design)
        return 0
    print(f"{options.replications} replications, seed {options.seed}, nominal 0.95")
    print("design          cell                      rate estimator        covers  +-mc  width  labels    raw  refused")
    ours, none = ([c for c in cells if options.design in ("", c.design)] for cells in (CELLS, REFUSED))
    outside = [c for c in ours if not FLOOR <= run(c, options.replications, options.seed)[0] <= CEILING]
    print("no valid estimator: the tool refuses")
    outside += [c for c in none if run(c, options.replications, options.seed)[1] < REFUSES]
    print(f"outside their band: {', '.join(f'{c.design} {c.name}' for c in outside) or 'none'}")
    if options.peers:
        peers(options.peers, options.peer_replications, options.seed, options.design)
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
