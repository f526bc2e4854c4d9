"""A plan is enumerated and resumed in flat memory: 30,000 cells here, a million in ``benchmarks/million_cells.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

from robustjudge.plan import Plan
from robustjudge.table import cell_key

BENCH = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.append(str(BENCH))

from million_cells import plan_of  # noqa: E402

from robustjudge.models.scripted.plain import LengthBiased  # noqa: E402


def grown(plan: Plan, start: int, stop: int) -> float:
    """MiB that enumeration holds more at cell ``stop`` than at cell ``start``."""
    tracemalloc.start()
    try:
        base = 0
        for i, cell in enumerate(plan.cells()):
            cell_key(cell)
            if i == start:
                base = tracemalloc.get_traced_memory()[0]
            if i == stop:
                return (tracemalloc.get_traced_memory()[0] - base) / 2**20
    finally:
        tracemalloc.stop()
    raise AssertionError("the plan is too small")


def test_enumeration_keeps_nothing() -> None:
    assert grown(plan_of(40_000, LengthBiased()), 15_000, 39_000) < 1.0


def test_cells_are_enumerated_lazily() -> None:
    cells = plan_of(10**12, LengthBiased()).cells()
    assert [next(cells).attack_name for _ in range(3)] == ["H1", "H2", "H3"]


def test_a_resume_of_30_000_rows_sends_nothing_and_holds_no_set_of_keys(tmp_path: Path) -> None:
    code = (
        "import sys, json, pathlib; sys.path.insert(0, sys.argv[1]); from million_cells import measure;"
        "print(json.dumps(measure(int(sys.argv[2]), pathlib.Path(sys.argv[3]))))"
    )

    def measured(cells: int) -> dict[str, float]:
        command = [sys.executable, "-c", code, str(BENCH), str(cells), str(tmp_path / str(cells))]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(out.stdout)  # type: ignore[no-any-return]

    small, large = measured(5_000), measured(30_000)
    assert large["kept"] == large["cells"] == large["rows"] == 30_000 and large["sent"] == 0
    assert large["resume MiB"] - small["resume MiB"] < 10, (small, large)
