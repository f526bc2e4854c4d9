"""kill -9 at drawn times anywhere in generate, review and execute: what is started again ends like an uninterrupted flow."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from robustjudge.variants import append_variants, read_variants

CONFIG = 'name: small\ncases: [{source: cases.jsonl}]\njudges: {mine: {model: "scripted/slow?judge=gameable"}}\n'
GENERATE = ("redteam", "-s", "style_manipulation", "--review", "high")
EXECUTE = ("redteam", "--execute")
RESUME = ("run", "--resume", "runs")


def project(folder: Path) -> Path:
    folder.mkdir()
    rows = [
        {
            "id": f"c{i}",
            "task": f"Say what {i} plus {i} is.",
            "response": f"It is {2 * i + 1}.",
            "reference": f"It is {2 * i}.",
        }
        for i in range(20)
    ]
    (folder / "cases.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    (folder / "robustjudge.yaml").write_text(CONFIG, "utf-8")
    return folder


def step(folder: Path, command: tuple[str, ...], rng: random.Random | None, calm: float = 0.0, most: int = 3) -> int:
    """Run one step to its end, killing it up to ``most`` times at drawn shares of the ``calm`` seconds that an
    undisturbed one takes; returns how often it was killed."""
    kills, now = 0, command
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-m", "robustjudge", *now],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = process.wait(rng.uniform(0.2, 0.9) * calm if rng is not None and kills < most else 120)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            now = RESUME if command == EXECUTE and any((folder / "runs").glob("2*")) else command
            continue
        if code == 0:
            return kills
        now = command  # the run folder was made but holds nothing to go on with yet
    raise AssertionError(f"{command} never ended")


def flow(folder: Path, rng: random.Random | None = None, calm: float = 0.0) -> int:
    kills = step(folder, GENERATE, rng, calm)
    file = folder / "review" / "redteam.jsonl"
    for v in [v for v in read_variants(file).values() if v.status == "pending"]:
        append_variants(file, v.decided("approved", "ann", "2026-11-30T00:00:00+00:00"))
    return kills + step(folder, EXECUTE, rng, calm)


def state(folder: Path) -> tuple[Any, Any]:
    held = {k: (v.status, v.text) for k, v in read_variants(folder / "review" / "redteam.jsonl").items()}
    db = sqlite3.connect(max((folder / "runs").glob("2*")) / "run.sqlite")
    rows = sorted(db.execute("SELECT cell, attacked_status, attacked_score, clean_score FROM trials"))
    db.close()
    return held, rows


@pytest.mark.campaign
def test_a_flow_that_was_killed_ends_like_one_that_was_not(tmp_path: Path) -> None:
    whole = project(tmp_path / "whole")
    started = time.monotonic()
    flow(whole)
    calm = (time.monotonic() - started) / 2  # of its two steps
    want = state(whole)
    seed = int(time.time())
    rng = random.Random(seed)
    kills = []
    for i in range(5):
        folder = project(tmp_path / f"killed{i}")
        kills.append(flow(folder, rng, calm))
        assert state(folder) == want, f"seed {seed}, flow {i}"
    print(
        f"seed {seed}: {len(want[0])} texts, {len(want[1])} rows, {sum(kills)} kills in {len(kills)} flows, all equal"
    )
    assert sum(kills) >= 5
