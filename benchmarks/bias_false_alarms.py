"""False alarms and coverage of the bias probes over seeded A/A and planted runs, with the Monte-Carlo error.

python benchmarks/bias_false_alarms.py [RUNS]     (default 2,000 a cell; no model is called)
"""

from __future__ import annotations

import sys
from math import sqrt
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "bias"))
from test_bias_false_alarms import simulate

if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{runs} runs a cell; Monte-Carlo error of a 5 % rate {sqrt(0.05 * 0.95 / runs):.4f}")
    print("design      n  effect  p < .05  called biased (band .1)  coverage of the 95 % interval")
    worst = 1.0
    for kind in ("pairwise", "pointwise"):
        for n in (60, 200):
            for shift in (0.0, 0.2):
                low_p, biased, held = simulate(kind, n, shift, runs, seed=n)
                worst = min(worst, held)
                print(f"{kind:<10} {n:3d}  {shift:6.2f}  {low_p:7.4f}  {biased:24.4f}  {held:.4f}", flush=True)
    sys.exit(0 if worst >= 0.93 else 1)
