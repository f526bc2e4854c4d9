"""The run that the kill tests kill: a search attack and text attacks against the endpoint of ``flaky_endpoint.py``.

python killed_run.py FOLDER PORT CASES [--resume]
"""

from __future__ import annotations

import sys
from pathlib import Path

from robustjudge.attacks.library import attack
from robustjudge.execution import Options, execute
from robustjudge.judges import Prompted
from robustjudge.models.base import Settings
from robustjudge.nouns import Case, Sampling
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise


def main(folder: Path, port: int, n: int, resume: bool) -> None:
    model = f"http://127.0.0.1:{port}/v1#local"
    cases = [
        Case(f"c{i}", f"Task number {i}.", f"A weak answer to {i}.", (f"A right answer to {i}.",)) for i in range(n)
    ]
    plan = Plan(
        lambda: iter(cases),
        (("local", Prompted(model, template("vanilla"), Sampling(max_tokens=64))),),
        (Pointwise(),),
        (attack("H1"), attack("Resubmit/rules", quick=True), attack("E4", quick=True), attack("identity")),
    )
    options = Options(
        root=folder / "runs",
        ledger=folder / "ledger.sqlite",
        window=8,
        models={model: Settings(max_concurrency=8)},
        resume=folder / "runs" if resume else None,
    )
    execute(plan, options)
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "--resume" in sys.argv)
