"""The backend: saved or sent, single flight, caps, faults, what nothing answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from core_help import Talker
from robustjudge.asks import Complete, Measure, Score, Spell, Weigh
from robustjudge.engine.backend import Backend, float32
from robustjudge.engine.caps import Caps
from robustjudge.engine.events import Event, Tally, fan
from robustjudge.engine.kernel import Flight
from robustjudge.engine.ledger import Ledger
from robustjudge.engine.writer import Writer
from robustjudge.errors import BudgetSpent, Incomplete, PlanError
from robustjudge.nouns import Call, Case, Completion, LabelCall, Sampling, Usage, Weights, message

CALL = Call("toy/a", (message("user", "judge this"),), Sampling(max_tokens=100))


async def asked(backend: Backend, ask: Any) -> Any:
    async def steps() -> Any:
        return await ask

    flight: Flight[Any] = Flight(steps())
    (pending,) = flight.launch()
    try:
        found = backend.stored(pending)
        return found if found is not None else await backend.answer(pending, "cell")
    finally:
        flight.close()


def backend_of(model: Any, path: Path | None = None, **more: Any) -> Backend:
    return Backend(lambda name: model, Ledger(Writer(), path), **more)


def test_equal_calls_in_flight_share_one_reply_and_different_replicas_do_not() -> None:
    model = Talker(lambda call: call.replica, delay=0.01)
    calls = [replace(CALL, replica=f"clean/{i % 2}") for i in range(6)]

    async def main() -> Any:
        backend = backend_of(model)
        return await asyncio.gather(
            asked(backend, Complete(tuple(calls))), *[asked(backend, Complete((c,))) for c in calls]
        )

    whole, *single = asyncio.run(main())
    assert len(model.calls) == 2
    assert [c.text for c in whole] == ["clean/0", "clean/1"] * 3 == [s[0].text for s in single]


def test_a_failed_leader_fails_its_followers_alike_and_the_next_call_is_sent() -> None:
    class Breaking(Talker):
        async def complete(self, call: Call) -> Completion:
            await asyncio.sleep(0)
            if len(self.calls) == 0:
                self.calls.append(call)
                raise RuntimeError("a bug of the provider")
            return await super().complete(call)

    model = Breaking()

    async def main() -> Any:
        backend = backend_of(model)
        first = await asyncio.gather(*[asked(backend, Complete((CALL,))) for _ in range(3)], return_exceptions=True)
        return first, await asked(backend, Complete((CALL,)))

    first, second = asyncio.run(main())
    assert [str(x) for x in first] == ["a bug of the provider"] * 3
    assert second[0].status == "ok"


def test_events_and_tally_count_calls_tokens_cost_and_faults(tmp_path: Path) -> None:
    told: list[Event] = []
    tally = Tally(price=lambda done, model: 0.5 if model == "toy/a" else None)
    model = Talker(
        lambda call: (
            Completion(status="error", reason="http_500", attempts=3) if "bad" in call.replica else "VERDICT: 7"
        )
    )

    async def main() -> None:
        backend = backend_of(model, tmp_path / "l.sqlite", listener=fan(tally, told.append))
        for replica in ("clean/0", "clean/0", "bad/0"):
            await asked(backend, Complete((replace(CALL, replica=replica, role="judge"),)))

    asyncio.run(main())
    assert (tally.asked, tally.sent, tally.saved, tally.again) == (3, 2, 1, 2)
    assert (tally.prompt_tokens, tally.completion_tokens, tally.cost) == (10, 2, 1.0)
    assert tally.faults == Counter({"http_500": 1}) and tally.sent_by_role == Counter(judge=2)
    assert [e.kind for e in told] == [
        "asked",
        "sent",
        "answered",
        "asked",
        "saved",
        "asked",
        "sent",
        "fault",
        "answered",
    ]


def test_nothing_is_sent_once_the_run_is_stopping() -> None:
    model = Talker()

    async def main() -> None:
        backend = backend_of(model)
        backend.stopping = True
        await asked(backend, Complete((CALL,)))

    with pytest.raises(Incomplete, match="stopping"):
        asyncio.run(main())
    assert not model.calls


def test_what_a_model_cannot_do_and_what_nothing_answers_is_said() -> None:
    async def main(ask: Any) -> None:
        await asked(backend_of(Talker()), ask)

    with pytest.raises(PlanError, match="cannot answer Weigh"):
        asyncio.run(main(Weigh((LabelCall(CALL, ("A",)),))))
    with pytest.raises(PlanError, match="cannot answer Spell"):
        asyncio.run(main(Spell("toy/a", ((1,),))))
    with pytest.raises(PlanError, match="outside of a trial"):
        asyncio.run(main(Score(("x",))))


def test_measures_are_answered_by_the_rater_or_unknown() -> None:
    case = Case("c", "t", "r")

    async def later(name: str, case: Case, texts: Any) -> Any:
        return tuple(float(len(t)) for t in texts)

    async def main(rate: Any) -> Any:
        return await asked(backend_of(Talker(), rate=rate), Measure("chrf", case, ("a", "bb")))

    assert asyncio.run(main(None)) == (None, None)
    assert asyncio.run(main(later)) == (1.0, 2.0)
    assert asyncio.run(main(lambda name, case, texts: (0.5, None))) == (0.5, None)


# ------------------------------------------------------------------ caps


PRICE = {"toy/a": (1000.0, 2000.0)}


@settings(max_examples=30, deadline=None)
@given(limit=st.floats(0.1, 3.0), used=st.integers(0, 100))
def test_the_cost_of_a_run_never_passes_its_cap(limit: float, used: int) -> None:
    model = Talker(lambda call: Completion("x", usage=Usage(5, used)), delay=0.0)
    caps = Caps(max_cost=limit, price=PRICE.get)

    async def main() -> None:
        backend = backend_of(model, caps=caps)
        calls = [asked(backend, Complete((replace(CALL, replica=f"clean/{i}"),))) for i in range(30)]
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(main())
    cost = len(model.calls) * (5 * 1000 + used * 2000) / 1e6
    assert cost <= limit + 1e-9
    assert caps.spent == pytest.approx(cost) and caps.held == pytest.approx(0.0) and caps.flying == 0


def test_a_call_waits_for_calls_in_flight_that_could_free_money() -> None:
    model = Talker(lambda call: Completion("x", usage=Usage(1, 1)), delay=0.005)
    bound = Caps(max_cost=1.0, price=PRICE.get).bound(CALL)
    caps = Caps(max_cost=bound * 1.5, price=PRICE.get)

    async def main() -> None:
        backend = backend_of(model, caps=caps)
        await asyncio.gather(*[asked(backend, Complete((replace(CALL, replica=f"clean/{i}"),))) for i in range(8)])

    asyncio.run(main())
    assert len(model.calls) == 8


def test_caps_say_what_was_reached_and_need_a_price() -> None:
    async def main(caps: Caps) -> None:
        backend = backend_of(Talker(), caps=caps)
        await asked(backend, Complete((CALL,)))

    with pytest.raises(BudgetSpent, match="--max-calls 0"):
        asyncio.run(main(Caps(max_calls=0)))
    with pytest.raises(BudgetSpent, match="--max-cost"):
        asyncio.run(main(Caps(max_cost=0.0001, price=PRICE.get)))
    with pytest.raises(PlanError, match="price for toy/a"):
        asyncio.run(main(Caps(max_cost=1.0, price=lambda name: None)))


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False))
def test_single_precision_is_reached_once(x: float) -> None:
    assert float32(float32(x)) == float32(x)


def test_each_call_of_a_batch_is_weighed_by_its_own_model(tmp_path: Path) -> None:
    """A panel's calls stand in one ask; the ledger keeps each model's part."""

    class Weigher(Talker):
        def __init__(self, name: str, value: float) -> None:
            super().__init__()
            self.name, self.identity, self.value, self.weighed = name, name, value, 0

        async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]:
            assert all(c.call.model == self.name for c in calls)
            self.weighed += len(calls)
            return tuple(Weights((self.value,), (False,)) for _ in calls)

    models = {n: Weigher(n, v) for n, v in (("toy/a", -1.0), ("toy/b", -2.0))}
    order = ("toy/b", "toy/a", "toy/b", "toy/a")
    ask = Weigh(tuple(LabelCall(replace(CALL, model=name), ("A",)) for name in order))

    async def main() -> Any:
        backend = Backend(lambda name: models[name], Ledger(Writer(), tmp_path / "l.sqlite"))
        return await asked(backend, ask), await asked(backend, ask)

    first, second = asyncio.run(main())
    assert [w.logprobs[0] for w in first] == [-2.0, -1.0, -2.0, -1.0] == [w.logprobs[0] for w in second]
    assert [m.weighed for m in models.values()] == [2, 2]
