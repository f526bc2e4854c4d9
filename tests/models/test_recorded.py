"""Recorded replies come back as they were, by prompt and replica, and nothing else is answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import door
from robustjudge.errors import ConfigError, DataError
from robustjudge.models import scripted
from robustjudge.models.recorded import Recorded, Recorder, prompt_hash, row
from robustjudge.nouns import Call, Completion, Message, Text, Usage, message


def ask(model: Recorded | Recorder, text: str, replica: str = "clean/0") -> Completion:
    return asyncio.run(model.complete(Call("recorded/x", (message("user", text),), replica=replica)))


def write(folder: Path, *lines: object) -> Path:
    path = folder / "replies.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines), encoding="utf-8")
    return path


def test_replica_first_then_any_then_miss(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"prompt": "one", "reply": "VERDICT: 3"},
        {"messages": [{"role": "user", "content": "one"}], "replica": "clean/1", "reply": "VERDICT: 4"},
        "",
        {"hash": prompt_hash((message("user", "two"),)), "reply": {"status": "refused", "refusal": "No."}},
    )
    model = Recorded(path)
    assert ask(model, "one").text == "VERDICT: 3"
    assert ask(model, "one", "clean/1").text == "VERDICT: 4"
    assert (ask(model, "two").status, ask(model, "two").refusal) == ("refused", "No.")
    assert (ask(model, "three").status, ask(model, "three").reason) == ("error", "not_recorded")


def test_roles_and_part_borders() -> None:
    split = (Message("user", (Text("on"), Text("e", "task"))),)
    assert prompt_hash(split) == prompt_hash((message("user", "one"),)), "how a text is cut into parts is not content"
    assert prompt_hash((message("system", "one"),)) != prompt_hash((message("user", "one"),))


@given(
    st.text(max_size=80),
    st.text(max_size=80),
    st.sampled_from(["ok", "refused", "truncated"]),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_what_is_recorded_is_replayed(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, reply: str, status: str, tokens: int
) -> None:
    path = tmp_path_factory.mktemp("rec") / "r.jsonl"
    call = Call("m", (message("user", prompt),), replica="final/2")
    said = Completion(door.safe(reply), status, "length", usage=Usage(tokens, 3), model="m")  # type: ignore[arg-type]
    path.write_text(json.dumps(row(call, said)) + "\n", encoding="utf-8")
    assert asyncio.run(Recorded(path).complete(call)) == said


def test_recorder_writes_replies_and_leaves_faults_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def record() -> list[Completion]:
        recorder = Recorder(scripted.Noisy(), path)
        calls = [Call("m", (message("user", f"Rate 1-10: {i}\ud800"),), replica=f"clean/{i}") for i in range(5)]
        said = [await recorder.complete(c) for c in calls]
        await recorder.close()
        dead = Recorder(scripted.Down(), path)
        await dead.complete(calls[0])
        await dead.close()
        replay = Recorded(path)
        assert [await replay.complete(c) for c in calls] == said
        return said

    asyncio.run(record())
    assert len(path.read_text(encoding="utf-8").splitlines()) == 5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON"),
        ({"prompt": "x"}, "reply"),
        ({"reply": "x"}, "prompt"),
        ({"messages": [], "reply": "x"}, "messages"),
        ({"prompt": "x", "reply": 3}, "reply"),
        ({"prompt": "x", "reply": {"text": 3}}, "reply"),
        ({"prompt": "x", "reply": {"txt": "x"}}, "txt"),
        ({"prompt": "x", "reply": {"status": "fine"}}, "fine"),
        ({"prompt": "x", "reply": {"usage": {"words": 1}}}, "usage"),
        ({"prompt": "x", "replica": 1, "reply": "x"}, "replica"),
    ],
)
def test_bad_rows_name_their_line(tmp_path: Path, line: object, why: str) -> None:
    with pytest.raises(DataError, match=f"line 2.*{why}"):
        Recorded(write(tmp_path, {"prompt": "a", "reply": "b"}, line))


def test_missing_file_and_changed_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        Recorded(tmp_path / "none.jsonl")
    before = Recorded(write(tmp_path, {"prompt": "a", "reply": "b"})).identity
    assert Recorded(write(tmp_path, {"prompt": "a", "reply": "c"})).identity != before
