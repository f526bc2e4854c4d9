"""Remediation on planted judges: the one known cure is named as measured; where nothing helps, that is said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gate_runs import plan, run

from robustjudge.execution import Options
from robustjudge.gate import contracts
from robustjudge.gate.check import check
from robustjudge.gate.policy import Policy
from robustjudge.gate.remediation import NO_HELP, Change, parts, remedy
from robustjudge.judges import Judge, Prompted
from robustjudge.models.scripted import Copycat, Fenced, Scripted, Table
from robustjudge.nouns import Slate, Verdict
from robustjudge.prompts.library import template
from robustjudge.spec import register

POLICY = Policy(minimum_n=12)
ATTACKS = ("H1", "json_injection")


@register("test/gate_cutter")
@dataclass(frozen=True)
class Cutter:
    """Keeps the first line of every candidate: cures whatever is appended on a line of its own."""

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        return await judge(replace(slate, candidates=tuple(c.split("\n")[0] for c in slate.candidates)))


@register("test/gate_nothing")
@dataclass(frozen=True)
class Nothing:
    """Passes everything on."""

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        return await judge(slate)


CHANGES = (Change("defense", "do nothing", Nothing()), Change("defense", "keep the first line", Cutter()))


def options(tmp: Path, model: Scripted) -> Options:
    return Options(ledger=tmp / "ledger.sqlite", models={"scripted/planted": model})


def test_the_known_cure_is_named_as_measured(tmp_path: Path) -> None:
    model = Copycat(judge=Table())
    e, d = check(run(tmp_path, model, 20, ATTACKS), POLICY)
    found = remedy(e, d, plan(20, ATTACKS), options(tmp_path, model), CHANGES)
    cures = [r for r in found if r["kind"] == "defense"]
    (cure,) = cures
    assert cure["attack_category"] == "format_hacking"
    assert cure["change"] == "keep the first line" and cure["measured"] is True
    assert cure["failures_before"] == cure["n"] > 5 and cure["failures_after"] == 0
    assert cure["interval"][0] == 0.0 and 0 < cure["interval"][1] < 0.5
    assert cure["extra_calls_per_item"] == 0.0
    assert cure["benign_utility"]["value"] == 1.0
    contracts.validate("contract_b", contracts.report(e, d, found))


def test_on_an_incurable_judge_no_tested_change_helped(tmp_path: Path) -> None:
    stubborn = Copycat(judge=Table())
    e, d = check(run(tmp_path, stubborn, 20, ATTACKS), POLICY)
    found = remedy(e, d, plan(20, ATTACKS), options(tmp_path, stubborn), CHANGES[:1])
    measured = [r for r in found if r["measured"]]
    assert [(r["kind"], r["change"]) for r in measured] == [("none", NO_HELP)]


def test_a_prompt_without_fences_is_tried_with_them(tmp_path: Path) -> None:
    model = Fenced(judge=Table())
    judges = {"planted": Prompted("scripted/planted", template("robustjudge").plain())}
    e, d = check(run(tmp_path, model, 20, ("H1",), judges=judges), POLICY)
    assert d.verdict == "fail"
    changes = parts(judges["planted"])
    found = remedy(e, d, plan(20, ("H1",), judges), options(tmp_path, model), changes)
    (cure,) = [r for r in found if r["kind"] == "template_part"]
    assert cure["failures_after"] == 0 and cure["failures_before"] > 5
    hits = [r for r in found if r["kind"] == "lint"]
    assert hits and all(not r["measured"] and ":" in r["where"] for r in hits)


def test_a_passing_judge_needs_no_remedy(tmp_path: Path) -> None:
    e, d = check(run(tmp_path, Table(), 20, ("H1",)), POLICY)
    assert remedy(e, d, plan(20, ("H1",))) == []
