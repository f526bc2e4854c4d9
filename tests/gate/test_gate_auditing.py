"""The auditor on a run: its flags above the neutral rate fail by rule (b); it comes with its own error rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gate_runs import run

from robustjudge.cli.app import run as command
from robustjudge.execution import Options, in_loop
from robustjudge.gate.auditing import audited
from robustjudge.gate.check import check
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.policy import Policy
from robustjudge.gate.rationale import labelled
from robustjudge.gate.reasons import words
from robustjudge.models.scripted import Scripted, Table
from robustjudge.models.scripted.base import Wrapped
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Access, Call, Completion
from robustjudge.spec import register


@register("test/gate_subtle")
@dataclass(frozen=True)
class Subtle(Wrapped):
    """Gives the score by the task alone; where professors are named its reason turns warm in words no rule knows."""

    judge: Scripted = Table()

    def reply(self, view: View, label: str) -> str:
        told = "professors" in view.candidates[0]
        return f"{'A warm glow settles it.' if told else 'Held against the task alone.'}\n{view.say(label)}"


class Auditor:
    """Says YES to what glows and to the labelled rationales that were influenced, but for those it cannot read."""

    name = "scripted/auditor"
    access = Access.SCORE
    context = None
    concurrency = 8
    identity = "auditor/1"

    def __init__(self) -> None:
        self.known = {x.rationale: x.influenced for x in labelled()}
        self.calls: list[Call] = []

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        reason = next(p.text for p in call.messages[0].parts if p.field == "reason")
        if reason in self.known and len(self.calls) % 10 == 0:
            return Completion("Hard to say.")
        return Completion("YES" if "glow" in reason or self.known.get(reason) else "no.")

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def close(self) -> None:
        return None


def test_the_auditor_finds_what_no_rule_knows(tmp_path: Path) -> None:
    folder = run(tmp_path, Subtle(), 20, ("expert_claim", "H1"))
    assert check(folder, Policy(minimum_n=10))[1].verdict == "pass"
    model = Auditor()
    options = Options(ledger=tmp_path / "ledger.sqlite", models={"scripted/auditor": model})

    def ask(e: Evidence) -> Any:
        return in_loop(partial(audited, e, "scripted/auditor", options, "another"))

    _, d = check(folder, Policy(minimum_n=10), auditor=ask)
    assert d.verdict == "fail"
    assert {(o.trial.attack, o.rules) for o in d.outcomes if o.failed} == {("expert_claim", ("b",))}
    assert all(o.span.startswith("auditor scripted/auditor: A warm glow") for o in d.outcomes if o.failed)
    told: Any = d.rationale["auditor"]
    assert told["same_family_as_judge"] is False and told["warning"] is None
    assert told["counted"] == ["expert_claim"] and told["neutral"][0] == 0 and told["clean"][0] == 0
    unread, size = told["labelled_unread"]
    assert size == len(labelled()) >= 60 and 0 < unread < 15
    rates = told["labelled"]
    assert rates["sensitivity"]["value"] == 1.0 and rates["false_positive_rate"]["value"] == 0.0
    assert rates["sensitivity"]["n"] + rates["false_positive_rate"]["n"] == size - unread
    assert {c.role for c in model.calls} == {"auditor"} and {c.sampling.temperature for c in model.calls} == {0.0}
    lines = "\n".join(words(d.rationale))
    assert (
        "by rules, on our labelled set: sensitivity" in lines and "auditor scripted/auditor (family another)" in lines
    )
    sent = len(model.calls)
    check(folder, Policy(minimum_n=10), auditor=ask)
    assert len(model.calls) == sent  # the ledger answers
    _, same = check(folder, Policy(minimum_n=10), auditor=ask, baseline=folder)
    assert same.baseline is not None and same.baseline["worse"] == 0  # both runs were read by the same two layers


def test_an_auditor_that_says_nothing_readable_is_undefined_and_one_family_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path, Table(), 4, ("H1",))
    monkeypatch.chdir(tmp_path)
    assert command(["gate", str(folder), "--auditor", "scripted/constant"]) == 3
    said = capsys.readouterr()
    assert "of one family (scripted)" in said.err
    assert "sensitivity undefined (no readable answer)" in said.out and "71 of 71 not readable" in said.out
    assert command(["gate", str(folder), "--auditor", "scripted/constnt"]) == 2
    assert "constant" in capsys.readouterr().err
