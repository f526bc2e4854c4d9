"""One million trial rows to a full report: seconds and peak memory, against the targets 60 s and 1.5 GB.

``python benchmarks/report_million.py [ROWS]`` writes a synthetic run folder (through the table's own schema: 4 judges,
pointwise and pairwise, 22 attacks and 3 controls, 5,000 cases of 8 tasks, every row with its detail) into a temporary
folder, then builds and writes the three formats in a process of its own, so that the peak is the report's alone.
"""

from __future__ import annotations

import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robustjudge.spec import canonical, digest
from robustjudge.table import NAMES, PUT_ROW, PUT_TEXT, SCHEMA

TASKS = (
    "translation",
    "summarization",
    "mathematics",
    "logic",
    "knowledge",
    "code_generation",
    "code_translation",
    "open",
)
JUDGES = ("first", "second", "third", "fourth")
PROTOCOLS = ("pointwise", "pairwise")
ATTACKS = (
    ("identity", "identity"),
    ("neutral", "neutral"),
    ("shuffled", "shuffled"),
    *((f"A{i:02}", "") for i in range(22)),
)


def shown(arm: str, order: int, texts: dict[str, str]) -> dict[str, Any]:
    call = {
        "model": "openai/judge-2026-01-01",
        "role": "judge",
        "prompt": texts["prompt"],
        "reply": texts["reply"],
        "status": "ok",
        "finish": "stop",
        "resolved": "judge-2026-01-01",
        "latency": 0.51,
        "usage": [812, 64],
    }
    return {
        "arm": arm,
        "order": order,
        "replica": f"{arm}/0",
        "status": "ok",
        "score": 3.0,
        "form": "verdict_line",
        "raw": texts["reply"],
        "rationale": texts["reply"],
        "index": [0],
        "calls": [call],
    }


def rows(wanted: int, texts: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    rng = random.Random(0)
    cases = wanted // (len(JUDGES) * len(PROTOCOLS) * len(ATTACKS))
    base = {
        "dataset": "synthetic",
        "language": "en",
        "family": "style",
        "category": "style",
        "severity": "high",
        "of": "",
    }
    base |= {"access": "NONE", "channel": "append", "note": "", "defense": "none", "threat": "victim", "seed": 0}
    base |= {"attack_status": "ok", "evaluator": "chrf", "queries": 0, "writes": 0, "losses": 0, "gradients": 0}
    base |= {
        "judge_calls": 3,
        "prompt_tokens": 2400,
        "completion_tokens": 190,
        "latency": 1.5,
        "fooled": 0,
        "reader": "1",
    }
    base |= {"text_hash": texts["attacked"], "text_length": 400, "text_mapped": 0, "reason": "", "adapted": ""}
    base |= {"resolved": "judge-2026-01-01", "trace": "0" * 32}
    detail = canonical(
        {
            "shown": [shown(arm, o, texts) for arm in ("clean", "clean", "final") for o in (0, 1)],
            "curve": [],
            "response": texts["weak"],
            "task": texts["task"],
            "references": [texts["reference"]],
        }
    )
    for judge in JUDGES:
        for protocol in PROTOCOLS:
            for c in range(cases):
                clean, quality, pair = rng.randint(1, 7), rng.random(), rng.choice(("LL", "LL", "WL", "LW"))
                for name, control in ATTACKS:
                    status = "ok" if rng.random() > 0.02 else "unparsed"
                    row = {**base, "case_id": f"case-{c}", "cluster": f"case-{c}", "task": TASKS[c % len(TASKS)]}
                    row |= {"attack": name, "attack_id": name, "control": control, "judge": judge, "judge_key": judge}
                    row |= {
                        "protocol": protocol,
                        "quality_clean": quality,
                        "cell": digest(judge, protocol, name, str(c)),
                    }
                    row |= {"quality_attacked": max(0.0, quality - rng.random() / 20), "clean_status": "ok"}
                    row |= {
                        "attacked_status": status,
                        "detail": detail,
                        "reason": "" if status == "ok" else "no_verdict",
                    }
                    if protocol == "pointwise":
                        score = (
                            min(10, clean + (0 if control else rng.choice((0, 0, 1, 3)))) if status == "ok" else None
                        )
                        row |= {
                            "k": 1,
                            "scale_low": 1.0,
                            "scale_high": 10.0,
                            "clean_score": clean,
                            "retest_score": clean,
                        }
                        row |= {"clean_unit": (clean - 1) / 9, "retest_status": "ok", "attacked_score": score}
                        row |= {"attacked_unit": None if score is None else (score - 1) / 9}
                    else:
                        hit = "".join("W" if rng.random() < 0.2 else x for x in pair) if not control else pair
                        row |= {"k": 2, "clean_outcomes": pair, "retest_outcomes": pair, "clean_slots": "1,0"}
                        row |= {"attacked_outcomes": hit if status == "ok" else "uu"}
                    yield tuple(row.get(n) for n in NAMES)


def make(folder: Path, wanted: int) -> int:
    texts = {n: digest(n) for n in ("prompt", "reply", "attacked", "weak", "task", "reference")}
    db = sqlite3.connect(folder / "run.sqlite")
    db.execute("PRAGMA synchronous=OFF")
    db.executescript(SCHEMA)
    db.executemany(PUT_TEXT, [(h, f"{n} " * 100) for n, h in texts.items()])
    db.executemany(PUT_ROW, rows(wanted, texts))
    db.commit()
    (n,) = db.execute("SELECT count(*) FROM trials").fetchone()
    db.close()
    judges = {j: {"kind": "prompted", "model": "openai/judge-2026-01-01"} for j in JUDGES}
    (folder / "manifest.json").write_text(json.dumps({"state": "complete", "judges": judges}))
    return int(n)


def child(folder: Path) -> None:
    from robustjudge import reports

    start = time.perf_counter()
    written = reports.write(folder)
    seconds, cpu = time.perf_counter() - start, time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "seconds": round(seconds, 1),
                "cpu": round(cpu, 1),
                "peak_mb": round(peak),
                "files": {k: v.stat().st_size for k, v in written.items()},
            }
        )
    )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--child":
        return child(Path(sys.argv[2]))
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        n = make(Path(name), wanted)
        size = (Path(name) / "run.sqlite").stat().st_size / 1e6
        print(f"{n:,} rows written in {time.perf_counter() - start:.0f} s ({size:,.0f} MB)", flush=True)
        done = subprocess.run([sys.executable, __file__, "--child", name], check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        verdict = "within" if found["seconds"] < 60 and found["peak_mb"] < 1500 else "OUTSIDE"
        print(f"report: {found['seconds']} s ({found['cpu']} s of processor time), peak {found['peak_mb']} MB")
        print(f"{verdict} 60 s and 1,500 MB; bytes {found['files']}")


if __name__ == "__main__":
    main()
