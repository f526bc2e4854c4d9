"""``robustjudge selftest``: does the instrument recover the rates of planted judges?

Every planted judge is scripted, so the rate that a right instrument must find is known exactly.  The whole path is
tested: prompt, attack, call, reader, ledger, table, measure, interval.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.nouns import Estimate

app = typer.Typer(add_completion=False)

ATTACKS = ("identity", "H1", "H5", "H6")
CHANCE = 0.001
"""The self-test fails when so many intervals miss that a right instrument would do it less often than this."""


@dataclass(frozen=True)
class Check:
    """One planted rate: where it was planted, its true value, and what was measured."""

    judge: str
    protocol: str
    attack: str
    figure: str
    true: float
    measured: Estimate

    @property
    def found(self) -> bool:
        """The 95 % interval holds the true rate."""
        low, high = self.measured.low, self.measured.high
        return low is not None and high is not None and low - 1e-9 <= self.true <= high + 1e-9

    def __str__(self) -> str:
        e = self.measured
        shown = "undefined" if e.value is None else f"{e.value:.3f}"
        bounds = "" if e.low is None or e.high is None else f"[{e.low:.3f}, {e.high:.3f}]"
        mark = "ok" if self.found else "MISSED"
        where = f"{self.judge:<13} {self.protocol:<9} {self.attack:<9} {self.figure:<11}"
        return f"{where} {self.true:5.3f}  {shown} {bounds:<15} {mark}"


@app.command("selftest")
def selftest(
    limit: Annotated[int, typer.Option(min=2, max=12, help="built-in cases per task")] = 6,
    seed: Annotated[int, typer.Option(help="seed of the planted judges")] = 0,
) -> None:
    """Attack planted judges and compare true with measured rates.

    A 95 % interval misses in one row of twenty by chance; exit 1 when more miss than chance explains.
    """
    checks = list(measured(limit, seed))
    typer.echo(f"{'judge':<13} {'protocol':<9} {'attack':<9} {'figure':<11} true   measured [95 % interval]")
    for check in checks:
        typer.echo(str(check))
    missed = sum(not c.found for c in checks)
    allowed = tolerated(len(checks))
    typer.echo(f"{missed} of {len(checks)} intervals miss the true rate; at most {allowed} may by chance")
    if missed > allowed:
        raise typer.Exit(1)


def tolerated(rows: int, rate: float = 0.05) -> int:
    """The most misses that chance explains: more would happen with probability below :data:`CHANCE`."""
    from math import comb

    tail, k = 1.0, 0
    while True:
        tail -= comb(rows, k) * rate**k * (1 - rate) ** (rows - k)
        if tail < CHANCE:
            return k
        k += 1


def planted(seed: int, cases: tuple[Any, ...]) -> dict[str, Any]:
    """The planted judges by name."""
    from robustjudge.models import scripted

    knowing = scripted.perfect(cases, seed=seed)
    return {
        "perfect": knowing,
        "gameable": scripted.Gameable(judge=knowing, seed=seed),
        "half_gameable": scripted.Gameable(judge=knowing, rate=0.5, seed=seed),
        "noisy": scripted.Noisy(seed=seed),
        "first": scripted.FirstPosition(seed=seed),
        "refuser": scripted.Refuser(judge=knowing, rate=0.2, seed=seed),
        "mumbler": scripted.BadParser(judge=knowing, rate=0.3, seed=seed),
    }


def measured(limit: int, seed: int) -> Iterator[Check]:
    """Run the plan and pair every planted rate with its estimate."""
    from robustjudge.attacks import library
    from robustjudge.cli.demo import truth
    from robustjudge.datasets.builtin_cases import builtin
    from robustjudge.execution import Options, execute
    from robustjudge.judges import Prompted
    from robustjudge.measures.grid import panels
    from robustjudge.plan import Plan
    from robustjudge.prompts.library import template
    from robustjudge.protocols import Pairwise, Pointwise

    cases = tuple(builtin(limit=limit))
    judges = planted(seed, cases)
    models = {f"scripted/planted_{name}": judge for name, judge in judges.items()}
    plan = Plan(
        cases=lambda: iter(cases),
        judges=tuple((n, Prompted(f"scripted/planted_{n}", template("robustjudge"))) for n in judges),
        protocols=(Pointwise(), Pairwise()),
        attacks=tuple(library.attack(a) for a in ATTACKS),
    )
    with tempfile.TemporaryDirectory(prefix="robustjudge-selftest-") as scratch:
        run = execute(plan, Options(root=Path(scratch), ledger=Path(scratch) / "ledger.sqlite", models=models))
        found = panels(run.table())
    known = truth(plan, models)
    for panel in found:
        if panel.judge in ("refuser", "mumbler"):
            if panel.protocol == "pointwise":
                share = 1.0 - judges[panel.judge].rate
                yield Check(panel.judge, panel.protocol, "clean", "parse_rate", share, panel.clean["parse_rate"])
            continue
        figure = "paper_asr" if panel.protocol == "pointwise" else "win"
        for line in panel.lines:
            rate = known[panel.judge][panel.protocol][line.attack]
            yield Check(panel.judge, panel.protocol, line.attack, figure, rate, line.figures[figure])
