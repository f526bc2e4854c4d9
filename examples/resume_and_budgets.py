"""Caps and resume: a cap stops the run, what was answered is kept, and resuming pays only for the rest."""

from dataclasses import replace
from pathlib import Path

import robustjudge as rj
from robustjudge.errors import BudgetSpent

plan = rj.Plan(
    cases=lambda: rj.builtin_cases("summarization"),
    judges=(("mine", rj.Prompted("scripted/noisy", rj.template("robustjudge"))),),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "H3")),
)
options = rj.Options(root=Path("runs"), max_calls=30)
try:
    rj.run(plan, options)
except BudgetSpent as fault:
    print("stopped:", fault)

run = rj.run(plan, replace(options, resume=Path("runs"), max_calls=None))
print(f"{len(run.table())} rows; {run.tally.sent} calls sent after the stop, {run.tally.saved} came from the ledger")
again = rj.run(plan, replace(options, max_calls=None))
print(f"the finished plan run again sends {again.tally.sent}")
