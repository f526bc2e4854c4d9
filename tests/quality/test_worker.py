"""The worker protocol under every fault, with small scripts that speak (or break) it; and BLEURT on top of it."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustjudge.errors import ConfigError
from robustjudge.nouns import Case
from robustjudge.quality import MetricUnavailable, rate
from robustjudge.quality.bleurt import Bleurt, install
from robustjudge.quality.worker import Worker, WorkerFault

SCRIPT = """
import json, os, sys, time
print(json.dumps({"ready": True}), flush=True)
print("noise", file=sys.stderr)
for line in sys.stdin:
    r = json.loads(line)
    c = r["candidate"]
    if c == "hang": time.sleep(60)
    if c == "die": print("out of luck", file=sys.stderr, flush=True); os._exit(7)
    if c == "garbage": print("not json", flush=True); continue
    if c == "list": print("[1]", flush=True); continue
    if c == "other": print(json.dumps({"id": 99}), flush=True); continue
    if c == "error": print(json.dumps({"id": r["id"], "error": "ValueError: no"}), flush=True); continue
    if c == "nan": print(json.dumps({"id": r["id"], "score": float("nan")}), flush=True); continue
    long = len(c) > 100
    print(json.dumps({"id": r["id"], "score": len(c) - len(r["reference"]) + 0.5, "truncated": long, "pid": os.getpid()}), flush=True)
open(sys.argv[-1] + ".ended", "w").close() if len(sys.argv) > 1 else None
"""  # noqa: E501


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def say(worker: Worker, text: str, reference: str = "ref") -> float:
    return float(worker.ask({"reference": reference, "candidate": text})["score"])


def test_replies_in_order_and_a_clean_end(script: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    worker = Worker([sys.executable, str(script), str(mark)])
    assert [say(worker, t) for t in ("ref", "four", 'q"\n\u2028é')] == [0.5, 1.5, 2.5]
    worker.close()
    assert (tmp_path / "mark.ended").exists(), "the worker was killed instead of ending by itself"
    worker.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hang", "timeout: no reply within 0.5 s"),
        ("die", "crashed: exit code 7, last line: out of luck"),
        ("garbage", "garbage"),
        ("list", "garbage"),
        ("other", "garbage: the reply is to request 99"),
    ],
)
def test_each_fault_has_its_reason_and_the_next_request_a_fresh_worker(script: Path, text: str, reason: str) -> None:
    worker = Worker([sys.executable, str(script)], reply_s=0.5 if text == "hang" else 20)
    first = worker.ask({"reference": "ref", "candidate": "ref"})["pid"]
    with pytest.raises(WorkerFault, match=reason):
        worker.ask({"reference": "ref", "candidate": text})
    again = worker.ask({"reference": "ref", "candidate": "ref"})
    assert again["score"] == 0.5 and again["pid"] != first
    worker.close()


def test_a_worker_that_never_works_is_given_up(script: Path) -> None:
    worker = Worker([sys.executable, str(script)], restarts=1)
    for _ in range(2):
        with pytest.raises(WorkerFault, match="crashed"):
            say(worker, "die")
    with pytest.raises(WorkerFault, match="given up after 2 failures in a row; last: crashed"):
        say(worker, "fine")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import sys; sys.exit('no weights')", "crashed: exit code 1, last line: no weights"),
        ('print(\'{"failed": "ImportError: x"}\')', "failed: ImportError: x"),
        ("import time; time.sleep(60)", "timeout"),
    ],
)
def test_a_worker_that_cannot_start_says_why(body: str, reason: str) -> None:
    worker = Worker([sys.executable, "-c", body], start_s=1.0 if "sleep" in body else 20)
    with pytest.raises(WorkerFault, match=reason):
        worker.start()
    with pytest.raises(WorkerFault, match="cannot be started"):
        Worker(["/nonexistent/python"]).start()


def test_threads_share_one_worker(script: Path) -> None:
    worker, got = Worker([sys.executable, str(script)]), {}
    threads = [threading.Thread(target=lambda n=n: got.__setitem__(n, say(worker, "x" * n))) for n in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    worker.close()
    assert got == {n: n - 2.5 for n in range(1, 9)}


# ---------------------------------------------------------------------- BLEURT on a fake environment


@pytest.fixture
def bleurt(script: Path, tmp_path: Path) -> Iterator[Bleurt]:
    """A "Python" that runs the fake script in place of the real worker, and a folder that looks like weights."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n', encoding="utf-8")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    made = Bleurt(checkpoint=str(tmp_path), python=str(python), timeout_s=20)
    yield made
    made.close()


CASE = Case(id="c", task="t", response="", references=("ref",))


def test_bleurt_keeps_raw_clips_and_counts_faults_as_unknown(bleurt: Bleurt) -> None:
    bleurt.ready()
    good = rate(bleurt, CASE, "ref")
    assert (good.value, good.raw, good.truncated) == (0.5, 0.5, False)
    low = rate(bleurt, CASE, "r")
    assert (low.value, low.raw) == (0.0, -1.5)
    for text, reason in (("die", "worker crashed"), ("error", "worker error: ValueError"), ("nan", "nan")):
        got = rate(bleurt, CASE, text)
        assert got.value is None and reason in got.reason
    assert rate(bleurt, CASE, "ref") == good


def test_bleurt_beyond_its_window_is_flagged_and_carries_chrf(bleurt: Bleurt) -> None:
    got = rate(bleurt, CASE, "ref " * 50)
    assert got.truncated and got.value == 1.0 and 0.0 < dict(got.parts)["chrf"] < 1.0


def test_bleurt_without_environment_or_weights_is_refused_at_start(bleurt: Bleurt, tmp_path: Path) -> None:
    with pytest.raises(MetricUnavailable, match="quality install bleurt"):
        Bleurt(checkpoint=str(tmp_path), python="/nonexistent").ready()
    with pytest.raises(MetricUnavailable, match="no weights"):
        Bleurt(checkpoint="", python=bleurt.python).ready()


def test_a_failed_install_says_which_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="could not be made"):
        install(tmp_path / "env", python=sys.executable, pip_options=("--no-index",))
    assert not os.environ.get("PIP_NO_INDEX")


def test_the_real_worker_reports_a_missing_package_as_unavailable(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    began = time.monotonic()
    with pytest.raises(MetricUnavailable, match="failed: "):
        Bleurt(checkpoint=str(tmp_path), python=sys.executable).ready()
    assert time.monotonic() - began < 60
