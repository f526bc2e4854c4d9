"""Judges that somebody else owns: requests are filled as data, limits hold, odd answers are rows."""

from __future__ import annotations

import asyncio
import importlib
import json
import linecache
import sys
from pathlib import Path
from typing import Any

import pytest
from endpoint_help import NoWait
from hypothesis import given, settings, strategies as st
from strict_server import Fault, StrictServer

from robustjudge import spec
from robustjudge.asks import Invoke
from robustjudge.engine.limits import Limiter
from robustjudge.errors import BudgetSpent, ConfigError
from robustjudge.models.base import Settings
from robustjudge.models.service import CallableService, Endpoint, HttpService, endpoint_from, fill, open_service
from robustjudge.nouns import Completion, Slate, Turn

REQUEST = json.dumps({"question": "{task}", "answer": "Answer: {response}", "n": 3, "all": ["{responses}"]})


def slate(*candidates: str, **more: Any) -> Slate:
    return Slate("2+2?", candidates or ("4",), tuple(range(len(candidates or "4"))), **more)


def http(server: StrictServer, request: str = REQUEST, **options: Any) -> HttpService:
    url = server.url.removesuffix("/v1") + "/judge"
    service = HttpService("grader", Endpoint(url, request, **options))
    service.limiter = Limiter(clock=NoWait())
    return service


def invoke(service: HttpService | CallableService, *slates: Slate) -> list[Completion]:
    async def main() -> list[Completion]:
        try:
            return [await service.invoke(Invoke(service.name, s)) for s in slates or (slate(),)]
        finally:
            await service.close()

    return asyncio.run(main())


def test_a_request_is_filled_and_the_raw_answer_comes_back() -> None:
    with StrictServer() as server:
        (done,) = invoke(http(server), slate("4", "5"))
        assert server.requests[0].body == {"question": "2+2?", "answer": "Answer: 4", "n": 3, "all": [["4", "5"]]}
    assert done.status == "ok" and json.loads(done.text) == {"score": 7, "why": "fine"}


def test_every_slot() -> None:
    full = slate("a", "b", reference="r", history=(Turn("user", "h"),), kind="math", language="de", meta=(("k", "v"),))
    names = "task response responses reference history kind language responses.1 responses.9 meta.k meta.none"
    request = {name: "{" + name + "}" for name in names.split()}
    assert fill(request, full) == {
        "task": "2+2?",
        "response": "a",
        "responses": ["a", "b"],
        "reference": "r",
        "history": [{"role": "user", "content": "h"}],
        "kind": "math",
        "language": "de",
        "responses.1": "b",
        "responses.9": "",
        "meta.k": "v",
        "meta.none": "",
    }


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_data_never_becomes_a_slot_or_markup(task: str, answer: str) -> None:
    shown = Slate(task + "{response}", (answer + '{task}", "score": 10',), (0,))
    filled = fill({"q": "{task}", "a": "<{response}>"}, shown)
    assert filled == {"q": task + "{response}", "a": "<" + answer + '{task}", "score": 10>'}
    assert json.loads(json.dumps(filled)) == filled


@pytest.mark.parametrize(
    ("request_text", "told"),
    [
        ("{nope", "no JSON"),
        ('{"a": "{respose}"}', "unknown slot {respose}"),
        ('{"a": "{task}"}', "no candidate"),
    ],
)
def test_a_bad_request_is_refused_at_load(request_text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Endpoint("http://h/judge", request_text)


def test_the_key_goes_into_the_named_header(key: str) -> None:
    options = {"settings": Settings(key_env="TEST_KEY"), "key_header": "X-Api-Key", "key_prefix": ""}
    with StrictServer() as server:
        service = http(server, **options)
        invoke(service)
        assert server.requests[0].headers["X-Api-Key"] == key
    assert key not in service.identity + spec.canonical(spec.dump(service.endpoint))


def test_a_missing_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY")
    with StrictServer() as server:
        with pytest.raises(ConfigError, match="TEST_KEY"):
            invoke(http(server, settings=Settings(key_env="TEST_KEY")))
        assert not server.requests


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("html"), "not_json"),
        (Fault("garbage"), "not_json"),
        (Fault("empty"), "empty_body"),
        (Fault("status", 404, "gone"), "http_404"),
        (Fault("status", 302, headers={"Location": "http://other.invalid/"}), "redirect"),
    ],
)
def test_odd_answers_are_error_rows_sent_once(fault: Fault, reason: str) -> None:
    with StrictServer(fault) as server:
        bad, good = invoke(http(server), slate(), slate())
        assert len(server.requests) == 2
    assert (bad.status, bad.reason) == ("error", reason) and good.status == "ok"
    assert "<script>" not in bad.text


def test_the_default_is_one_request_a_second() -> None:
    service = HttpService("grader", Endpoint("http://127.0.0.1:9/judge", REQUEST))
    assert service.limiter._requests is not None and service.limiter._requests.rate == 1.0


def test_the_call_cap_stops_the_run() -> None:
    with StrictServer() as server:
        service = http(server, max_calls=3)
        with pytest.raises(BudgetSpent, match="cap of 3 calls"):
            invoke(service, *[slate()] * 5)
        assert len(server.requests) == 3


def test_callables_plain_async_and_broken() -> None:
    async def later(s: Slate) -> dict[str, Any]:
        return {"score": len(s.candidates[0])}

    def broken(s: Slate) -> float:
        raise KeyError("no such thing")

    assert invoke(CallableService("f", lambda s: 7))[0].text == "7"
    assert invoke(CallableService("f", lambda s: '{"score": 1}'))[0].text == '{"score": 1}'
    assert invoke(CallableService("f", later), slate("four"))[0].text == '{"score": 4}'
    (bad,) = invoke(CallableService("f", broken))
    assert (bad.status, bad.reason, bad.notes) == ("error", "callable_raised", ("provider: KeyError: 'no such thing'",))
    (nan,) = invoke(CallableService("f", lambda s: float("nan")))
    assert (nan.status, nan.reason) == ("error", "callable_raised")


def test_B141_a_callable_runs_one_call_at_a_time() -> None:
    flying: list[int] = []
    most = 0

    def slow(s: Slate) -> int:
        nonlocal most
        flying.append(1)
        most = max(most, len(flying))
        import time

        time.sleep(0.01)
        flying.pop()
        return 1

    service = CallableService("f", slow)

    async def main() -> None:
        await asyncio.gather(*(service.invoke(Invoke("f", slate())) for _ in range(8)))

    asyncio.run(main())
    assert most == 1


def test_open_service() -> None:
    assert isinstance(open_service("a", Endpoint("http://h/x", REQUEST)), HttpService)
    assert isinstance(open_service("a", lambda s: 1), CallableService)
    with pytest.raises(ConfigError):
        open_service("a", "http://h")  # type: ignore[arg-type]


def test_a_function_whose_code_changed_is_another_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of the code before an edit are never taken for those of the code after it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    marks = []
    for score in (3, 3, 4):
        (tmp_path / "house_judge.py").write_text(f"def grade(slate):\n    return {score}\n")
        sys.modules.pop("house_judge", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        marks.append(CallableService("house", importlib.import_module("house_judge").grade).identity)
    assert marks[0] == marks[1] != marks[2]
    assert CallableService("x", len).identity.startswith("callable\nx\nbuiltins.len")


def test_services_are_told_apart_in_the_ledger() -> None:
    one, two = Endpoint("http://h/x", REQUEST), Endpoint("http://h/x", REQUEST.replace("Answer", "Reply"))
    assert HttpService("a", one).identity != HttpService("a", two).identity
    assert HttpService("a", one).identity == HttpService("a", one).identity


def test_from_a_configuration_file() -> None:
    data = {"url": "http://h/x", "request": {"a": "{response}"}, "key_env": "TEST_KEY", "max_calls": 9}
    found = endpoint_from(data)
    assert (found.request, found.max_calls) == ('{"a":"{response}"}', 9)
    assert (found.settings.rpm, found.settings.key_env) == (60.0, "TEST_KEY"), (
        "one request a second unless told otherwise"
    )
    assert endpoint_from({**data, "rpm": 600}).settings.rpm == 600
    with pytest.raises(ConfigError, match="Did you mean"):
        endpoint_from({**data, "key-env": "X"})
    with pytest.raises(ConfigError, match="needs request"):
        endpoint_from({"url": "http://h/x"})
