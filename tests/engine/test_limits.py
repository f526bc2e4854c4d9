"""The limiter: window, rates, retries and quota, on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import deque

import pytest
from hypothesis import given, settings, strategies as st
from virtual_time import VirtualClock, run

from robustjudge.engine.limits import AFTER_PROBE, PATIENCE, Attempt, Bucket, Limiter
from robustjudge.errors import QuotaExhausted
from robustjudge.nouns import Completion, Usage

OK = Attempt(Completion("VERDICT: 7"))


def fault(kind: str, *, slow: bool | str = False, wait: float | None = None) -> Attempt:
    return Attempt(
        Completion(status="error", reason=kind), "retry", kind, "limit" if slow is True else slow or "", wait
    )  # type: ignore[arg-type]


QUOTA = Attempt(Completion(status="error", reason="quota", notes=("provider: pay first",)), "quota", "quota")


def limiter(**options: object) -> Limiter:
    options.setdefault("draw", random.Random(1).random)
    return Limiter(clock=VirtualClock(), **options)  # type: ignore[arg-type]


class Script:
    """Attempts answered from a list, then ``OK``; each takes ``latency`` seconds."""

    def __init__(self, *results: Attempt, latency: float = 0.0) -> None:
        self.results, self.latency = deque(results), latency
        self.times: list[float] = []
        self.flying = self.most = 0

    async def __call__(self) -> Attempt:
        self.times.append(asyncio.get_running_loop().time())
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            await asyncio.sleep(self.latency)
            return self.results.popleft() if self.results else OK
        finally:
            self.flying -= 1


def test_three_faults_then_success_is_one_answer_with_a_trace_of_four() -> None:
    script = Script(fault("timeout"), fault("http_500"), fault("transport"))

    async def main() -> tuple[Completion, Limiter]:
        limits = limiter()
        return await limits.send(script), limits

    completion, limits = run(main())
    assert (completion.status, completion.attempts) == ("ok", 4)
    assert completion.notes == ("fault:timeout", "fault:http_500", "fault:transport")
    assert (limits.counters.sent, limits.counters.retried, limits.counters.answered) == (4, 3, 1)
    assert limits.counters.faults == {"timeout": 1, "http_500": 1, "transport": 1}


def test_four_faults_are_an_error_row_and_no_fifth_request() -> None:
    script = Script(*[fault("http_503", slow=True)] * 9)

    async def main() -> tuple[Completion, Limiter]:
        limits = limiter()
        return await limits.send(script), limits

    completion, limits = run(main())
    assert (completion.status, completion.reason, completion.attempts) == ("error", "http_503", 4)
    assert len(script.times) == 4
    assert (limits.counters.failed, limits.counters.answered) == (1, 0)


@pytest.mark.parametrize("reason", ["http_400", "context_overflow", "bad_body"])
def test_a_final_failure_is_sent_once(reason: str) -> None:
    script = Script(Attempt(Completion(status="error", reason=reason)))
    events: list[tuple[str, str]] = []

    async def main() -> Completion:
        return await limiter(on_event=lambda kind, detail, value: events.append((kind, detail))).send(script)

    completion = run(main())
    assert (completion.reason, completion.attempts, len(script.times)) == (reason, 1, 1)
    assert ("fault", reason) in events


def test_a_bad_verdict_is_never_retried() -> None:
    for status in ("ok", "refused", "truncated"):
        script = Script(Attempt(Completion("no number here", status)))  # type: ignore[arg-type]
        assert run(_send(script)).status == status
        assert len(script.times) == 1


async def _send(script: Script, **options: object) -> Completion:
    return await limiter(**options).send(script)


def test_adapting_sends_again_at_once_and_is_no_retry() -> None:
    adapt = Attempt(Completion(status="error", reason="http_400"), "adapt")
    script = Script(adapt, adapt, *[fault("http_500")] * 3)
    completion = run(_send(script))
    assert completion.status == "ok" and completion.attempts == 6
    assert script.times[:3] == [0.0, 0.0, 0.0]


def test_passing_faults_back_off_exponentially_with_full_jitter() -> None:
    for share in (0.0, 0.5, 1.0):
        script = Script(*[fault("http_500")] * 3)
        run(_send(script, draw=lambda share=share: share))
        gaps = [b - a for a, b in zip(script.times, script.times[1:])]
        assert gaps == [1.0 * share, 2.0 * share, 4.0 * share]


def test_overload_backs_off_further_and_narrows_but_holds_nobody() -> None:
    script = Script(*[fault("http_529", slow="overload")] * 3)
    run(_send(script, draw=lambda: 1.0))
    assert [b - a for a, b in zip(script.times, script.times[1:])] == [4.0, 8.0, 16.0]

    async def main() -> tuple[float, float]:
        limits = limiter()
        limits.window, limits._probed = 16.0, True
        first = asyncio.create_task(limits.send(Script(fault("http_529", slow="overload"), latency=0.1)))
        await asyncio.sleep(0.2)
        window = limits.window
        await limits.send(Script())
        now = asyncio.get_running_loop().time()
        await first
        return window, now

    assert run(main()) == (8.0, pytest.approx(0.2))


def test_one_rate_limit_holds_nobody_a_row_of_them_does() -> None:
    async def main(strikes: int) -> float:
        limits = limiter(draw=lambda: 0.0)
        limits._streak = strikes - 1
        first = asyncio.create_task(limits.send(Script(fault("http_429", slow=True))))
        await asyncio.sleep(0.0)
        await limits.send(Script())
        now = asyncio.get_running_loop().time()
        await first
        return now

    assert [run(main(n)) for n in (1, 2, 3, 4, 9)] == [0.0, 1.0, 3.0, 7.0, 60.0]


def test_retry_after_is_waited_for_and_never_undercut() -> None:
    script = Script(fault("http_429", slow=True, wait=7.0))
    run(_send(script, draw=lambda: 0.0))
    assert script.times == [0.0, 7.0]


def test_a_retry_goes_before_those_who_wait_for_their_first_try() -> None:
    async def main() -> list[float]:
        limits = limiter(ceiling=1, draw=lambda: 0.0)
        failing = Script(fault("transport"), latency=1.0)
        await asyncio.gather(limits.send(failing), *(limits.send(Script(latency=1.0)) for _ in range(20)))
        return failing.times

    first, second = run(main())
    assert second - first <= 2.0


def test_a_success_sent_before_the_rate_limit_proves_nothing() -> None:
    async def main() -> list[float]:
        limits = limiter(draw=lambda: 0.0)
        limits.window, limits._probed = 16.0, True
        earlier = asyncio.create_task(limits.send(Script(latency=5.0)))
        await asyncio.sleep(1.0)
        turned_away = Script(fault("http_429", slow=True))
        await limits.send(turned_away)
        await earlier
        return turned_away.times

    assert run(main()) == [1.0, 11.0]


def test_successes_of_others_never_shorten_a_retry_after() -> None:
    async def main() -> list[float]:
        limits = limiter(draw=lambda: 0.0)
        limits.window, limits._probed = 16.0, True
        turned_away = Script(fault("http_429", slow=True, wait=7.0))
        task = asyncio.create_task(limits.send(turned_away))
        await asyncio.gather(*(limits.send(Script(latency=1.0)) for _ in range(5)))
        await task
        return turned_away.times

    assert run(main()) == [0.0, 7.0]


def test_a_turned_away_call_goes_as_soon_as_another_gets_through() -> None:
    async def main() -> list[float]:
        limits = limiter(draw=lambda: 0.0)
        turned_away = Script(fault("http_429", slow=True))
        task = asyncio.create_task(limits.send(turned_away))
        await asyncio.sleep(3.0)
        await limits.send(Script())
        await task
        return turned_away.times

    assert run(main()) == [0.0, 3.0]


def test_a_retry_after_beyond_patience_is_an_error_row_at_once() -> None:
    script = Script(fault("http_429", slow=True, wait=PATIENCE + 1))

    async def main() -> tuple[Completion, float]:
        completion = await limiter().send(script)
        return completion, asyncio.get_running_loop().time()

    completion, now = run(main())
    assert (completion.status, completion.reason, now) == ("error", "http_429", 0.0)


def test_a_retry_after_holds_back_everybody_and_spreads_their_return() -> None:
    script = Script(*[OK] * AFTER_PROBE, fault("http_429", slow=True, wait=20.0), latency=0.01)

    async def main() -> None:
        limits = limiter()
        await asyncio.gather(*(limits.send(script) for _ in range(40)))

    run(main())
    struck = 0.02
    later = [t for t in script.times if t > struck + 0.011]
    assert later and min(later) >= 20.0
    assert len({round(t, 6) for t in later}) > 1, "the workers woke together"


def test_rate_limits_without_retry_after_outlast_a_one_minute_window_B139() -> None:
    for share in (0.0, 1.0):
        script = Script(*[fault("http_429", slow=True)] * 3)
        run(_send(script, draw=lambda share=share: share))
        assert script.times[-1] - script.times[0] > 60.0


@pytest.mark.parametrize("tells", [True, False])
def test_120_a_minute_with_four_workers_loses_no_row_B139(tells: bool) -> None:
    accepted: list[float] = []

    async def endpoint() -> Attempt:
        await asyncio.sleep(0.05)
        now = asyncio.get_running_loop().time()
        recent = [t for t in accepted if t > now - 60.0]
        if len(recent) >= 120:
            return fault("http_429", slow=True, wait=recent[0] + 60.0 - now if tells else None)
        accepted.append(now)
        return OK

    async def main() -> list[Completion]:
        limits = limiter(ceiling=4)
        return await asyncio.gather(*(limits.send(endpoint) for _ in range(500)))

    done = run(main())
    assert [c.status for c in done] == ["ok"] * 500
    assert any("fault:http_429" in c.notes for c in done), "the limit was never met: the test proves nothing"


def test_quota_is_one_request_for_the_whole_run_B137() -> None:
    script = Script(*[QUOTA] * 50, latency=0.1)

    async def main() -> list[object]:
        limits = limiter()
        many = await asyncio.gather(*(limits.send(script) for _ in range(50)), return_exceptions=True)
        return [*many, *await asyncio.gather(limits.send(script), return_exceptions=True)]

    results = run(main())
    assert len(script.times) == 1
    assert all(isinstance(r, QuotaExhausted) for r in results)
    assert {str(r) for r in results} == {"the account has no quota left (pay first); nothing more was sent"}


def test_the_first_request_goes_alone_then_the_window_doubles() -> None:
    script = Script(latency=1.0)

    async def main() -> None:
        limits = limiter(ceiling=64)
        await asyncio.gather(*(limits.send(script) for _ in range(400)))

    run(main())
    by_second = [sum(1 for t in script.times if t == s) for s in range(5)]
    assert by_second[:5] == [1, AFTER_PROBE, 2 * AFTER_PROBE, 4 * AFTER_PROBE, 64]
    assert script.most == 64


def test_a_429_halves_the_window_once_per_burst_and_growth_is_slow_afterwards() -> None:
    async def main() -> None:
        limits = limiter(ceiling=256)
        limits.window, limits._probed = 32.0, True
        script = Script(*[fault("http_429", slow=True, wait=0.0)] * 20, latency=1.0)
        tasks = [asyncio.create_task(limits.send(script)) for _ in range(20)]
        await asyncio.sleep(1.5)
        assert limits.window == 16.0, "twenty replies of one burst are one piece of news"
        await asyncio.gather(*tasks)
        before = limits.window
        calm = Script(latency=1.0)
        await asyncio.gather(*(limits.send(calm) for _ in range(int(before))))
        assert before < limits.window <= before + 1.0

    run(main())


def test_a_dead_endpoint_is_not_asked_one_call_at_a_time() -> None:
    async def main() -> float:
        limits = limiter(draw=lambda: 1.0)
        dead = Script(*[fault("transport")] * 4000)
        done = await asyncio.gather(*(limits.send(dead) for _ in range(1000)))
        assert {c.reason for c in done} == {"transport"} and {c.attempts for c in done} == {4}
        return asyncio.get_running_loop().time()

    assert run(main()) < 60.0


def test_an_idle_window_does_not_grow() -> None:
    async def main() -> float:
        limits = limiter()
        for _ in range(50):
            await limits.send(Script(latency=0.1))
        return limits.window

    assert run(main()) == AFTER_PROBE


def test_requests_per_minute_are_spaced() -> None:
    script = Script()

    async def main() -> None:
        limits = limiter(rpm=60)
        await asyncio.gather(*(limits.send(script) for _ in range(10)))

    run(main())
    assert script.times == pytest.approx([float(i) for i in range(10)])


def test_tokens_per_minute_are_estimated_then_settled() -> None:
    used = Attempt(Completion("x", usage=Usage(100, 100)))
    script = Script(*[used] * 20)

    async def main(estimate: int) -> float:
        limits = limiter(tpm=60_000)  # 1,000 a second
        for _ in range(20):
            await limits.send(script, tokens=estimate)
        return asyncio.get_running_loop().time()

    # 20 x 200 tokens are 4 seconds of supply, the first of which is in the bucket, however wrong the estimate was
    script.results = deque([used] * 20)
    assert run(main(1000)) == pytest.approx(3.8, abs=1.0)
    script.results = deque([used] * 20)
    assert run(main(50)) == pytest.approx(3.0, abs=1.0)


def test_a_cancelled_call_gives_its_place_back() -> None:
    async def main() -> int:
        limits = limiter(ceiling=1)
        slow = asyncio.create_task(limits.send(Script(latency=5.0)))
        waiting = asyncio.create_task(limits.send(Script()))
        await asyncio.sleep(1.0)
        waiting.cancel()
        slow.cancel()
        await asyncio.gather(slow, waiting, return_exceptions=True)
        assert (await limits.send(Script())).status == "ok"
        return limits.in_flight

    assert run(main()) == 0


def test_an_exception_in_an_attempt_passes_and_frees_the_place() -> None:
    async def broken() -> Attempt:
        raise RuntimeError("a bug")

    async def main() -> int:
        limits = limiter(ceiling=1)
        with pytest.raises(RuntimeError, match="a bug"):
            await limits.send(broken)
        await limits.send(Script())
        return limits.in_flight

    assert run(main()) == 0


@given(
    rate=st.floats(1.0, 10_000.0),
    amounts=st.lists(st.floats(0.1, 50.0), min_size=1, max_size=40),
    gaps=st.lists(st.floats(0.0, 3.0), min_size=40, max_size=40),
)
@settings(max_examples=60, deadline=None)
def test_a_bucket_never_exceeds_its_rate(rate: float, amounts: list[float], gaps: list[float]) -> None:
    class Hand:
        time = 0.0

        def now(self) -> float:
            return self.time

        async def sleep(self, seconds: float) -> None: ...

    clock = Hand()
    bucket = Bucket(rate, clock)
    starts = []
    for amount, gap in zip(amounts, gaps):
        clock.time += gap
        starts.append((clock.time + bucket.take(amount), amount))
    assert [t for t, _ in starts] == sorted(t for t, _ in starts)
    for i, (begin, _) in enumerate(starts):
        for j in range(i, len(starts)):
            before_last = sum(a for _, a in starts[i:j])  # what is spent before the last one starts
            span = starts[j][0] - begin
            last = min(starts[j][1], bucket.burst)
            assert before_last + last <= span * rate / 60.0 + 2 * bucket.burst + max(a for _, a in starts) + 1e-6


def test_nonsense_limits_are_refused() -> None:
    with pytest.raises(ValueError):
        Limiter(ceiling=0)
    with pytest.raises(ValueError):
        Bucket(-1, VirtualClock())
