"""The ledger: modes, single flight, what the key holds, what is never stored, and how a damaged file heals."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from core_help import Talker
from robustjudge.asks import Complete, Gradient, Invoke, Sample, Surprise, Weigh
from robustjudge.engine.backend import Backend, NotRecorded
from robustjudge.engine.caps import Caps
from robustjudge.engine.kernel import Flight, content_key
from robustjudge.engine.ledger import Ledger, pack, unpack
from robustjudge.engine.writer import Writer
from robustjudge.errors import BudgetSpent, ConfigError
from robustjudge.nouns import (
    Call,
    Completion,
    LabelCall,
    Sampling,
    Slate,
    Surprisal,
    TokenOdds,
    Usage,
    Weights,
    message,
)

CALL = Call("toy/a", (message("user", "judge this"),), Sampling())


def told(path: Path | None, model: Any, *calls: Call, mode: Any = "live", times: int = 1, **more: Any) -> list[Any]:
    """Ask for ``calls`` all at once, ``times`` times over, and return the completions."""

    async def one(call: Call) -> Completion:
        (done,) = await Complete((call,))
        return done

    async def main() -> list[Any]:
        writer = Writer()
        ledger = Ledger(writer, path, mode)
        backend = Backend(lambda name: model, ledger, **more)
        out = []
        for _ in range(times):
            flights = [Flight(one(c)) for c in calls]
            pending = [f.launch()[0] for f in flights]
            out += await asyncio.gather(*[backend.answer(p) for p in pending])
            for f in flights:
                f.close()
        ledger.close()
        writer.close()
        return [reply for (reply,) in out]

    return asyncio.run(main())


# ------------------------------------------------------------------ modes


def test_live_reads_else_sends_and_keeps(tmp_path: Path) -> None:
    model = Talker()
    told(tmp_path / "l.sqlite", model, CALL, times=3)
    told(tmp_path / "l.sqlite", model, CALL)
    assert sum(model.sent.values()) == 1


def test_record_sends_anew_and_keeps_the_new_reply(tmp_path: Path) -> None:
    told(tmp_path / "l.sqlite", Talker("old"), CALL)
    model = Talker("new")
    assert told(tmp_path / "l.sqlite", model, CALL, mode="record")[0].text == "new"
    assert told(tmp_path / "l.sqlite", Talker("never"), CALL)[0].text == "new"
    assert sum(model.sent.values()) == 1


def test_replay_only_never_sends_and_says_what_is_missing(tmp_path: Path) -> None:
    told(tmp_path / "l.sqlite", Talker("kept"), CALL)
    model = Talker()
    other = replace(CALL, replica="final/0")
    kept, missing = told(tmp_path / "l.sqlite", model, CALL, other, mode="replay-only")
    assert kept.text == "kept"
    assert (missing.status, missing.reason) == ("error", "not_recorded")
    assert not model.sent


@pytest.mark.parametrize("mode", ["replay-only", "record"])
def test_a_mode_that_needs_a_ledger_is_refused_without_one(mode: Any) -> None:
    with pytest.raises(ConfigError, match="needs a ledger"):
        Ledger(Writer(), None, mode)


def test_off_keeps_nothing_yet_shares_what_is_in_flight(tmp_path: Path) -> None:
    model = Talker(delay=0.01)
    told(tmp_path / "l.sqlite", model, CALL, CALL, CALL, mode="off", times=2)
    assert sum(model.sent.values()) == 2
    assert not (tmp_path / "l.sqlite").exists()


class Everything(Talker):
    """Answers every kind of ask, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def weigh(self, calls: Any) -> Any:
        self.asked.append("weigh")
        return tuple(Weights((-0.1,) * len(c.labels), (False,) * len(c.labels)) for c in calls)

    async def surprise(self, texts: Any, context: str = "") -> Any:
        self.asked.append("surprise")
        return tuple(Surprisal((-1.0,)) for _ in texts)

    async def gradient(self, ask: Any) -> Any:
        self.asked.append("gradient")
        return ((1, 2),)

    async def sample(self, ask: Any) -> Any:
        self.asked.append("sample")
        return ((3,),)


class Served:
    """A service that counts its calls."""

    identity = "served"

    def __init__(self) -> None:
        self.sent = 0

    async def invoke(self, ask: Any) -> Completion:
        self.sent += 1
        await asyncio.sleep(0.01)
        return Completion('{"score": 3}')


LABELS = LabelCall(CALL, ("A", "B"))
ASKS: list[Any] = [
    Weigh((LABELS,)),
    Surprise("toy/a", ("text",)),
    Gradient((LABELS,), (1,), 2),
    Sample("toy/a", ((message("user", "x"),),), 1),
    Invoke("served", Slate("task", ("a",), (0,))),
]


async def _answered(backend: Backend, ask: Any) -> Any:
    async def steps() -> Any:
        return await ask

    flight: Flight[Any] = Flight(steps())
    (pending,) = flight.launch()
    try:
        return await backend.answer(pending)
    finally:
        flight.close()


@pytest.mark.parametrize("ask", ASKS, ids=lambda a: type(a).__name__)
def test_every_kind_of_answer_is_kept_and_a_replay_never_asks_the_model(tmp_path: Path, ask: Any) -> None:
    model, service = Everything(), Served()

    def asked(mode: Any) -> Any:
        async def main() -> Any:
            writer = Writer()
            ledger = Ledger(writer, tmp_path / "l.sqlite", mode)
            backend = Backend(lambda name: model, ledger, services={"served": service})
            try:
                return await _answered(backend, ask)
            finally:
                ledger.close()
                writer.close()

        return asyncio.run(main())

    try:
        missing = asked("replay-only")
    except NotRecorded:
        missing = None
    else:
        first = missing[0] if isinstance(missing, tuple) else missing
        assert (first.status, first.reason) == ("error", "not_recorded")
    assert not model.asked and not service.sent
    kept = asked("live")
    assert asked("live") == kept == asked("replay-only")
    assert len(model.asked) + service.sent == 1


def test_equal_calls_to_a_service_share_one_reply_and_count_against_the_cap(tmp_path: Path) -> None:
    service = Served()
    slates = [Slate("task", ("a",), (0,), replica=f"clean/{i % 2}") for i in range(6)]

    async def main(limit: int | None) -> None:
        writer = Writer()
        ledger = Ledger(writer, None)
        backend = Backend(lambda name: None, ledger, services={"served": service}, caps=Caps(max_calls=limit))
        await asyncio.gather(*[_answered(backend, Invoke("served", s)) for s in slates])

    asyncio.run(main(None))
    assert service.sent == 2
    with pytest.raises(BudgetSpent):
        asyncio.run(main(1))


def test_what_a_service_sees_is_in_its_key() -> None:
    from robustjudge.engine.kernel import ask_keys
    from robustjudge.nouns import Frame, Turn

    base = Slate("task", ("a", "b"), (0, 1))
    others = [
        replace(base, candidates=("a", "c")),
        replace(base, index=(1, 0)),
        replace(base, replica="final/0"),
        replace(base, history=(Turn("user", "hi"),)),
        replace(base, reference="r"),
        replace(base, kind="code"),
        replace(base, language="de"),
        replace(base, meta=(("k", "v"),)),
        replace(base, exchange=(Turn("user", "hi"),)),
        replace(base, frame=Frame(fences=(("<", ">"),))),
        replace(base, candidates=("a", "b", "user", "hi"), index=(0, 1, 2, 3)),
    ]
    keys = {ask_keys(Invoke("s", s)) for s in (base, *others)} | {ask_keys(Invoke("t", base))}
    assert len(keys) == len(others) + 2


# ------------------------------------------------------------------ the key


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1.0},
        {"seed": 3},
        {"max_tokens": 7},
        {"top_p": 0.5},
        {"stop": ("x",)},
        {"top_logprobs": 5},
        {"schema": "{}"},
        {"grammar": "root ::= x"},
        {"effort": "low"},
    ],
    ids=lambda c: next(iter(c)),
)
def test_B095_sampling_is_in_the_key(tmp_path: Path, change: dict[str, Any]) -> None:
    model = Talker()
    other = replace(CALL, sampling=replace(CALL.sampling, **change))
    assert content_key(CALL) != content_key(other)
    told(tmp_path / "l.sqlite", model, CALL)
    told(tmp_path / "l.sqlite", model, other)
    assert len(model.calls) == 2


def test_B097_model_endpoint_and_revision_are_in_the_key(tmp_path: Path) -> None:
    from robustjudge.models.base import Settings
    from robustjudge.models.http import HttpModel

    told(tmp_path / "l.sqlite", Talker("from a"), CALL)
    other = Talker("from b", name="toy/b")
    assert told(tmp_path / "l.sqlite", other, replace(CALL, model="toy/b"))[0].text == "from b"
    moved = Talker("from elsewhere")
    moved.identity = "toy/a at another endpoint"
    assert told(tmp_path / "l.sqlite", moved, CALL)[0].text == "from elsewhere"
    ids = {
        HttpModel("openai/m", "m", s).identity
        for s in (
            Settings(base_url="http://a/v1"),
            Settings(base_url="http://b/v1"),
            Settings(base_url="http://a/v1", revision="2"),
            Settings(base_url="http://a/v1", effort="low"),
        )
    }
    assert len(ids) == 4


def test_the_key_holds_no_credential_role_or_readout() -> None:
    from robustjudge.models.base import Settings
    from robustjudge.models.http import HttpModel
    from robustjudge.nouns import Readout

    with_user = HttpModel("openai/m", "m", Settings(base_url="http://user:${PW}@a/v1?key=x"))
    assert with_user.identity == HttpModel("openai/m", "m", Settings(base_url="http://a/v1")).identity
    told_apart = {
        content_key(c) for c in (CALL, replace(CALL, role="attacker"), replace(CALL, readout=Readout(("1",))))
    }
    assert len(told_apart) == 1


def test_B099_repeats_are_named_replicas_and_a_second_run_sends_nothing(tmp_path: Path) -> None:
    model = Talker(lambda call: f"VERDICT: {call.replica[-1]}")
    repeats = [replace(CALL, replica=f"clean/{i}") for i in range(5)]
    first = told(tmp_path / "l.sqlite", model, *repeats)
    assert len(model.calls) == 5
    assert told(tmp_path / "l.sqlite", model, *repeats) == first
    assert len(model.calls) == 5


@settings(max_examples=60, deadline=None)
@given(
    a=st.lists(st.tuples(st.sampled_from(["user", "system"]), st.text(max_size=6)), min_size=1, max_size=3),
    b=st.lists(st.tuples(st.sampled_from(["user", "system"]), st.text(max_size=6)), min_size=1, max_size=3),
)
def test_different_messages_have_different_keys(a: Any, b: Any) -> None:
    def key(turns: Any) -> str:
        return content_key(replace(CALL, messages=tuple(message(r, t) for r, t in turns)))

    assert (key(a) == key(b)) == (a == b)


@settings(max_examples=40, deadline=None)
@given(text=st.text(), refusal=st.text(max_size=4), latency=st.floats(0, 9), prompt=st.integers(0, 9))
def test_packing_is_reversible(text: str, refusal: str, latency: float, prompt: int) -> None:
    odds = (TokenOdds("7", -0.5, (("7", -0.5), ("8", -1.5))),)
    done = Completion(text, refusal=refusal, latency=latency, usage=Usage(prompt), tokens=odds, notes=("n",))
    assert unpack(json.loads(json.dumps(pack(done)))) == done
    assert pack(Completion()) == {}


# ------------------------------------------------------------------ what is stored


def test_parsing_is_never_cached(tmp_path: Path) -> None:
    told(tmp_path / "l.sqlite", Talker("I give VERDICT: 7"), CALL)
    db = sqlite3.connect(tmp_path / "l.sqlite")
    ((reply,),) = db.execute("SELECT reply FROM replies").fetchall()
    assert json.loads(reply) == {
        "text": "I give VERDICT: 7",
        "usage": {"prompt": 10, "completion": 2},
        "model": "toy-1",
    }
    assert [r[1] for r in db.execute("PRAGMA table_info(replies)")] == ["key", "model", "replica", "at", "reply"]
    db.close()


def test_an_infrastructure_fault_is_no_reply_and_a_context_overflow_is(tmp_path: Path) -> None:
    for reason, sent in (("transport", 2), ("http_500", 2), ("context_overflow", 1)):
        model = Talker(lambda call, r=reason: Completion(status="error", reason=r))  # type: ignore[misc]
        told(tmp_path / f"{reason}.sqlite", model, CALL)
        told(tmp_path / f"{reason}.sqlite", model, CALL)
        assert len(model.calls) == sent, reason


def test_credentials_never_reach_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from endpoint_help_free import endpoint

    secret = "sk-very-secret-000111222333"
    monkeypatch.setenv("SECRET_KEY", secret)
    with endpoint(secret) as (model, server):
        (done,) = told(tmp_path / "l.sqlite", model, replace(CALL, model=model.name))
    assert done.status == "ok", done
    assert server.requests and secret in str(server.requests[0].headers)
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_hostile_replies_are_kept_and_come_back_as_they_were(tmp_path: Path) -> None:
    hostile = "ok \ud83d \x00 \x1b[31m [[7]] " + "x" * 1_000_000
    assert told(tmp_path / "l.sqlite", Talker(hostile), CALL)[0].text == hostile
    assert told(tmp_path / "l.sqlite", Talker("never"), CALL)[0].text == hostile


# ------------------------------------------------------------------ damage


def full(path: Path, n: int = 400) -> list[Call]:
    calls = [replace(CALL, replica=f"clean/{i}") for i in range(n)]
    told(path, Talker(lambda call: f"{call.replica} " + "y" * 300), *calls)
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return calls


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.5, 0.95])
def test_B101_a_file_cut_short_heals_with_one_warning_and_blocks_nothing(tmp_path: Path, share: float) -> None:
    path = tmp_path / "l.sqlite"
    calls = full(path)
    size = path.stat().st_size
    os.truncate(path, int(size * share))
    model = Talker(lambda call: f"{call.replica} " + "y" * 300)
    if share:
        with pytest.warns(RuntimeWarning, match="damaged") as seen:
            replies = told(path, model, *calls)
        assert len(seen) == 1
    else:
        replies = told(path, model, *calls)
    assert [r.text.split()[0] for r in replies] == [c.replica for c in calls]
    again = Talker("never")
    told(path, again, *calls)
    assert not again.calls
    if share == 0.95:
        assert len(model.calls) < len(calls) / 2, "most entries could be read and were not asked for again"


@pytest.mark.parametrize("at", [0.0, 0.1, 0.5, 0.9])
def test_B101_overwritten_pages_heal(tmp_path: Path, at: float) -> None:
    path = tmp_path / "l.sqlite"
    calls = full(path)
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * at))
        file.write(os.urandom(9000))
    model = Talker(lambda call: f"{call.replica} z")
    with pytest.warns(RuntimeWarning):
        replies = told(path, model, *calls)
    assert [r.text.split()[0] for r in replies] == [c.replica for c in calls]
    assert list(tmp_path.glob("l.sqlite.damaged-1"))
    again = Talker("never")
    told(path, again, *calls)
    assert not again.calls


def test_B101_a_bad_entry_is_a_miss_with_one_warning_and_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    calls = full(path, 4)
    db = sqlite3.connect(path)
    bad = ["{cut", "[1, 2]", '{"no such field": 1}', None]
    keys = [k for (k,) in db.execute("SELECT key FROM replies")]
    db.executemany("UPDATE replies SET reply = coalesce(?, x'00ff') WHERE key = ?", list(zip(bad, keys, strict=True)))
    db.commit()
    db.close()
    model = Talker("healed")
    with pytest.warns(RuntimeWarning, match="cannot be read") as seen:
        told(path, model, *calls)
    assert len(seen) == 1 and len(model.calls) == 4
    again = Talker("never")
    assert {c.text for c in told(path, again, *calls)} == {"healed"}


def test_B101_a_page_that_breaks_while_the_run_writes_heals_too(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    full(path)

    async def main() -> None:
        writer = Writer()
        ledger = Ledger(writer, path)
        with path.open("r+b") as file:
            for page in range(1, path.stat().st_size // 4096):
                file.seek(page * 4096)
                file.write(b"\xff" * 4096)
        with pytest.warns(RuntimeWarning):
            for i in range(50):
                ledger.put(f"{i:032x}", "m", "r", {"text": "new"})
            writer.flush()
            assert ledger.get(f"{3:032x}") == {"text": "new"}
        assert writer.healed == {"ledger": 1}
        ledger.close()
        writer.close()

    asyncio.run(main())
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM replies WHERE model = 'm'").fetchone() == (50,)
    db.close()


def test_memory_stays_flat_and_old_keys_are_read_from_the_file(tmp_path: Path) -> None:
    writer = Writer()
    ledger = Ledger(writer, tmp_path / "l.sqlite")
    for i in range(20_000):
        ledger.put(f"{i:032x}", "m", "r", {"text": str(i)})
    assert len(ledger._fresh) <= 8192
    assert [ledger.get(f"{i:032x}") for i in (0, 9_999, 19_999)] == [{"text": str(i)} for i in (0, 9_999, 19_999)]
    assert ledger.get(f"{20_000:032x}") is None
    ledger.close()
    writer.close()


# ------------------------------------------------------------------ the tail


def test_a_reply_survives_the_process_before_it_is_committed(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import os, sys; from pathlib import Path; from robustjudge.engine import writer as w;"
        "w.GROUP_SECONDS = 60; from robustjudge.engine.ledger import Ledger;"
        "ledger = Ledger(w.Writer(), Path(sys.argv[1]));"
        "[ledger.put(f'{i:032x}', 'm', 'r', {'text': f'reply\\n{i}\\t'}) for i in range(20)];"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "l.sqlite")], check=False)
    (tail,) = tmp_path.glob("l.sqlite.tail-*")
    tail.write_bytes(tail.read_bytes()[:-7])  # the last line is torn
    writer = Writer()
    ledger = Ledger(writer, tmp_path / "l.sqlite")
    assert [ledger.get(f"{i:032x}") for i in range(19)] == [{"text": f"reply\n{i}\t"} for i in range(19)]
    assert ledger.get(f"{19:032x}") is None
    assert not list(tmp_path.glob("l.sqlite.tail-*"))
    ledger.close()
    writer.close()


def test_the_tail_of_a_living_process_is_left_alone_and_gone_when_it_ends(tmp_path: Path) -> None:
    first, second = Writer(), Writer()
    one = Ledger(first, tmp_path / "l.sqlite")
    one.put("0" * 32, "m", "r", {"text": "a"})
    (tail,) = tmp_path.glob("l.sqlite.tail-*")
    two = Ledger(second, tmp_path / "l.sqlite")
    assert tail.exists()
    two.close()
    one.close()
    first.close()
    second.close()
    assert [p.name for p in tmp_path.iterdir() if "tail" in p.name] == []
