"""kill -9 at drawn points and resume: rows equal to an uninterrupted run, at most the calls in flight sent twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core_help import rows, stable

HERE = Path(__file__).resolve().parent
WINDOW = 8
"""Concurrency of the killed run: the most calls that are in flight."""


@contextmanager
def serving(log: Path, latency: float = 0.005) -> Iterator[int]:
    """The endpoint, and its port."""
    log.touch()
    command = [sys.executable, str(HERE / "flaky_endpoint.py"), str(log), "--latency", str(latency)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()


def start(folder: Path, port: int, n: int, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "killed_run.py"), str(folder), str(port), str(n), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and "finished" in out, err


def run_folder(folder: Path) -> Path:
    return (folder / "runs" / "latest").resolve()


def committed(folder: Path) -> int:
    path = folder / "runs" / "latest" / "run.sqlite"
    if not path.is_file():
        return 0
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM trials").fetchone()[0])
    except sqlite3.Error:
        return 0
    finally:
        db.close()


def unfinished(folder: Path) -> int:
    """Cells with answered asks but no row: flights that the kill hit in mid-search."""
    db = sqlite3.connect(folder / "runs" / "latest" / "run.sqlite")
    try:
        return int(db.execute("SELECT count(DISTINCT cell) FROM journal").fetchone()[0])
    finally:
        db.close()


def sent(log: Path) -> Counter[str]:
    return Counter(line.split()[1] for line in log.read_text().splitlines() if line.startswith("sent "))


@dataclass(frozen=True)
class Whole:
    """The uninterrupted run: its rows, how many calls it sent, and how long rows were coming."""

    rows: list[dict[str, Any]]
    calls: int
    first: float
    last: float


def whole(folder: Path, port: int, log: Path, n: int) -> Whole:
    process = start(folder, port, n)
    first = last = 0.0
    began, seen = time.monotonic(), 0
    while process.poll() is None:
        now = committed(folder)
        if now and not first:
            first = time.monotonic() - began
        if now > seen:
            seen, last = now, time.monotonic() - began
        time.sleep(0.01)
    finish(process)
    calls = sent(log)
    assert max(calls.values()) == 1, "an uninterrupted run sends every call once"
    return Whole(comparable(run_folder(folder)), sum(calls.values()), first, last)


def comparable(path: Path) -> list[dict[str, Any]]:
    return stable(rows(path))


@dataclass(frozen=True)
class Shot:
    """One kill: rows committed and cells unfinished at the kill, calls in flight, calls sent twice."""

    rows: int
    searching: int
    flying: int
    twice: int


def shoot(folder: Path, port: int, log: Path, n: int, goal: Whole, at_rows: int, delay: float) -> Shot:
    """Kill when ``at_rows`` rows are committed and ``delay`` seconds more have passed; resume; compare."""
    process = start(folder, port, n)
    while committed(folder) < at_rows and process.poll() is None:
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    had, searching = committed(folder), unfinished(folder)
    kept = replies(folder)
    arrived = sum(sent(log).values())
    finish(start(folder, port, n, "--resume"))
    assert comparable(run_folder(folder)) == goal.rows
    calls = sent(log)
    twice = sum(c - 1 for c in calls.values())
    assert len(calls) == goal.calls
    assert twice <= arrived - kept <= WINDOW, "only what was in flight at the kill is sent again"
    return Shot(had, searching, arrived - kept, twice)


def replies(folder: Path) -> int:
    """How many replies the dead process left: in the ledger, or in its tail (a reply in both counts once)."""
    db = sqlite3.connect(folder / "ledger.sqlite")
    try:
        found = {key for (key,) in db.execute("SELECT key FROM replies")}
    finally:
        db.close()
    for tail in folder.glob("ledger.sqlite.tail-*"):
        found |= {json.loads(line.split(b"\t")[0])[0] for line in tail.read_bytes().splitlines() if line.count(b"\t")}
    return len(found)


def campaign(tmp_path: Path, n: int, points: int, seed: int, latency: float) -> list[Shot]:
    log = tmp_path / "log"
    with serving(log, latency) as port:
        goal = whole(tmp_path / "whole", port, log, n)
        total = len(goal.rows)
        rng = random.Random(seed)
        print(f"\nseed {seed}: {total} rows, {goal.calls} calls, rows from {goal.first:.2f} s to {goal.last:.2f} s")
        shots = []
        gap = (goal.last - goal.first) / total
        for i in range(points):
            log.write_text("")
            at, delay = rng.randrange(1, total), rng.random() * min(gap * 3, 0.1)
            shot = shoot(tmp_path / f"kill{i}", port, log, n, goal, at, delay)
            print(
                f"kill {i + 1}: {shot.rows} rows committed, {shot.searching} cells in mid-search,"
                f" {shot.flying} calls not kept, {shot.twice} sent twice"
            )
            shots.append(shot)
    return shots


def test_B103_kill_9_at_four_drawn_points(tmp_path: Path) -> None:
    shots = campaign(tmp_path, 6, 4, random.randrange(10**6), 0.01)
    assert sum(s.searching > 0 or s.flying > 0 for s in shots) >= 3


@pytest.mark.campaign
def test_B103_kill_9_at_twenty_drawn_points(tmp_path: Path) -> None:
    shots = campaign(tmp_path, 24, 20, random.randrange(10**6), 0.02)
    assert sum(s.searching > 0 or s.flying > 0 for s in shots) >= 15
    assert max(s.rows for s in shots) > 10
