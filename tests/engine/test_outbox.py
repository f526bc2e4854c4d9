"""Provider batches: write what is unsent, import what came back, go on from the ledger."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from robustjudge.cli.app import run as command

CONFIG = """
name: batch
cases: [{source: builtin/logic, limit: 2}]
judges:
  main: {model: openai/gpt-4o-2024-08-06, template: robustjudge}
protocols: [pointwise, pairwise]
attacks: [H1, H5]
controls: [identity]
"""


def answered(line: str) -> str:
    asked = json.loads(line)
    assert asked["method"] == "POST" and asked["url"] == "/v1/chat/completions"
    pair = "Response B" in json.dumps(asked["body"]["messages"])
    body = {
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": f"Fine.\n\nVERDICT: {'B' if pair else 4}"},
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }
    return json.dumps({"id": "b", "custom_id": asked["custom_id"], "response": {"status_code": 200, "body": body}})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "robustjudge.yaml").write_text(CONFIG)
    return tmp_path


def test_a_batch_run_sends_nothing_and_the_next_one_replays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", "--batch", "batch.jsonl"]) == 4
    lines = (project / "batch.jsonl").read_text().splitlines()
    # 2 cases: 2 clean replicas and 3 attacked texts pointwise, the same in two orders pairwise
    assert len(lines) == 2 * (5 + 10)
    assert len({json.loads(x)["custom_id"] for x in lines}) == len(lines)
    assert f"{len(lines)} calls" in capsys.readouterr().err
    (project / "results.jsonl").write_text("\n".join(map(answered, lines)))
    assert command(["cache", "import", "results.jsonl"]) == 0
    assert command(["run", "--resume", "runs", "--mode", "replay-only"]) == 0
    db = sqlite3.connect(project / "runs" / "latest" / "run.sqlite")
    found = db.execute("SELECT count(*), sum(attacked_status = 'ok'), sum(clean_status = 'ok') FROM trials").fetchone()
    db.close()
    assert found == (12, 12, 12)


def test_failed_and_foreign_lines_are_told_and_asked_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", "--batch", "batch.jsonl"]) == 4
    lines = (project / "batch.jsonl").read_text().splitlines()
    first = json.loads(lines[0])["custom_id"]
    failed = json.dumps({"custom_id": first, "response": {"status_code": 500, "body": {}}})
    text = "\n".join([failed, "not json", json.dumps({"custom_id": "ff"}), *map(answered, lines[1:])])
    (project / "results.jsonl").write_text(text)
    assert command(["cache", "import", "results.jsonl"]) == 4
    told = capsys.readouterr()
    assert "results.jsonl:1: the request failed (http_500)" in told.err
    assert "results.jsonl:2: no batch result" in told.err
    assert "none of the calls" in told.err
    assert "1 calls still wait" in told.out
    assert command(["run", "--resume", "runs", "--batch", "again.jsonl"]) == 4
    assert [json.loads(x)["custom_id"] for x in (project / "again.jsonl").read_text().splitlines()] == [first]


def test_a_local_model_has_no_batch_service(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command(
        ["run", "--judge", "scripted/noisy", "--cases", "builtin/logic", "--limit", "1", "--batch", "b.jsonl"]
    )
    assert code == 2
    assert "no batch service" in capsys.readouterr().err
