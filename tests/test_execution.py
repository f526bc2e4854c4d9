"""One run: rows, replicas, resume, faults as rows, caps, full disks, fitting, events, interruption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core_help import Talker, cases, contents, go, judge, planned, rows, stable
from robustjudge.asks import Score
from robustjudge.attacks.base import Plugin
from robustjudge.attacks.library import attack
from robustjudge.engine import writer as writer_module
from robustjudge.engine.events import Event
from robustjudge.errors import BudgetSpent, ConfigError, Inconclusive, PlanError, StorageError
from robustjudge.models.scripted.fooled import Obedient
from robustjudge.models.scripted.plain import LengthBiased, Noisy
from robustjudge.nouns import Access, Budget, Call, Case, Completion, Slate, Verdict
from robustjudge.protocols import BestOf, Pairwise, Pointwise
from robustjudge.spec import register
from robustjudge.threat import ThreatModel

# ------------------------------------------------------------------ plugins of a third party, some of them broken


@register("test/raising")
@dataclass(frozen=True)
class Raising(Plugin):
    """Raises on the case named; asks once before."""

    on: str = "c1"
    name: ClassVar[str] = "raising"
    access: ClassVar[Access] = Access.SCORE

    async def __call__(self, case: Case) -> str:
        await Score((case.response,))
        if case.id == self.on:
            raise KeyError("a bug of the plugin")
        return case.response + "!"


@register("test/climbing")
@dataclass(frozen=True)
class Climbing(Plugin):
    """Lengthens the text round by round as long as it pays."""

    rounds: int = 4
    seed: int = 0
    name: ClassVar[str] = "climbing"
    access: ClassVar[Access] = Access.SCORE

    async def __call__(self, case: Case) -> str:
        text = case.response
        for i in range(self.rounds):
            drafts = tuple(f"{text} more {self.seed} {i} {j}" for j in range(3))
            scored = await Score(drafts)
            text = max(zip(scored, drafts, strict=False), key=lambda x: (x[0].worth, x[1]))[1]
        return text


@register("test/broken_shield")
@dataclass(frozen=True)
class BrokenShield:
    """A defense that raises on one case."""

    async def __call__(self, slate: Slate, judge: Any) -> Verdict:
        if "number 2" in slate.task:
            raise ZeroDivisionError("a bug of the defense")
        verdict: Verdict = await judge(slate)
        return verdict


@register("test/nan_shield")
@dataclass(frozen=True)
class NanShield:
    """A defense whose suspicion is not a number."""

    async def __call__(self, slate: Slate, judge: Any) -> Verdict:
        return replace(await judge(slate), suspicion=(float("nan"),))


# ------------------------------------------------------------------ saving, replicas


def test_each_clean_call_is_sent_once_however_many_attacks_and_a_rerun_sends_nothing(tmp_path: Path) -> None:
    model = Talker()
    plan = planned(cases(3), "H1", "H2", "H5", "identity", protocols=(Pointwise(), Pairwise()))
    run = go(plan, tmp_path, model)
    clean = Counter(c.replica for c in model.calls)
    assert clean["clean/0"] == clean["clean/1"] == 3 * (1 + 2)
    assert clean["identity/0"] == 3 * (1 + 2)
    assert clean["final/0"] == 3 * 3 * (1 + 2)
    assert max(model.sent.values()) == 1
    assert run.tally.sent == len(model.calls) == run.tally.asked - run.tally.saved
    again = Talker("VERDICT: 1")
    other = go(plan, tmp_path, again)
    assert not again.calls and other.tally.sent == 0 and other.tally.rows == run.tally.rows == 24
    assert stable(rows(other.path)) == stable(rows(run.path))


def test_a_judge_that_draws_at_random_keeps_its_noise_with_the_ledger_on(tmp_path: Path) -> None:
    model = Noisy()
    plan = planned(cases(200), "identity", judges=[("noisy", judge(model.name))])
    found = rows(go(plan, tmp_path, model).path)
    rises = sum(r["attacked_score"] > r["clean_score"] for r in found) / len(found)
    assert abs(rises - 0.45) < 0.12
    assert sum(r["retest_score"] != r["clean_score"] for r in found) > 150
    assert found == rows(go(plan, tmp_path, model).path)


def test_search_final_and_baseline_never_share_a_reply(tmp_path: Path) -> None:
    model = Talker(lambda call: f"VERDICT: {1 + len(call.messages[-1].text) % 9}")
    go(planned(cases(2), Climbing(), "identity"), tmp_path, model)
    by_text: dict[str, set[str]] = {}
    for text, replica in model.sent:
        shown = text.partition("[BEGIN RESPONSE")[2].split("\n")[1]
        by_text.setdefault(shown, set()).add(replica.split("/")[0])
    assert {"clean", "identity"} in by_text.values()
    finals = [t for t, r in by_text.items() if "final" in r]
    assert len(finals) == 2 and all("search" in by_text[t] for t in finals)


def test_seeds_are_distinct_measurements_or_none(tmp_path: Path) -> None:
    model = Talker()
    found = rows(go(planned(cases(1), "H8", Climbing(), "identity", seeds=(0, 1, 2)), tmp_path, model).path)
    seeds = {name: sorted(r["seed"] for r in found if r["attack"] == name) for name in {r["attack"] for r in found}}
    assert seeds["climbing"] == [0, 1, 2]
    assert seeds["H8"] == [0], "one fixed text on a deterministic judge is one seed"
    replicas = {s["replica"] for r in found for s in r["detail"]["shown"] if s["arm"] == "final"}
    assert replicas == {"final/0", "final/1", "final/2"}


def test_two_final_repeats_are_two_replicas_and_the_first_is_the_row(tmp_path: Path) -> None:
    model = Talker(lambda call: f"VERDICT: {int(call.replica[-1]) + 3}")
    (row,) = rows(go(planned(cases(1), "H1", finals=2), tmp_path, model).path)
    assert [s["replica"] for s in row["detail"]["shown"] if s["arm"] == "final"] == ["final/0", "final/1"]
    assert (row["attacked_score"], row["clean_score"], row["retest_score"]) == (3, 3, 4)


# ------------------------------------------------------------------ faults are rows


def test_B112_a_plugin_that_raises_is_one_row_and_the_others_stand(tmp_path: Path) -> None:
    for listener in (None, lambda event: None):
        run = go(planned(cases(5), Raising(on="c1")), tmp_path, Talker(), listener=listener)
        found = {r["case_id"]: r for r in rows(run.path)}
        assert [found[f"c{i}"]["attack_status"] for i in range(5)] == ["ok", "error", "ok", "ok", "ok"]
        bad = found["c1"]
        assert bad["attacked_status"] is None and bad["clean_status"] == "ok"
        assert "KeyError: 'a bug of the plugin'" in bad["error"] and "test_execution.py" in bad["error"]
        assert "ask 1 of attack raising" in bad["error"]
        assert run.tally.faults["attack raised"] == 1


def test_a_defense_that_raises_is_an_error_row_with_cell_and_ask(tmp_path: Path) -> None:
    plan = planned(cases(4), "H1", defenses=(("broken", BrokenShield()),))  # type: ignore[arg-type]
    run = go(plan, tmp_path, Talker())
    found = {r["case_id"]: r for r in rows(run.path)}
    bad = found["c2"]
    assert (bad["attacked_status"], bad["clean_status"], bad["attacked_score"]) == ("error", "error", None)
    assert "ZeroDivisionError" in bad["error"] and f"cell {bad['cell']}, ask " in bad["error"]
    assert [found[c]["attacked_status"] for c in ("c0", "c1", "c3")] == ["ok"] * 3
    assert run.tally.faults["ZeroDivisionError"] == 1


def test_a_trial_that_has_no_row_is_an_error_row_and_nothing_hangs(tmp_path: Path) -> None:
    plan = planned(cases(2), "H1", defenses=(("nan", NanShield()),))  # type: ignore[arg-type]
    found = rows(go(plan, tmp_path, Talker()).path)
    assert [r["attacked_status"] for r in found] == ["error"] * 2
    assert all("what the trial gave has no row" in r["error"] for r in found)


def test_a_case_that_a_protocol_cannot_show_is_a_row_and_the_others_stand(tmp_path: Path) -> None:
    bare = Case("bare", "task", "response")
    found = {
        r["case_id"]: r
        for r in rows(go(planned([bare, *cases(2)], protocols=(Pairwise(),)), tmp_path, Talker("VERDICT: A")).path)
    }
    assert found["bare"]["attacked_status"] == "error" and "needs a reference" in found["bare"]["error"]
    assert found["bare"]["attacked_outcomes"] == "ee"
    assert found["c0"]["attacked_outcomes"] == "WL"


@pytest.mark.parametrize("broken", ["attack", "defense"])
def test_fail_fast_stops_at_the_first_bug_and_shows_it(tmp_path: Path, broken: str) -> None:
    if broken == "attack":
        plan, wanted = planned(cases(40), Raising(on="c1")), "a bug of the plugin"
    else:
        plan, wanted = planned(cases(40), defenses=(("x", BrokenShield()),)), "a bug of the defense"  # type: ignore[arg-type]
    model = Talker(delay=0.001)
    with pytest.raises(Exception, match=wanted):
        go(plan, tmp_path, model, fail_fast=True, window=2)
    assert len(model.calls) < 40


def test_statuses_are_kept_apart_and_never_scored(tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "0": "VERDICT: 9",
        "1": "no verdict here",
        "2": Completion(status="refused", refusal="no"),
        "3": Completion("VERDI", status="truncated", finish="length"),
        "4": Completion(status="error", reason="transport"),
        "5": Completion("", status="ok"),
    }

    def say(call: Call) -> Any:
        number = next(n for n in said if f"number {n}:" in call.messages[-1].text)
        return said[number]

    run = go(planned(cases(6), "H1"), tmp_path, Talker(say))
    found = {r["case_id"]: r for r in rows(run.path)}
    statuses = ["ok", "unparsed", "refused", "truncated", "error", "unparsed"]
    assert [found[f"c{i}"]["attacked_status"] for i in range(6)] == statuses
    assert [found[f"c{i}"]["clean_status"] for i in range(6)] == statuses
    assert [found[f"c{i}"]["attacked_score"] for i in range(6)] == [9] + [None] * 5
    assert found["c4"]["reason"] == "transport"


def test_B114_rows_join_by_id(tmp_path: Path) -> None:
    def say(call: Call) -> Any:
        if "number 0:" in call.messages[-1].text:
            return Completion(status="refused", reason="content_filter")
        return f"VERDICT: {next(i for i in range(1, 5) if f'number {i}:' in call.messages[-1].text)}"

    found = {r["case_id"]: r for r in rows(go(planned(cases(5), "H1"), tmp_path, Talker(say)).path)}
    assert found["c0"]["attacked_status"] == "refused"
    assert [found[f"c{i}"]["attacked_score"] for i in range(1, 5)] == [1, 2, 3, 4]


def test_B052_both_orders_failing_is_no_tie_and_no_win(tmp_path: Path) -> None:
    model = Talker(Completion(status="error", reason="timeout"))
    (row,) = rows(go(planned(cases(1), protocols=(Pairwise(),)), tmp_path, model).path)
    assert (row["clean_outcomes"], row["attacked_outcomes"], row["attacked_status"]) == ("ee", "ee", "error")


# ------------------------------------------------------------------ resume


def test_B103_B105_a_larger_plan_runs_what_is_missing(tmp_path: Path) -> None:
    model = Talker()
    first = go(planned(cases(10)[:1]), tmp_path, model)
    before = len(model.calls)
    second = go(planned(cases(10)), tmp_path, model, resume=first)
    assert second.path == first.path
    assert len(rows(second.path)) == 10 and second.tally.rows == 10
    assert len(model.calls) - before == 9 * 3 == second.tally.sent


def test_B107_a_damaged_run_file_keeps_what_can_be_read_and_redoes_the_rest(tmp_path: Path) -> None:
    plan = planned(cases(60))
    run = go(plan, tmp_path, Talker())
    expected = stable(rows(run.path))
    db = sqlite3.connect(run.path / "run.sqlite")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    os.truncate(run.path / "run.sqlite", int((run.path / "run.sqlite").stat().st_size * 0.9) // 4096 * 4096)
    model = Talker("VERDICT: 1")
    with pytest.warns(RuntimeWarning, match="damaged"):
        again = go(plan, tmp_path, model, resume=run)
    assert stable(rows(again.path)) == expected
    assert not model.calls, "the ledger still held the replies"


def test_error_rows_stay_unless_they_are_asked_for_again(tmp_path: Path) -> None:
    broken = Talker(lambda call: Completion(status="error", reason="http_503"))
    run = go(planned(cases(3)), tmp_path, broken)
    well = Talker()
    go(planned(cases(3)), tmp_path, well, resume=run)
    assert not well.calls
    assert [r["attacked_status"] for r in rows(run.path)] == ["error"] * 3
    go(planned(cases(3)), tmp_path, well, resume=run, retry_errors=True)
    assert [r["attacked_status"] for r in rows(run.path)] == ["ok"] * 3


def test_B109_two_judges_with_equal_prompts_are_four_cells_and_equal_names_are_refused(tmp_path: Path) -> None:
    a, b = Talker(name="toy/a"), Talker(name="toy/b")
    judges = [("one", judge("toy/a")), ("two", judge("toy/a")), ("three", judge("toy/b")), ("four", judge("toy/b"))]
    found = rows(go(planned(cases(1), judges=judges), tmp_path, a, b).path)
    assert len({r["cell"] for r in found}) == 4
    with pytest.raises(PlanError, match="judge one stands twice"):
        go(planned(cases(1), judges=[judges[0], judges[0]]), tmp_path, a)
    with pytest.raises(PlanError, match="attack H1 stands twice"):
        go(planned(cases(1), "H1", "H1"), tmp_path, a)


def test_a_replay_that_diverges_is_a_row_that_names_the_ask_and_sends_nothing(tmp_path: Path) -> None:
    """An attack with a draw that no seed decides: the journal of the killed run tells."""
    model = Talker(delay=0.0)
    drawn = iter(range(1000))

    @register("test/unseeded")
    @dataclass(frozen=True)
    class Unseeded(Plugin):
        name: ClassVar[str] = "unseeded"
        access: ClassVar[Access] = Access.SCORE

        async def __call__(self, case: Case) -> str:
            await Score((f"fixed {case.id}",))
            await Score((f"{case.response} {next(drawn)}",))
            raise KeyboardInterrupt  # the run dies here; what was answered is in the journal

    plan = planned(cases(1), Unseeded())
    with pytest.raises(KeyboardInterrupt):
        go(plan, tmp_path, model)
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    db = sqlite3.connect(folder / "run.sqlite")
    assert db.execute("SELECT count(*) FROM journal").fetchone()[0] >= 2
    db.close()
    before = len(model.calls)
    again = go(plan, tmp_path, model, resume=folder)
    (row,) = rows(again.path)
    assert row["attack_status"] == "error" and row["attacked_status"] is None
    assert "Diverged" in row["error"] and "differs from the stored run" in row["error"]
    assert len(model.calls) == before, "nothing was sent for the ask that differs"
    db = sqlite3.connect(folder / "run.sqlite")
    assert db.execute("SELECT count(*) FROM journal").fetchone() == (0,)
    db.close()


# ------------------------------------------------------------------ caps, disks, folders


def test_max_calls_stops_the_run_keeps_the_rows_and_a_resume_goes_on(tmp_path: Path) -> None:
    model = Talker()
    with pytest.raises(BudgetSpent, match="--max-calls 7"):
        go(planned(cases(10)), tmp_path, model, max_calls=7, window=1)
    assert len(model.calls) == 7
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    assert len(rows(folder)) == 2
    assert json.loads((folder / "manifest.json").read_text())["state"] == "incomplete"
    run = go(planned(cases(10)), tmp_path, model, resume=folder)
    assert len(rows(run.path)) == 10 and len(model.calls) == 30
    assert json.loads((folder / "manifest.json").read_text())["state"] == "complete"


def test_max_cost_needs_a_price_and_is_never_exceeded(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="needs a price"):
        run = go(planned(cases(2)), tmp_path, Talker(), max_cost=1.0)
        raise AssertionError(rows(run.path)[0]["error"])


def test_a_full_disk_stops_the_run_with_exit_4_and_a_resume_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = writer_module.connect

    def small(path: Path, readonly: bool = False) -> sqlite3.Connection:
        db = real(path, readonly)
        if not readonly and path.name == "run.sqlite":
            db.execute("PRAGMA max_page_count=30")
        return db

    monkeypatch.setattr(writer_module, "connect", small)
    model = Talker(delay=0.002)
    with pytest.raises(StorageError, match="full") as told:
        go(planned(cases(200)), tmp_path, model, window=4)
    assert told.value.exit_code == 4
    assert len(model.calls) < 600, "the run stopped soon after the disk was full"
    monkeypatch.undo()
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    kept = len(rows(folder))
    run = go(planned(cases(200)), tmp_path, model, resume=folder)
    assert kept < 200 == len(rows(run.path))
    assert sum(n - 1 for n in model.sent.values()) <= 4 * 2, "at most what was in flight is sent again"


def test_two_runs_in_one_folder_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    run = go(planned(cases(1)), tmp_path, Talker())
    run.folder.lock()
    other = Talker()
    with pytest.raises(ConfigError, match="another run is writing here"):
        go(planned(cases(5)), tmp_path, other, resume=run)
    assert not other.calls
    run.folder.unlock()
    go(planned(cases(5)), tmp_path, other, resume=run)


def test_models_are_closed_and_the_lock_released_when_a_run_fails(tmp_path: Path) -> None:
    model = Talker()
    with pytest.raises(BudgetSpent):
        go(planned(cases(3)), tmp_path, model, max_calls=1)
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    assert model.closed == 1
    go(planned(cases(3)), tmp_path, model, resume=folder)


def test_nothing_measured_is_inconclusive(tmp_path: Path) -> None:
    with pytest.raises(Inconclusive, match="nothing was measured"):
        go(planned([]), tmp_path, Talker())


def test_store_hashes_keeps_no_text(tmp_path: Path) -> None:
    run = go(planned(cases(2)), tmp_path, Talker("secret rationale\nVERDICT: 7"), store="hashes")
    assert contents(run.path) == {}
    raw = (run.path / "run.sqlite").read_bytes()
    assert b"secret rationale" not in raw and b"Question number" not in raw
    assert [r["attacked_score"] for r in rows(run.path)] == [7, 7]


# ------------------------------------------------------------------ budgets and threat models


def test_budget_statuses_are_the_attackers_own(tmp_path: Path) -> None:
    model = LengthBiased(chars=10)
    threat = ThreatModel(budget=Budget(queries=5))
    j = [("length", judge(model.name))]
    (row,) = rows(go(planned(cases(1), Climbing(rounds=4), judges=j, threats=(threat,)), tmp_path, model).path)
    assert (row["attack_status"], row["queries"]) == ("exhausted", 5)
    assert row["attacked_status"] == "ok" and row["text_length"] > len("It is 0 and wrong.")
    (row,) = rows(
        go(
            planned(cases(1), Climbing(rounds=1), judges=j, threats=(ThreatModel(budget=Budget(queries=50)),)),
            tmp_path,
            model,
        ).path
    )
    assert (row["attack_status"], row["queries"]) == ("ok", 3)
    (row,) = rows(go(planned(cases(1), "O1", judges=j), tmp_path, model).path)
    assert row["attack_status"] == "no_candidate" and row["attacked_status"] is None and row["text_hash"] is None
    assert row["clean_status"] == "ok"


def test_threat_models_change_who_answers_the_attacker(tmp_path: Path) -> None:
    victim, other = LengthBiased(chars=10), Obedient()
    j = judge(victim.name)
    for threat, asked in (
        (ThreatModel(), victim.name),
        (ThreatModel(answers="undefended"), victim.name),
        (ThreatModel(answers="surrogate", surrogate=judge(other.name)), other.name),
    ):
        run = go(planned(cases(1), Climbing(), judges=[("v", j)], threats=(threat,)), tmp_path, victim, other)
        (row,) = rows(run.path)
        assert row["threat"] == threat.answers
        assert {c["model"] for s in row["detail"]["shown"] for c in s["calls"]} == {victim.name}
        searched = [k for k in _models(tmp_path / "ledger.sqlite") if k[1].startswith("search/")]
        assert asked in {m for m, _ in searched}


def _models(path: Path) -> set[tuple[str, str]]:
    db = sqlite3.connect(path)
    out = set(db.execute("SELECT model, replica FROM replies"))
    db.close()
    return out


def test_a_plan_that_asks_for_more_than_a_model_gives_is_refused_before_any_call(tmp_path: Path) -> None:
    model = Talker()
    with pytest.raises(PlanError, match=r"O4.*ODDS.*toy.*toy/a.*SCORE"):
        go(planned(cases(1), "O4"), tmp_path, model)
    with pytest.raises(PlanError, match="expect"):
        go(planned(cases(1), judges=[("toy", replace(judge(), expect=True))]), tmp_path, model)
    assert not model.calls
    assert not (tmp_path / "runs").exists()


# ------------------------------------------------------------------ universal attacks


def test_a_universal_attack_is_fitted_once_deployed_on_the_rest_and_kept(tmp_path: Path) -> None:
    from robustjudge.models.scripted.whitebox import Additive

    model = Additive()
    made = replace(attack("O4", quick=True), words=model.vocabulary)  # type: ignore[type-var,call-arg]
    plan = planned(cases(6), made, judges=[("v", judge(model.name))], train=frozenset({"c0", "c1"}))
    run = go(plan, tmp_path, model)
    found = rows(run.path)
    assert sorted(r["case_id"] for r in found) == ["c2", "c3", "c4", "c5"]
    (file,) = (run.path / "artefacts").iterdir()
    kept = json.loads(file.read_text())
    assert kept["train"] == ["c0", "c1"] and kept["spent"]["queries"] > 0
    assert all(r["queries"] == 0 for r in found), "the cost of fitting is booked once"
    again = go(plan, tmp_path, model, resume=run)
    assert json.loads(file.read_text()) == kept and len(rows(again.path)) == 4
    with pytest.raises(PlanError, match="training cases"):
        go(planned(cases(6), made, judges=[("v", judge(model.name))]), tmp_path, model)


# ------------------------------------------------------------------ events, notebooks, Ctrl-C


def test_events_tell_one_story_that_adds_up(tmp_path: Path) -> None:
    told: list[Event] = []
    run = go(planned(cases(3), "H1", "H2"), tmp_path, Talker(), listener=told.append)
    kinds = Counter(e.kind for e in told)
    assert kinds["row"] == 6 and kinds["asked"] == kinds["sent"] + kinds["saved"]
    assert kinds["answered"] == kinds["sent"] == run.tally.sent
    assert kinds["planned"] >= 1 and run.tally.planned == 6


def test_it_runs_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def notebook() -> int:
        return len(rows(go(planned(cases(2)), tmp_path, Talker()).path))

    assert asyncio.run(notebook()) == 2


SCRIPT = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from core_help import Talker, cases, go, planned
from robustjudge.errors import RobustJudgeError

class Slow(Talker):
    concurrency = 4
    async def complete(self, call):
        with open({log!r}, "a") as file: file.write("sent\\n")
        await asyncio.sleep({delay})
        with open({log!r}, "a") as file: file.write("done\\n")
        return await super().complete(call)

print("up", flush=True)
try:
    go(planned(cases(500)), Path({folder!r}), Slow(), window=4)
except RobustJudgeError as fault:
    print(type(fault).__name__, flush=True)
    sys.exit(fault.exit_code)
"""


def interrupted(tmp_path: Path, delay: float, wait_for: int, signals: int) -> tuple[int, float, list[str]]:
    """Exit code, seconds from the first Ctrl-C to the end, and what was sent and done."""
    log = tmp_path / "log"
    code = SCRIPT.format(tests=str(Path(__file__).parent), log=str(log), folder=str(tmp_path), delay=delay)
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_text().count("sent") >= wait_for) and time.monotonic() < deadline:
        time.sleep(0.01)
    started = time.monotonic()
    for _ in range(signals):
        assert child.poll() is None, "the first Ctrl-C waits for the calls in flight"
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
    child.wait(30)
    return child.returncode, time.monotonic() - started, log.read_text().split()


def test_ctrl_c_lets_calls_in_flight_finish_keeps_them_and_exits_130(tmp_path: Path) -> None:
    code, _, log = interrupted(tmp_path, 0.8, wait_for=8, signals=1)
    assert code == 130
    assert log.count("sent") == log.count("done"), "calls in flight were let finish"
    db = sqlite3.connect(tmp_path / "ledger.sqlite")
    assert db.execute("SELECT count(*) FROM replies").fetchone()[0] == log.count("sent")
    db.close()
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    model = Talker()
    run = go(planned(cases(20)), tmp_path, model, resume=folder)
    sent_before = log.count("sent")
    assert {f"c{i}" for i in range(20)} <= {r["case_id"] for r in rows(run.path)}
    assert len(model.calls) <= 60 and len(model.calls) + sent_before >= 60


def test_ctrl_c_twice_leaves_now(tmp_path: Path) -> None:
    code, seconds, log = interrupted(tmp_path, 20, wait_for=4, signals=2)
    assert code == 130 and seconds < 9, "the calls in flight are given ten seconds, once"
    assert log.count("done") < log.count("sent")


def test_best_of_k_shrinks_to_what_a_case_can_fill(tmp_path: Path) -> None:
    few = replace(cases(1)[0], id="few", distractors=())
    found = {
        r["case_id"]: r
        for r in rows(go(planned([few, *cases(1)], protocols=(BestOf(4),)), tmp_path, Talker("VERDICT: A")).path)
    }
    assert (found["few"]["k"], found["c0"]["k"]) == (2, 4)
    assert (len(found["few"]["attacked_outcomes"]), len(found["c0"]["attacked_outcomes"])) == (2, 4)
    assert found["c0"]["attacked_outcomes"].count("W") == 1, "under cyclic orders each candidate is first once"


def test_wrapped_judges_and_sampling_change_the_cell(tmp_path: Path) -> None:
    from robustjudge.table import cell_key

    def key(**change: Any) -> str:
        (cell,) = replace(planned(cases(1)), **change).cells()
        return cell_key(cell)

    keys = {
        key(),
        key(judges=(("toy", judge(temperature=1.0)),)),
        key(judges=(("toy", judge("toy/b")),)),
        key(judges=(("other", judge()),)),
        key(protocols=(Pairwise(),)),
        key(cleans=1),
        key(finals=3),
        key(evaluators=(("", "exact"),)),
        key(defenses=(("nan", NanShield()),)),
        key(attacks=(attack("H2"),)),
        key(cases=lambda: iter([replace(cases(1)[0], response="another")])),
    }
    assert len(keys) == 11


NOTEBOOK = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from core_help import Talker, cases, go, planned

class Slow(Talker):
    async def complete(self, call):
        with open({log!r}, "a") as file: file.write("sent\\n")
        await asyncio.sleep(0.2)
        return await super().complete(call)

async def cell():
    go(planned(cases(500)), Path({folder!r}), Slow(), window=4)

loop = asyncio.new_event_loop()
try:
    loop.run_until_complete(cell())
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(7)
"""


def test_a_notebooks_stop_button_ends_the_run_and_keeps_what_was_answered(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = NOTEBOOK.format(tests=str(Path(__file__).parent), log=str(log), folder=str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_text().count("sent") >= 12) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert (child.returncode, out.strip()) == (7, "stopped")
    db = sqlite3.connect(tmp_path / "ledger.sqlite")
    assert db.execute("SELECT count(*) FROM replies").fetchone()[0] == log.read_text().count("sent")
    db.close()
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()]
    assert json.loads((folder / "manifest.json").read_text())["state"] == "incomplete"


def test_two_processes_share_one_ledger(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path;"
        "from core_help import Talker, cases, go, planned;"
        "m = Talker(delay=0.002); run = go(planned(cases(40)), Path(sys.argv[2]), m); print(len(m.calls))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    sent = [int(p.communicate(timeout=60)[0]) for p in both]
    assert [p.returncode for p in both] == [0, 0]
    # one that starts when the other has ended sends nothing: how the calls are shared is the machine's affair
    assert all(n <= 120 for n in sent) and sum(sent) >= 120
    third = Talker()
    go(planned(cases(40)), tmp_path, third)
    assert not third.calls
    assert not list(tmp_path.glob("ledger.sqlite.tail-*"))
