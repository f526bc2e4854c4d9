"""100,000 labels to a full profile with intervals: the target is under 1 s of CPU; and a million rows in flat memory.

python benchmarks/labels.py [LABELS]     (default 100,000: two people and a judge on a third as many items each)
"""

from __future__ import annotations

import csv
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from robustjudge.profile import LabelRow, Study, calibrate, read_labels

STUDY = Study("The reply is right.", ("SUCCESS", "FAILURE"), design="srs", created="2026-01-01T00:00:00Z")


def write(path: Path, n: int, full: bool = False) -> None:
    """A long-form file of ``n`` labels; ``full``: with strata, places in the sitting, seconds and scores."""
    rng = random.Random(1)
    with path.open("w", newline="") as f:
        out = csv.writer(f)
        more = ["stratum", "seconds", "session", "position", "score"] if full else []
        out.writerow(["item_id", "rater_id", "rater_kind", "label", *more])
        for i in range(n // 3):
            truth = rng.random() < 0.3
            more = [f"s{i % 3}", f"{rng.uniform(4, 40):.1f}", "one", i, ""] if full else []
            for rater in ("ann", "bob"):
                label = "SUCCESS" if truth ^ (rng.random() < 0.05) else "FAILURE"
                out.writerow([f"i{i}", rater, "human", label, *more])
            said = rng.random() < (0.9 if truth else 0.1)
            more = [f"s{i % 3}", "", "", "", f"{rng.betavariate(8, 2) if said else rng.betavariate(2, 8):.3f}"]
            label = "SUCCESS" if said else "FAILURE"
            out.writerow([f"i{i}", "judge:toy", "judge", label, *(more if full else [])])


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        best = {}
        for full in (True, False):
            write(path, n, full)
            calibrate(path, STUDY)  # imports and caches are not what is measured
            times = []
            for _ in range(5):
                start = time.process_time()
                done = calibrate(path, STUDY)
                times.append(time.process_time() - start)
            best[full] = min(times)
            what = "with strata, sittings and scores" if full else "four columns"
            print(
                f"{n:,} labels, {what}: read and full profile {best[full]:.2f} s CPU,"
                f" median {sorted(times)[2]:.2f} ({done.outcome})"
            )
        start = time.process_time()
        rows = [r for r in read_labels(path) if isinstance(r, LabelRow)]
        reading = time.process_time() - start
        start = time.process_time()
        calibrate(rows, STUDY)
        print(f"of which reading {reading:.2f} s, profile from rows {time.process_time() - start:.2f} s CPU")
        del rows
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        write(path, 1_000_000)
        start = time.process_time()
        read = sum(isinstance(r, LabelRow) for r in read_labels(path))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{read:,} rows streamed in {time.process_time() - start:.1f} s CPU, peak memory +{grown:.0f} MiB")
    sys.exit(0 if max(best.values()) < 1.0 else 1)
