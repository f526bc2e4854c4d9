"""Helpers for tests of the core: small cases, judges on a model that is a function, runs in a folder, rows as they lie."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from robustjudge.attacks.library import attack
from robustjudge.execution import Options, Run, execute
from robustjudge.judges import Judge, Prompted
from robustjudge.nouns import Access, Call, Case, Completion, Sampling, Usage, Weak
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise

ANSWERS = ("It is four.", "Because water boils.", "Paris is the capital.")


def cases(n: int, prefix: str = "c") -> list[Case]:
    """``n`` small cases with a reference and two distractors."""
    return [
        Case(
            f"{prefix}{i}",
            f"Question number {i}: say what is right.",
            f"It is {i} and wrong.",
            (f"It is {i} and right.",),
            (Weak(f"It is {i} or not."), Weak(f"Nobody knows {i}.")),
        )
        for i in range(n)
    ]


class Talker:
    """A model that is a function from a call to a reply; it counts what it was sent."""

    access, context, concurrency = Access.SCORE, None, 8

    def __init__(
        self, say: Callable[[Call], str | Completion] | str = "VERDICT: 7", name: str = "toy/a", delay: float = 0.0
    ) -> None:
        self.name, self.identity, self._say, self._delay = name, f"{name} here", say, delay
        self.sent: Counter[tuple[str, str]] = Counter()
        self.calls: list[Call] = []
        self.closed = 0

    async def complete(self, call: Call) -> Completion:
        self.sent[call.messages[-1].text, call.replica] += 1
        self.calls.append(call)
        if self._delay:
            await asyncio.sleep(self._delay)
        said = self._say(call) if callable(self._say) else self._say
        return said if isinstance(said, Completion) else Completion(said, usage=Usage(10, 2), model="toy-1")

    async def close(self) -> None:
        self.closed += 1


def judge(model: str = "toy/a", prompt: str = "vanilla", **sampling: Any) -> Prompted:
    return Prompted(model, template(prompt), Sampling(**sampling))


def planned(
    source: Iterable[Case], *attacks: Any, judges: Iterable[tuple[str, Judge]] | None = None, **settings: Any
) -> Plan:
    """A pointwise plan over the cases with the attacks (names or objects)."""
    found = list(source)
    made = tuple(attack(a) if isinstance(a, str) else a for a in attacks or ("H1",))
    settings.setdefault("protocols", (Pointwise(),))
    return Plan(lambda: iter(found), tuple(judges or (("toy", judge()),)), attacks=made, **settings)


def go(plan: Plan, folder: Path, *models: Any, resume: Run | Path | None = None, **settings: Any) -> Run:
    """Run a plan into ``folder`` with ready models; the ledger lies beside the runs."""
    settings.setdefault("ledger", folder / "ledger.sqlite")
    path = resume.path if isinstance(resume, Run) else resume
    return execute(plan, Options(root=folder / "runs", models={m.name: m for m in models}, resume=path, **settings))


def rows(path: Path, order: str = "cell") -> list[dict[str, Any]]:
    """Every row of a run folder, ``detail`` parsed."""
    db = sqlite3.connect(path / "run.sqlite")
    db.row_factory = sqlite3.Row
    out = [dict(r) for r in db.execute(f"SELECT * FROM trials ORDER BY {order}")]
    db.close()
    for row in out:
        row["detail"] = json.loads(row["detail"])
    return out


def stable(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what a clock decides."""
    out = []
    for row in found:
        row = json.loads(json.dumps({k: v for k, v in row.items() if k != "latency"}))
        for shown in row["detail"].get("shown", ()):
            for call in shown.get("calls", ()):
                call.pop("latency", None)
        out.append(row)
    return out


def contents(path: Path) -> dict[str, str]:
    """Every stored text of a run by its hash."""
    db = sqlite3.connect(path / "run.sqlite")
    out = dict(db.execute("SELECT hash, text FROM contents"))
    db.close()
    return out
