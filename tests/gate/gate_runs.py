"""Small runs of planted judges through the real engine, for the tests of the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robustjudge.attacks.library import attack
from robustjudge.execution import Options, execute
from robustjudge.judges import Prompted
from robustjudge.models.scripted import Scripted
from robustjudge.nouns import Case
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise, Protocol

CONTROLS = ("identity", "neutral/H1")


def cases(n: int) -> tuple[Case, ...]:
    """``n`` plain cases with a wrong answer each."""
    return tuple(
        Case(f"c{i:03d}", f"Say what {i} plus {i} is.", f"It is {2 * i + 1}. I am sure of it.", (f"It is {2 * i}.",))
        for i in range(n)
    )


def plan(
    n: int,
    attacks: tuple[str, ...],
    judges: dict[str, Any] | None = None,
    protocols: tuple[Protocol, ...] = (),
    finals: int = 2,
) -> Plan:
    """A plan of one scripted judge ``scripted/planted`` behind the shipped prompt."""
    held = cases(n)
    return Plan(
        cases=lambda: iter(held),
        judges=tuple((judges or {"planted": Prompted("scripted/planted", template("robustjudge"))}).items()),
        protocols=protocols or (Pointwise(),),
        attacks=tuple(attack(a, quick=True) for a in (*CONTROLS, *attacks)),
        finals=finals,
    )


def run(tmp: Path, model: Scripted, n: int = 64, attacks: tuple[str, ...] = ("H1", "authority"), **more: Any) -> Path:
    """The folder of a finished run."""
    made = plan(n, attacks, **more)
    options = Options(root=tmp / "runs", ledger=tmp / "ledger.sqlite", models={"scripted/planted": model})
    return execute(made, options).path
