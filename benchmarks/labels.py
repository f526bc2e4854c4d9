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


def write(path: Path, n: int) -> None:
    """A long-form file of ``n`` labels."""
    rng = random.Random(1)
    with path.open("w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["item_id", "rater_id", "rater_kind", "label"])
        for i in range(n // 3):
            truth = rng.random() < 0.3
            for rater in ("ann", "bob"):
                out.writerow([f"i{i}", rater, "human", "SUCCESS" if truth ^ (rng.random() < 0.05) else "FAILURE"])
            said = rng.random() < (0.9 if truth else 0.1)
            out.writerow([f"i{i}", "judge:toy", "judge", "SUCCESS" if said else "FAILURE"])


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        write(path, n)
        calibrate(path, STUDY)  # imports and caches are not what is measured
        times = []
        for _ in range(3):
            start = time.process_time()
            done = calibrate(path, STUDY)
            times.append(time.process_time() - start)
        best = min(times)
        print(f"{n:,} labels: read and full profile {best:.2f} s CPU ({done.outcome})")
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
    sys.exit(0 if best < 1.0 else 1)
