"""A plan of a million cells: how long enumeration takes, how long a resume takes that keeps every row, and how much
memory each needs.

    python benchmarks/million_cells.py [--cells 1000000]

The table is filled with the keys of the plan (a row per cell, as a finished run leaves it); the resume is a real run
against it that has nothing to send.  Printed: seconds and peak resident memory after each phase, and the growth over a
plan of a thousandth of the size.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from robustjudge import attack, template
from robustjudge.attacks import library
from robustjudge.engine.writer import connect
from robustjudge.execution import Options, execute
from robustjudge.judges import Prompted
from robustjudge.models.scripted.plain import LengthBiased
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.protocols import Pairwise, Pointwise
from robustjudge.table import NAMES, SCHEMA, cell_key


def plan_of(cells: int, model: LengthBiased) -> Plan:
    """A plan of at least ``cells`` cells: cases x 2 protocols x (H1-H8, identity, neutral)."""
    attacks = tuple(attack(name) for name in (*library.HEURISTIC, "identity", "neutral"))
    n = -(-cells // (2 * len(attacks)))

    def cases() -> Iterator[Case]:
        return (Case(f"c{i}", f"Task {i}.", f"A weak answer to {i}.", (f"A right answer to {i}.",)) for i in range(n))

    judge = Prompted(model.name, template("vanilla"))
    return Plan(cases, (("length", judge),), (Pointwise(), Pairwise()), attacks)


def enumerate_cells(plan: Plan) -> int:
    """Count the cells and hash each, as a resume does."""
    return sum(len(cell_key(cell)) == 32 for cell in plan.cells())


def fill(path: Path, plan: Plan) -> None:
    """The rows that a finished run would have left, scalars only."""
    db = connect(path)
    db.executescript(SCHEMA)
    marks = ", ".join("?" * len(NAMES))
    at = {name: i for i, name in enumerate(NAMES)}
    db.execute("BEGIN")
    for cell in plan.cells():
        row: list[object] = [None] * len(NAMES)
        row[at["cell"]], row[at["case_id"]], row[at["attack"]] = cell_key(cell), cell.case.id, cell.attack_name
        row[at["attack_status"]] = row[at["clean_status"]] = row[at["attacked_status"]] = "ok"
        db.execute(f"INSERT OR REPLACE INTO trials VALUES ({marks})", row)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def rows(path: Path) -> int:
    db = sqlite3.connect(path)
    (n,) = db.execute("SELECT count(*) FROM trials").fetchone()
    db.close()
    return int(n)


def peak() -> float:
    """Peak resident memory of this process in MiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 if sys.platform != "darwin" else 1024 * 1024)


def measure(cells: int, folder: Path) -> dict[str, float]:
    """Seconds and peak MiB of enumeration and of a resume that keeps every row."""
    model = LengthBiased()
    plan = plan_of(cells, model)
    out: dict[str, float] = {}
    began = time.perf_counter()
    out["cells"] = enumerate_cells(plan)
    out["enumerate s"], out["enumerate MiB"] = time.perf_counter() - began, peak()
    home = folder / "runs" / "20260101T000000Z-million-000000"
    home.mkdir(parents=True)
    fill(home / "run.sqlite", plan)
    out["fill MiB"] = peak()
    began = time.perf_counter()
    run = execute(plan, Options(root=folder / "runs", ledger=None, mode="off", resume=home, models={model.name: model}))
    out["resume s"], out["resume MiB"] = time.perf_counter() - began, peak()
    out["kept"], out["sent"], out["rows"] = run.tally.rows, run.tally.sent, rows(home / "run.sqlite")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = measure(max(given.cells // 1000, 20), Path(folder) / "small")
        large = measure(given.cells, Path(folder) / "large")
    for name, value in large.items():
        print(f"{name:14s} {value:12,.1f}   (small plan {small[name]:,.1f})")
    print(f"growth of peak memory: {large['resume MiB'] - small['resume MiB']:.1f} MiB")
    return 0 if large["sent"] == 0 and large["kept"] == large["cells"] else 1


if __name__ == "__main__":
    sys.exit(main())
