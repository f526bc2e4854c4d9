"""Alerts: once per judge and prompt, once on recovery; a dead webhook changes nothing but is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))

from fake_api import Box
from gate_synthetic import evidence_of, ok, trial

from robustjudge.errors import ConfigError, Incomplete
from robustjudge.gate.decide import Decision, decide
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.policy import Policy
from robustjudge.gate.summary import MARKER
from robustjudge.tracking.alerts import Undelivered, Webhook, notify, sender
from robustjudge.tracking.github import put_comment


@pytest.fixture
def box() -> Iterator[Box]:
    made = Box()
    yield made
    made.server.shutdown()
    made.server.server_close()


def decided(bad: bool, judge: str = "planted", prompt: str = "t") -> tuple[Evidence, Decision]:
    rows = [trial(i, "H1", (2.0 + i % 3, 2.0 + i % 3), (ok(10.0 if bad else 2.0 + i % 3),) * 2) for i in range(60)]
    e = evidence_of(rows)
    e = replace(e, judge=judge, manifest={"state": "complete", "judges": {judge: {"template": {"name": prompt}}}})
    return e, replace(decide(e, Policy()), judge=judge)


def test_one_alert_and_one_recovery(box: Box, tmp_path: Path) -> None:
    state = tmp_path / "deep" / "alerts.json"
    send = [Webhook(f"{box.url}/hook", (("X-Key", "secret"),))]
    for bad in (True, True, True, False, False):
        assert notify([decided(bad)], send, state) == []
    assert [body["event"] for _, _, body, _ in box.got] == ["failed", "recovered"]
    first = box.got[0][2]
    assert first["judge_id"] == "planted" and first["failed_count"] == 60 and first["verdict"] == "fail"
    assert box.got[0][3]["X-Key"] == "secret"
    assert "secret" not in json.dumps(first) and "secret" not in state.read_text("utf-8")


def test_a_new_prompt_is_told_again_and_a_passing_one_is_not(box: Box, tmp_path: Path) -> None:
    state = tmp_path / "alerts.json"
    send = [Webhook(box.url)]
    notify([decided(False)], send, state)
    assert box.got == []
    notify([decided(True, prompt="one"), decided(True, judge="other")], send, state)
    notify([decided(True, prompt="two"), decided(True, judge="other")], send, state)
    assert [(b["event"], b["judge_id"]) for _, _, b, _ in box.got] == [
        ("failed", "planted"),
        ("failed", "other"),
        ("failed", "planted"),
    ]


def test_a_dead_webhook_is_told_and_tried_again(box: Box, tmp_path: Path) -> None:
    state = tmp_path / "alerts.json"
    box.status = 500
    (fault,) = notify([decided(True)], [Webhook(box.url)], state)
    assert "500" in fault and "not delivered" in fault
    (fault,) = notify([decided(True)], [Webhook("http://127.0.0.1:9/x", timeout=2)], state)
    assert "cannot be reached" in fault
    box.status = 200
    assert notify([decided(True)], [Webhook(box.url)], state) == []
    assert box.got[-1][2]["event"] == "failed"


def test_a_redirect_is_not_followed(box: Box) -> None:
    box.status = 302
    with pytest.raises(Undelivered, match="302"):
        Webhook(box.url, (("X-Key", "secret"),))({"event": "failed"})


def test_chat_markup_in_names_is_dead(box: Box, tmp_path: Path) -> None:
    notify([decided(True, judge="@channel <!here> [x](http://e.vil)")], [Webhook(box.url)], tmp_path / "s.json")
    text = json.dumps(box.got[0][2])
    assert "@channel" not in text and "<!here" not in text and "http://" not in text


def test_bad_addresses_and_state(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="http"):
        Webhook("file:///etc/passwd")
    state = tmp_path / "s.json"
    state.write_text("{", "utf-8")
    with pytest.raises(ConfigError, match="damaged"):
        notify([decided(True)], [], state)


def test_other_schemes_go_through_apprise(box: Box) -> None:
    apprise = pytest.importorskip("apprise", reason="the extra `alerts` is not installed")
    assert apprise
    send = sender(box.url.replace("http://", "json://"))
    send({"event": "failed", "text": "judge x fails", "reasons": ["because"]})
    assert "judge x fails" in json.dumps(box.got[0][2])
    with pytest.raises(ConfigError, match="does not know"):
        sender("nonsense-scheme-without-host")


def test_one_comment_is_made_and_then_updated(box: Box) -> None:
    env = {
        "GITHUB_API_URL": box.url,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_TOKEN": "token",
    }
    assert put_comment(f"{MARKER}\none", env) == "created"
    assert put_comment(f"{MARKER}\ntwo", env) == "updated"
    assert [(m, p.partition("?")[0]) for m, p, _, _ in box.got] == [
        ("GET", "/repos/o/r/issues/7/comments"),
        ("POST", "/repos/o/r/issues/7/comments"),
        ("GET", "/repos/o/r/issues/7/comments"),
        ("PATCH", "/repos/o/r/issues/comments/1"),
    ]
    assert put_comment("x", {**env, "GITHUB_REF": "refs/heads/main"}).startswith("not a pull request")
    box.status = 503
    with pytest.raises(Incomplete, match="result stands"):
        put_comment("x", env)
    with pytest.raises(ConfigError):
        put_comment("x", {**env, "GITHUB_REPOSITORY": "o/r/../x"})
