"""How long ``import robustjudge`` and ``robustjudge --help`` take: median of 9 fresh processes each.

``python benchmarks/startup.py`` prints both beside the bare interpreter and exits 1 when a limit is passed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMITS = {"import robustjudge": 0.150, "robustjudge --help": 0.300}
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import robustjudge": [sys.executable, "-c", "import robustjudge"],
    "robustjudge --help": [sys.executable, "-m", "robustjudge", "--help"],
}


def seconds(command: list[str], runs: int = 9) -> float:
    """Median wall-clock time of fresh processes."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    late = False
    for name, command in COMMANDS.items():
        took = seconds(command)
        limit = LIMITS.get(name)
        late |= limit is not None and took > limit
        print(f"{name}: {took * 1000:.0f} ms" + (f" (limit {limit * 1000:.0f} ms)" if limit else ""))
    sys.exit(late)


if __name__ == "__main__":
    main()
