"""pytest: ``def test_judge(robustness): robustness(run).check()`` - the gate as an assertion, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from robustjudge.gate.decide import Decision
    from robustjudge.gate.policy import Policy


class Robustness:
    """Decides on a run; ``check`` fails the test with the gate's reasons, and skips nothing silently."""

    def __init__(self, tmp: Path) -> None:
        self._tmp = tmp

    def run(self, judge: Any, cases: Any, attacks: tuple[str, ...] = ("H1", "H4", "authority"), **options: Any) -> Path:
        """Attack a judge on cases through the engine and return the run folder (two final repeats, identity control)."""
        from robustjudge.attacks import library
        from robustjudge.execution import Options, execute
        from robustjudge.plan import Plan
        from robustjudge.protocols import Pointwise

        held = tuple(cases)
        names = library.expand(("identity", "neutral/H1", *attacks))
        plan = Plan(
            cases=lambda: iter(held),
            judges=(("judge", judge),),
            protocols=options.pop("protocols", (Pointwise(),)),
            attacks=tuple(library.attack(n, quick=True) for n in names),
            finals=2,
        )
        given = {"root": self._tmp / "runs", "ledger": self._tmp / "ledger.sqlite", **options}
        return execute(plan, Options(**given)).path

    def decide(self, run: Path, policy: Policy | Mapping[str, Any] | Path | None = None, **more: Any) -> Decision:
        """The gate's decision on a run folder; ``policy`` is a policy, its keys, or a file."""
        from robustjudge.gate.check import check
        from robustjudge.gate.policy import Policy, parse_policy, read_policy

        if isinstance(policy, Policy):
            rules = policy
        else:
            rules = parse_policy(policy) if isinstance(policy, Mapping) else read_policy(policy)
        return check(run, rules, **more)[1]

    def check(self, run: Path, policy: Policy | Mapping[str, Any] | Path | None = None, **more: Any) -> Decision:
        """Fail the test unless the gate passes; an inconclusive gate fails too."""
        __tracebackhide__ = True
        d = self.decide(run, policy, **more)
        if not d.passed:
            pytest.fail("\n".join([f"robustjudge gate: {d.words}", *(f"  {r}" for r in d.reasons)]), pytrace=False)
        return d


@pytest.fixture
def robustness(tmp_path: Path) -> Robustness:
    """Attack judges and decide on runs inside a test."""
    return Robustness(tmp_path)


__all__: list[str] = ["Robustness", "robustness"]
