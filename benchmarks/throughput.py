"""Judge calls per second against one local endpoint: a bare aiohttp loop, our engine with its ledger, our whole trial
row; and, where installed, the OpenAI SDK and a graded Inspect sample.  Interleaved runs, medians.

    python benchmarks/throughput.py [--runs 5] [--calls 12000] [--peer-python PATH]

A trial row of one attack costs two calls (clean and attacked), one of eight attacks 9/8, because a clean call is sent
once; an Inspect sample costs one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLIGHT = 256
EIGHT = tuple(f"H{i}" for i in range(1, 9))


def texts(n: int) -> list[str]:
    filler = "The answer names the capital of a country and gives a short reason for it. " * 8
    return [f"{filler} Item {i}." for i in range(n)]


async def bare(url: str, n: int) -> None:
    """The least that can be done: post the same bodies, read the replies, 256 at a time."""
    import aiohttp

    gate = asyncio.Semaphore(FLIGHT)
    connector = aiohttp.TCPConnector(limit=FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(text: str) -> None:
            body = {
                "model": "local",
                "messages": [{"role": "user", "content": text}],
                "temperature": 0,
                "max_tokens": 64,
            }
            async with gate, session.post(f"{url}/chat/completions", json=body) as reply:
                json.loads(await reply.read())["choices"][0]["message"]["content"]

        await asyncio.gather(*map(one, texts(n)))


async def calls(url: str, n: int, folder: Path) -> None:
    """Our calls: asks, kernel, ledger, limiter, client."""
    from robustjudge.asks import Complete
    from robustjudge.engine.backend import Backend
    from robustjudge.engine.driver import AsyncDriver, Job
    from robustjudge.engine.ledger import Ledger
    from robustjudge.engine.writer import Writer
    from robustjudge.models.base import Settings
    from robustjudge.models.registry import open_model
    from robustjudge.nouns import Call, Sampling, message

    writer = Writer()
    ledger = Ledger(writer, folder / "ledger.sqlite")
    backend = Backend(lambda name: open_model(name, Settings(max_concurrency=FLIGHT)), ledger)
    name = f"{url}#local"

    async def ask(text: str) -> str:
        (done,) = await Complete((Call(name, (message("user", text),), Sampling(max_tokens=64)),))
        return done.text

    jobs = (Job(str(i), lambda t=t: ask(t)) for i, t in enumerate(texts(n)))
    await AsyncDriver(backend, lambda landed: None, window=FLIGHT).run(jobs)
    await backend.close()
    writer.close()
    ledger.close()


def rows(url: str, n: int, folder: Path, attacks: tuple[str, ...] = ("H1",)) -> None:
    """``n`` whole trial rows of ours: render, call, read, ledger, table."""
    from robustjudge import attack, template
    from robustjudge.execution import Options, execute
    from robustjudge.judges import Prompted
    from robustjudge.models.base import Settings
    from robustjudge.nouns import Case, Sampling
    from robustjudge.plan import Plan
    from robustjudge.protocols import Pointwise

    name = f"{url}#local"
    cases = [Case(str(i), "Name the capital.", t, ("Paris.",)) for i, t in enumerate(texts(n // len(attacks)))]
    plan = Plan(
        lambda: iter(cases),
        (("local", Prompted(name, template("robustjudge"), Sampling(max_tokens=64))),),
        (Pointwise(),),
        tuple(attack(a, quick=True) for a in attacks),
        cleans=1,
    )
    options = Options(
        root=folder / "runs",
        ledger=folder / "rows.sqlite",
        window=FLIGHT,
        models={name: Settings(max_concurrency=FLIGHT)},
    )
    execute(plan, options)


PEERS = {
    "openai sdk": """
import asyncio, sys
from openai import AsyncOpenAI
url, n = sys.argv[1], int(sys.argv[2])
async def main():
    client = AsyncOpenAI(base_url=url, api_key="x", max_retries=0)
    gate = asyncio.Semaphore(256)
    async def one(i):
        async with gate:
            messages = [{"role": "user", "content": f"item {i}"}]
            await client.chat.completions.create(model="local", messages=messages, max_tokens=64)
    await asyncio.gather(*[one(i) for i in range(n)])
import time; t = time.time(); asyncio.run(main()); print(n / (time.time() - t))
""",
    "inspect graded sample": """
import os, sys, tempfile, time
url, n = sys.argv[1], int(sys.argv[2]) // 4
os.environ["LOCAL_API_KEY"], os.environ["LOCAL_BASE_URL"] = "x", url
from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver
@solver
def given():
    async def solve(state, generate):
        state.output.completion = "Paris."
        return state
    return solve
name = "openai-api/local/local"
samples = [Sample(input=f"Name the capital, item {i}.", target="Paris") for i in range(n)]
task = Task(dataset=samples, solver=given(), scorer=model_graded_qa(model=name))
t = time.time()
evaluate(task, model=name, max_connections=256, max_samples=256, display="none", log_dir=tempfile.mkdtemp())
print(n / (time.time() - t))
""",
}


def timed(work: Callable[[], Any], n: int) -> float:
    started = time.perf_counter()
    work()
    return n / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=12000)
    parser.add_argument("--peer-python", default="", help="a Python that has the packages openai and inspect_ai")
    parser.add_argument("--profile", action="store_true", help="profile our calls instead of comparing")
    given = parser.parse_args()
    server = subprocess.Popen([sys.executable, str(HERE / "endpoint.py")], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    found: dict[str, list[float]] = {}
    try:
        if given.profile:
            import cProfile
            import pstats

            with tempfile.TemporaryDirectory() as tmp, cProfile.Profile() as profile:
                asyncio.run(calls(url, given.calls, Path(tmp)))
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
            return
        for _ in range(given.runs):
            with tempfile.TemporaryDirectory() as tmp:
                folder = Path(tmp)
                found.setdefault("bare aiohttp, calls/s", []).append(
                    timed(lambda: asyncio.run(bare(url, given.calls)), given.calls)
                )
                found.setdefault("our calls, ledger on, calls/s", []).append(
                    timed(lambda f=folder: asyncio.run(calls(url, given.calls, f)), given.calls)
                )
                n = given.calls // 4
                for label, attacks in (("one attack", EIGHT[:1]), ("eight attacks", EIGHT)):
                    found.setdefault(f"our trial rows, {label}, rows/s", []).append(
                        timed(lambda f=folder / label, a=attacks, n=n: rows(url, n, f, a), n)
                    )
            if given.peer_python:
                for name, code in PEERS.items():
                    n = max(200, given.calls // 10)
                    out = subprocess.run(
                        [given.peer_python, "-c", code, url, str(n)], capture_output=True, text=True, check=True
                    )
                    found.setdefault(f"{name}, a second", []).append(float(out.stdout.split()[-1]))
    finally:
        server.terminate()
    base = statistics.median(found["bare aiohttp, calls/s"])
    for name, values in found.items():
        middle = statistics.median(values)
        print(f"{name:42s} median {middle:8.0f}  ({min(values):.0f}-{max(values):.0f})  {middle / base:.2f} of bare")


if __name__ == "__main__":
    main()
