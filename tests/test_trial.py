"""One trial, pure: sealed cases, meters, cut batches, parts, access, statuses, channels, and every driver and order."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings, strategies as st

from core_help import Talker, cases, judge
from robustjudge.asks import Complete, Losses, Odds, Rate, Score, Swaps, Weigh, Write
from robustjudge.attacks.base import Exhausted, NoCandidate, Plugin
from robustjudge.attacks.library import attack, attack_names
from robustjudge.engine.backend import Backend
from robustjudge.engine.driver import AsyncDriver, Job, Landed
from robustjudge.engine.ledger import Ledger
from robustjudge.engine.lockstep import run_lockstep
from robustjudge.engine.sync import run_sync
from robustjudge.engine.writer import Writer
from robustjudge.judges import Guarded
from robustjudge.models.scripted.plain import LengthBiased
from robustjudge.models.scripted.whitebox import Additive
from robustjudge.nouns import Access, Budget, Call, Case, Completion, Slate, Turn, Verdict
from robustjudge.objective import Objective
from robustjudge.plan import target_of
from robustjudge.protocols import Pairwise, Pointwise
from robustjudge.steps import run, together
from robustjudge.threat import ThreatModel
from robustjudge.trial import Cell, Meter, Trial, fitting, trial

CASE = replace(cases(1)[0], history=(Turn("user", "before"),))


def say(call: Call) -> Completion:
    """A score by length: longer is better."""
    shown = next(p.text for m in call.messages for p in m.parts if p.field == "candidate/0")
    return Completion(f"VERDICT: {min(10, 1 + len(shown) // 10)}")


def answer(ask: Any) -> Any:
    assert isinstance(ask, Complete), ask
    return tuple(say(c) for c in ask.calls)


def tried(made: Any, budget: Budget | None = None, case: Case = CASE, **settings: Any) -> Trial:
    threat = ThreatModel(budget=budget or Budget())
    settings.setdefault("protocol", Pointwise())
    cell = Cell(case, made, settings.pop("judge", judge()), settings.pop("protocol"), threat=threat, **settings)
    return run(trial(cell), answer)


@dataclass(frozen=True)
class Toy(Plugin):
    """An attack that is a coroutine function."""

    body: Any
    access: ClassVar[Access] = Access.GRADIENT
    name: ClassVar[str] = "toy"

    async def __call__(self, case: Case) -> str:
        text: str = await self.body(case)
        return text


# ------------------------------------------------------------------ what the attacker may see


def test_the_attacker_sees_no_reference_rival_label_or_gold() -> None:
    seen: list[Case] = []

    async def look(case: Case) -> str:
        seen.append(case)
        return case.response

    rich = replace(CASE, expected=3.0, meta=(("gold", "42"),))
    tried(Toy(look), case=rich)
    (sealed,) = seen
    assert (sealed.references, sealed.distractors, sealed.labels, sealed.expected, sealed.meta) == (
        (),
        (),
        (),
        None,
        (),
    )
    assert (sealed.task, sealed.response, sealed.history) == (CASE.task, CASE.response, CASE.history)


def test_a_rival_that_raises_when_it_is_read_is_never_read_by_any_registered_attack() -> None:
    class Guard(str):
        """A reference that no attack may touch: every use but the judge's raises."""

        __slots__ = ()

    secret = "THE SECRET RIVAL"
    case = Case("c1", "Say two plus two.", "It is five. There is no doubt.", (Guard(secret),))
    for name in attack_names():
        if name in ("honest_rewrite", "plea", "O1", "O2", "O3", "Resubmit"):
            continue
        made: Any = attack(name, target_of(judge(), Pointwise()), quick=True)
        if made.universal:
            continue
        received: list[Case] = []

        async def watch(view: Case, made: Any = made, received: list[Case] = received) -> str:
            received.append(view)
            return await made(view)  # type: ignore[no-any-return]

        t = tried_with(Additive(), Toy(watch), case)
        assert all(not v.references for v in received)
        assert secret not in (t.text or "")


def test_an_attack_that_declares_it_reads_the_reference_gets_it() -> None:
    @dataclass(frozen=True)
    class Reading(Plugin):
        name: ClassVar[str] = "reading"
        reads_reference: ClassVar[bool] = True

        async def __call__(self, case: Case) -> str:
            return case.reference

    assert tried(Reading()).text == CASE.reference


@pytest.mark.parametrize(
    ("ask", "needs"),
    [
        (lambda: Score(("x",)), "VERDICT"),
        (lambda: Odds(Objective(), ("x",)), "ODDS"),
        (lambda: Losses(Objective(), ((1,),)), "LOSS"),
        (lambda: Swaps(Objective(), (1,), 2), "GRADIENT"),
        (lambda: Complete((judge().call(Slate("t", ("x",), (0,)), judge().template.form(1)),)), "directly"),
        (lambda: Weigh(()), "directly"),
    ],
)
def test_an_attack_is_held_to_the_access_it_declares(ask: Any, needs: str) -> None:
    @dataclass(frozen=True)
    class Modest(Plugin):
        name: ClassVar[str] = "modest"

        async def __call__(self, case: Case) -> str:
            await ask()
            return "no"

    t = tried(Modest())
    assert t.attack_status == "error" and t.text is None and needs in t.error and "PlanError" in t.error


def test_verdict_access_learns_only_win_or_not() -> None:
    told: list[float] = []

    @dataclass(frozen=True)
    class Peek(Plugin):
        access: ClassVar[Access] = Access.VERDICT
        name: ClassVar[str] = "peek"

        async def __call__(self, case: Case) -> str:
            told.extend(f.worth for f in await Score(("x" * 50, "x" * 500)))
            return case.response

    tried(Peek())
    assert told == [0.0, 1.0]


# ------------------------------------------------------------------ the meter


def test_a_batch_that_does_not_fit_is_cut_at_the_budget_and_the_next_ask_is_exhausted() -> None:
    lengths: list[int] = []

    async def greedy(case: Case) -> str:
        for _ in range(3):
            lengths.append(len(await Score(tuple(f"draft {i}" for i in range(4)))))
        return "never"

    t = tried(Toy(greedy), Budget(queries=6))
    assert lengths == [4, 2]
    assert (t.attack_status, t.spent.queries) == ("exhausted", 6)
    assert t.text == "draft 0", "the best so far stands"


def test_an_attack_may_catch_exhaustion_and_return_its_own_best() -> None:
    async def careful(case: Case) -> str:
        try:
            while True:
                await Score(("draft",))
        except Exhausted:
            return "my best"

    t = tried(Toy(careful), Budget(queries=3))
    assert (t.attack_status, t.text, t.spent.queries) == ("exhausted", "my best", 3)


def test_parts_split_what_is_left_up_front_and_share_the_tally() -> None:
    async def part(n: int) -> int:
        got = 0
        try:
            for _ in range(n):
                got += len(await Score(("draft",)))
        except Exhausted:
            pass
        return got

    counts: list[Any] = []

    async def forked(case: Case) -> str:
        await Score(("first",))
        counts.append(await together([part(9), part(9), part(9)]))
        counts.append(await part(9))
        return "done"

    t = tried(Toy(forked), Budget(queries=9))
    assert counts == [(3, 3, 2), 0]
    assert t.spent.queries == 9
    assert [q for q, _ in t.spent.curve] == sorted(q for q, _ in t.spent.curve)


@settings(max_examples=60, deadline=None)
@given(left=st.integers(0, 40), parts=st.integers(1, 7))
def test_shares_add_up(left: int, parts: int) -> None:
    shares = [m.left["queries"] for m in Meter(Budget(queries=left)).parts(parts)]
    assert sum(s or 0 for s in shares) == left and max(s or 0 for s in shares) - min(s or 0 for s in shares) <= 1
    assert [m.left["queries"] for m in Meter(Budget()).parts(parts)] == [None] * parts


def test_each_kind_has_its_own_budget() -> None:
    async def writes(case: Case) -> str:
        got = await Write(((), (), ()))
        assert [w.status for w in got] == ["error", "error"], "no attacker model is configured"
        await Score(("a", "b"))
        return "x"

    t = tried(Toy(writes), Budget(writes=2))
    assert (t.spent.writes, t.spent.queries) == (2, 2)


def test_quality_asks_are_free_and_unknown_without_an_evaluator() -> None:
    async def rated(case: Case) -> str:
        assert await Rate(("a", "b")) == (None, None)
        return "x"

    assert tried(Toy(rated)).attack_status == "ok"


# ------------------------------------------------------------------ how an attacker may end


def test_no_candidate_judges_nothing_and_the_weak_response_stands() -> None:
    async def none(case: Case) -> str:
        raise NoCandidate("nothing legal")

    t = tried(Toy(none))
    assert (t.attack_status, t.text, t.attacked, t.error) == ("no_candidate", None, (), "nothing legal")
    assert [s.verdict.status for s in t.clean] == ["ok", "ok"]


def test_an_attack_that_raises_keeps_traceback_and_ask_number_and_the_clean_arm() -> None:
    async def bug(case: Case) -> str:
        await Score(("a",))
        await Score(("b",))
        raise LookupError("here")

    t = tried(Toy(bug))
    assert (t.attack_status, t.text, t.attacked) == ("error", None, ())
    assert "LookupError: here" in t.error and "in bug" in t.error and "ask 2 of attack toy" in t.error
    assert len(t.clean) == 2


def test_a_fault_below_an_ask_is_thrown_into_the_plugins_own_line() -> None:
    @dataclass(frozen=True)
    class Broken:
        async def __call__(self, slate: Slate, judge: Any) -> Verdict:
            if slate.replica.startswith("search"):
                raise OSError("below")
            return await judge(slate)  # type: ignore[no-any-return]

    async def asking(case: Case) -> str:
        try:
            await Score(("a",))
        except OSError as fault:
            return f"caught {fault}"
        return "no"

    assert tried(Toy(asking), judge=Guarded(judge(), Broken())).text == "caught below"  # type: ignore[arg-type]


def test_history_is_planted_as_a_turn_and_the_response_stays() -> None:
    made = attack("E9")
    t = tried(made)
    assert t.cell.attack.channel == "history"  # type: ignore[attr-defined]
    shown = t.attacked[0].slate
    assert shown.candidates == (CASE.response,)
    assert shown.history[:-1] == CASE.history and shown.history[-1] == Turn("user", t.text or "")
    assert all(s.slate.history == CASE.history for s in t.clean)


def test_feedback_of_a_pair_is_the_mean_over_orders_and_a_bad_status_stays_visible() -> None:
    told: list[Any] = []

    async def look(case: Case) -> str:
        told.extend(await Score(("a draft",)))
        return case.response

    def first_wins(ask: Any) -> Any:
        return tuple(Completion("VERDICT: A") for _ in ask.calls)

    cell = Cell(CASE, Toy(look), judge(), Pairwise())
    run(trial(cell), first_wins)
    assert (told[-1].worth, told[-1].status) == (0.5, "ok")

    def half_down(ask: Any) -> Any:
        return tuple(
            Completion(status="error", reason="x")
            if "a draft" in c.messages[-1].text.partition("B")[0]
            else Completion("VERDICT: B")
            for c in ask.calls
        )

    run(trial(cell), half_down)
    assert told[-1].worth in (0.0, 0.5, 1.0)


def test_a_sided_quality_is_never_paired_with_zero() -> None:
    from robustjudge.asks import Measure

    def rating(ask: Any) -> Any:
        if isinstance(ask, Measure):
            return (0.4, None)
        return answer(ask)

    t = run(trial(Cell(CASE, attack("H1"), judge(), Pointwise(), evaluator="any")), rating)
    assert (t.quality_clean, t.quality_attacked) == (None, None)


# ------------------------------------------------------------------ conformance: orders and drivers


class Scattered:
    """A scripted judge behind an endpoint that answers in an order of its own."""

    def __init__(self, inner: Any, seed: int) -> None:
        self.inner, self.random = inner, random.Random(seed)
        self.name, self.identity, self.access = inner.name, inner.identity, inner.access
        self.context, self.concurrency = None, 32

    async def _wait(self) -> None:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)

    async def complete(self, call: Call) -> Completion:
        await self._wait()
        return await self.inner.complete(call)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)

        async def scattered(*args: Any, **named: Any) -> Any:
            await self._wait()
            return await found(*args, **named)

        return scattered

    async def close(self) -> None:
        pass


def flown(cells: list[Cell], model: Any, seed: int) -> dict[str, tuple[Any, str]]:
    out: list[Landed] = []

    async def main() -> None:
        scattered = Scattered(model, seed)
        backend = Backend(lambda name: scattered, Ledger(Writer(), None))
        jobs = (Job(str(i), lambda c=c: trial(c)) for i, c in enumerate(cells))  # type: ignore[misc]
        await AsyncDriver(backend, out.append, window=8).run(jobs)

    asyncio.run(main())
    assert all(x.error is None for x in out), [x.error for x in out]
    return {x.job.key: (x.result, x.trace) for x in out}


def finished(coroutine: Any) -> Any:
    """The value of a coroutine that never waits (scripted models)."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a scripted model waited")


def whole_answer(model: Any) -> Any:
    from robustjudge.asks import Gradient, Measure, Sample, Spell, Surprise

    def answered(ask: Any) -> Any:
        match ask:
            case Complete(calls):
                return tuple(finished(model.complete(c)) for c in calls)
            case Weigh(calls):
                return finished(model.weigh(calls))
            case Spell(_, ids):
                return finished(model.spell(ids))
            case Sample():
                return finished(model.sample(ask))
            case Gradient():
                return finished(model.gradient(ask))
            case Surprise(texts=texts, context=context):
                return finished(model.surprise(texts, context))
            case Measure(_, _, texts):
                return (None,) * len(texts)
        raise AssertionError(ask)

    return answered


def tried_with(model: Any, made: Any, case: Case) -> Trial:
    return run(trial(Cell(case, made, judge(model.name), Pointwise())), whole_answer(model))


def cells_of(model: Any) -> list[Cell]:
    out = []
    for protocol in (Pointwise(), Pairwise()):
        for name in attack_names():
            if name in ("honest_rewrite", "plea"):
                continue
            served = name + "/rules" if name in ("O1", "O2", "O3", "Resubmit") else name
            made: Any = attack(served, target_of(judge(), protocol), quick=True)
            if hasattr(made, "words"):
                made = replace(made, words=model.vocabulary)
            cell = Cell(CASE, made, judge(model.name), protocol)
            if made.universal:
                fitted, _ = run(fitting(cell, cases(2, "t")), whole_answer(model))
                cell = replace(cell, attack=fitted)
            out.append(cell)
    return out


def test_every_registered_attack_gives_the_same_string_in_two_completion_orders() -> None:
    model = Additive()
    model.__dict__["surprise"] = _surprise
    cells = cells_of(model)
    one, two = flown(cells, model, 1), flown(cells, model, 2)
    for i, cell in enumerate(cells):
        key = str(i)
        name = f"{cell.attack.name} {cell.protocol.kind}"
        assert one[key][0].text == two[key][0].text, name
        assert one[key][0].attack_status == "ok", (name, one[key][0].error)
    assert {k: trace for k, (_, trace) in one.items()} == {k: trace for k, (_, trace) in two.items()}


async def _surprise(texts: Any, context: str = "") -> Any:
    from robustjudge.nouns import Surprisal

    return tuple(Surprisal((-float(len(t)),)) for t in texts)


def bare(t: Trial) -> Any:
    return t.text, t.attack_status, [(s.replica, s.order, s.verdict) for s in (*t.clean, *t.attacked)], t.spent


def test_the_three_drivers_agree_on_real_trials_in_rows_and_ask_hashes() -> None:
    model = LengthBiased(chars=20)
    cells = []
    for case in cases(3):
        for protocol in (Pointwise(), Pairwise()):
            target = target_of(judge(), protocol)
            cells += [
                Cell(
                    case,
                    attack(a, target, quick=True),
                    judge(model.name),
                    protocol,
                    threat=ThreatModel(budget=Budget(queries=b)),
                )
                for a, b in (
                    ("H1", None),
                    ("E4", 7),
                    ("E4", None),
                    ("Resubmit/rules", 5),
                    ("identity", None),
                    ("H8", None),
                )
            ]
    by_async = flown(cells, model, 3)
    answered = whole_answer(model)
    out: list[Landed] = []
    jobs = [Job(str(i), lambda c=c: trial(c)) for i, c in enumerate(cells)]  # type: ignore[misc]
    run_sync(jobs, lambda pending, key: answered(pending.ask), out.append)
    by_sync = {x.job.key: (x.result, x.trace) for x in out}
    locked: list[Landed] = []
    run_lockstep(
        jobs,
        lambda calls: [finished(model.complete(c)) for c in calls],
        lambda pending, key: answered(pending.ask),
        locked.append,
        window=5,
    )
    by_lockstep = {x.job.key: (x.result, x.trace) for x in locked}
    for key in map(str, range(len(cells))):
        assert by_async[key][1] == by_sync[key][1] == by_lockstep[key][1]
        assert bare(by_async[key][0]) == bare(by_sync[key][0]) == bare(by_lockstep[key][0])


def test_more_budget_never_returns_less_under_the_same_feedback() -> None:
    model = LengthBiased(chars=15)
    made = attack("E4", quick=True)
    worths = []
    for queries in range(1, 9):
        threat = ThreatModel(budget=Budget(queries=queries))
        t = run(trial(Cell(CASE, made, judge(model.name), Pointwise(), threat=threat)), whole_answer(model))
        worths.append(t.attacked[0].verdict.unit)
    assert worths == sorted(worths)


def test_a_talker_is_told_the_replica_names_of_each_arm() -> None:
    model = Talker()

    def told(ask: Any) -> Any:
        return tuple(finished(model.complete(c)) for c in ask.calls)

    run(trial(Cell(CASE, attack("H1"), judge(), Pointwise(), seed=2, finals=2)), told)
    assert [c.replica for c in model.calls] == ["clean/0", "clean/1", "final/4", "final/5"]
