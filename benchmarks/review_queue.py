"""How long one page of a review queue of 10,000 items takes, through guard, store and template: median and worst of 50.

``python benchmarks/review_queue.py [postgresql://...]`` prints the times of four kinds of request over HTTP and exits 1 when
a page takes 100 ms or more (median).  A third of the items is decided.
"""

from __future__ import annotations

import http.client
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from robustjudge.review import open_store
from robustjudge.review.app import app_of
from robustjudge.review.queue import Item, Queue
from robustjudge.spec import digest
from robustjudge.web import Server, csrf_of, new_token

N = 10_000
LIMIT = 0.100


def items() -> list[Item]:
    """Findings as a large run gives them."""
    draw = random.Random(1)
    made = []
    for i in range(N):
        severity = draw.choice(("critical", "high"))
        swing = draw.uniform(-4, 9)
        name = digest("benchmark", str(i))
        made.append(Item(name, "failure", severity, "injection", f"case {i}", "H1", "judge", "none", swing=swing))
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(sys.argv[1] if len(sys.argv) > 1 else Path(folder) / "review.sqlite")
        held = items()
        for i in held[::3]:
            store.decide(i.id, store.version(i.id), "confirm", "ann", "a note of some length for the trail")
        queue = Queue(held, store)
        token = new_token()
        late = False
        with Server(app_of(queue), {token: "ann"}) as server:
            cookie = {"Cookie": f"robustjudge_{server.port}={token}"}
            pages = {
                "first page": "/",
                "page 100": "/?page=100",
                "all, page 150": "/?show=all&page=150",
                "next": "/next",
            }
            for name, path in pages.items():
                times = [ask(server.port, "GET", path, cookie) for _ in range(50)]
                late |= statistics.median(times) >= LIMIT
                print(f"{name}: median {1000 * statistics.median(times):.1f} ms, worst {1000 * max(times):.1f} ms")
            post = {**cookie, "Origin": f"http://127.0.0.1:{server.port}", "X-CSRF-Token": csrf_of(token)}
            times = []
            for i in held[1::3][:50]:
                times.append(
                    ask(server.port, "POST", f"/item/{i.id}", post, f"decision=confirm&seen={store.version(i.id)}")
                )
            print(f"a decision: median {1000 * statistics.median(times):.1f} ms, worst {1000 * max(times):.1f} ms")
        store.close()
    sys.exit(late)


def ask(port: int, method: str, path: str, headers: dict[str, str], body: str | None = None) -> float:
    """Seconds until the whole answer is here."""
    started = time.perf_counter()
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request(method, path, body, headers)
    answer = link.getresponse()
    answer.read()
    link.close()
    if answer.status not in (200, 303):
        raise SystemExit(f"{method} {path}: {answer.status}")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
