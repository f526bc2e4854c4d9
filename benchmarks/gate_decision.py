"""How long the gate takes to decide on a stored run: ``python benchmarks/gate_decision.py [ROWS]``; median of five.

The run is real (planted judge, two final repeats, identity and neutral controls) and then copied under new case ids.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from robustjudge import attack, template
from robustjudge.execution import Options, execute
from robustjudge.gate.check import check
from robustjudge.gate.policy import Policy
from robustjudge.judges import Prompted
from robustjudge.models.scripted import Table
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.protocols import Pointwise


def stored(folder: Path, rows: int) -> Path:
    """A run folder of ``rows`` trials."""
    cases = tuple(Case(f"c{i}", f"Say what {i} plus {i} is.", f"It is {2 * i + 1}.") for i in range(50))
    plan = Plan(
        cases=lambda: iter(cases),
        judges=(("planted", Prompted("scripted/planted", template("robustjudge"))),),
        protocols=(Pointwise(),),
        attacks=tuple(attack(a, quick=True) for a in ("identity", "neutral/H1", "H1", "authority", "json_injection")),
        finals=2,
    )
    path = execute(plan, Options(root=folder, ledger=None, models={"scripted/planted": Table()})).path
    db = sqlite3.connect(path / "run.sqlite")
    (have,) = db.execute("SELECT count(*) FROM trials").fetchone()
    columns = [r[1] for r in db.execute("PRAGMA table_info(trials)")]
    moved = ("cell", "case_id", "cluster")
    picked = ", ".join(f"{c} || '-' || ?" if c in moved else f'"{c}"' for c in columns)
    for i in range(1, -(-rows // have)):
        db.execute(f"INSERT INTO trials SELECT {picked} FROM trials WHERE cell NOT LIKE '%-%'", (str(i),) * 3)
    db.commit()
    db.close()
    return path


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        path = stored(Path(folder), rows)
        wall, processor = [], []
        for _ in range(5):
            start, spent = time.perf_counter(), time.process_time()
            _, decision = check(path, Policy())
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - spent)
    print(
        f"{rows} rows, verdict {decision.words}: median {statistics.median(wall):.2f} s, processor {min(processor):.2f} s"
    )


if __name__ == "__main__":
    main()
