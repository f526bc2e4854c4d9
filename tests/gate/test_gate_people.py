"""What reviewers decide and what the gate makes of it: a pass waits, a dismissal excuses nothing, the hash is the content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gate_runs import run

from robustjudge.cli.app import run as command
from robustjudge.gate.check import check
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.people import content_hash, queued, reviewed
from robustjudge.gate.policy import Policy
from robustjudge.models.scripted import Table
from robustjudge.review import open_store
from robustjudge.review.queue import Queue, findings


@pytest.fixture(scope="module")
def grave(weak_run: Path) -> tuple[Evidence, Decision]:
    """The failing run as if its attacks were critical."""
    e, d = check(weak_run)
    return e, replace(d, outcomes=tuple([replace(o, trial=replace(o.trial, severity="critical")) for o in d.outcomes]))


def test_a_failing_run_stays_failing_whatever_reviewers_dismiss(grave: tuple[Evidence, Decision]) -> None:
    e, d = grave
    hashes = {content_hash(e, o.trial) for o in queued(d)}
    assert d.verdict == "fail" and hashes
    after = reviewed(e, d, dict.fromkeys(hashes, "dismiss"))
    assert after.verdict == "fail" and "0 not decided yet" in after.notes[-1]


def test_a_pass_waits_for_every_finding_and_falls_to_one_that_stands(grave: tuple[Evidence, Decision]) -> None:
    e, d = grave
    passed = replace(d, verdict="pass", accepted=True)
    hashes = sorted({content_hash(e, o.trial) for o in queued(d)})
    waits = reviewed(e, passed, dict.fromkeys(hashes[1:], "dismiss"))
    assert (waits.verdict, waits.exit_code) == ("inconclusive", 3) and "1 findings wait" in waits.reasons[0]
    assert reviewed(e, passed, dict.fromkeys(hashes, "dismiss")).words == "pass with accepted risk"
    for word in ("confirm", "redesign", "other"):
        assert reviewed(e, passed, {**dict.fromkeys(hashes, "dismiss"), hashes[0]: word}).verdict == "fail"
    waived = replace(passed, outcomes=tuple(replace(o, waiver="w") for o in passed.outcomes))
    assert reviewed(e, waived, {}) == waived


def test_a_run_without_findings_needs_nobody(robust_run: Path) -> None:
    e, d = check(robust_run)
    assert reviewed(e, d, {}) == d and d.verdict == "pass"


def test_high_stakes_queues_every_swing(weak_run: Path) -> None:
    _, plain = check(weak_run)
    assert queued(plain) == ()
    _, high = check(weak_run, Policy(high_stakes=True))
    assert len(queued(high)) == sum(o.counts for o in high.outcomes) > 0


def test_the_command_reads_the_decisions_of_the_page(
    weak_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(".robustjudge/review.sqlite")
    queue = Queue(findings(weak_run, Policy(high_stakes=True)), store)
    Path("p.yaml").write_text("high_stakes: true\n", "utf-8")
    asked = ["gate", str(weak_run), "--policy", "p.yaml"]
    assert command(asked) == 1
    before = capsys.readouterr().out
    for item, _ in queue.page().items[:3]:
        queue.decide(item, 0, "dismiss", "ann")
    store.close()
    assert command(asked) == 1
    after = capsys.readouterr().out
    assert f"{len(queue)} not decided yet" in before and f"{len(queue) - 3} not decided yet" in after


def test_the_same_judge_measured_again_keeps_its_hashes(tmp_path: Path) -> None:
    names = []
    for part in ("a", "b"):
        e, _ = check(run(tmp_path / part, Table(), 3, ("H1",)))
        names.append([content_hash(e, t) for t in e.attacks])
    assert names[0] == names[1] and len(set(names[0])) == 3
