"""RQ3 end to end: a local service with five sub-scores and an overall score, non-monotone in length, attacked from a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from robustjudge.cli.app import run as command
from robustjudge.engine.folder import Folder
from robustjudge.shapes import built
from robustjudge.table import Table

PARTS = ("accuracy", "completeness", "clarity", "relevance", "depth")


def overall(text: str) -> float:
    """Rises with length, breaks down in the middle, recovers: known at every length."""
    n = len(text)
    return 4.0 if n < 200 else 8.0 if n < 700 else 1.0 if n < 1600 else 8.5


def parts(text: str) -> dict[str, float]:
    """Sub-scores see form where the overall score sees length alone."""
    form = min(9.0, 3.0 + text.count("- ") + text.count("**"))
    return dict.fromkeys(PARTS, form)


class Handler(BaseHTTPRequestHandler):
    seen: list[dict[str, str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({**body, "key": self.headers.get("X-Key", "")})
        answer = body["answer"]
        reply = json.dumps({"result": {"overall": overall(answer), "dimensions": parts(answer)}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: object) -> None:
        return None


@contextmanager
def service() -> Iterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Handler,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/evaluate", seen
    finally:
        server.shutdown()
        server.server_close()


FILE = """
judges:
  ours:
    service:
      name: house-judge
      url: {url}
      request: {{question: "{{task}}", answer: "{{response}}"}}
      key_env: HOUSE_KEY
      key_header: X-Key
      key_prefix: ""
      low: 0
      high: 10
      overall: result.overall
      parts: {parts}
      {extra}
"""


def config(folder: Path, url: str, extra: str = "rpm: 600000") -> Path:
    paths = json.dumps({p: f"result.dimensions.{p}" for p in PARTS})
    path = folder / "service.yaml"
    path.write_text(FILE.format(url=url, parts=paths, extra=extra))
    return path


def test_a_service_is_attacked_from_a_file_and_its_curve_is_the_known_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOUSE_KEY", "secret-7")
    monkeypatch.chdir(tmp_path)
    with service() as (url, seen):
        args = ["run", "-c", str(config(tmp_path, url)), "--suite", "paper-rq3", "--limit", "3"]
        assert command(args) == 0
    assert len(seen) < 200  # eleven lengths share one search of thirteen queries a case
    assert {s["key"] for s in seen} == {"secret-7"}
    out = capsys.readouterr().out
    assert "content hash" in out and "NOT the frozen plan: cases differ" in out
    found = built(Path("runs"))
    assert found is not None
    (s,) = found[2]
    rows = {r[1]: r for r in s.rows}
    lengths = [int(k) for k in rows if k.isdigit()]
    assert lengths == [64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2000]
    assert all(r[4] == r[5] == "3" for r in s.rows)
    table = Table.load(Folder.open(Path("runs")).table)
    known = [(r["attacked_score"], overall("x" * r["text_length"])) for r in table.rows()]
    assert len(known) == 3 * 13 and all(a == b for a, b in known)
    assert rows["724"][2].startswith("1.00") and rows["2000"][2].startswith("8.50")
    clean, searched = (float(rows[k][3].split(" ")[0]) for k in ("clean text again", "search alone"))
    assert searched > clean  # the search climbed on sub-scores
    assert all(
        float(rows[str(n)][3].split(" ")[0]) >= searched - 1e-9 for n in lengths
    )  # and every suffix stands on it
    assert s.agreements[0].startswith("ours: the score is not monotone in length: agrees")
    page = (Folder.open(Path("runs")).path / "suite.html").read_text()
    assert page.count("<polyline") == 2
    assert "secret-7" not in page + json.dumps(Folder.open(Path("runs")).manifest())


def test_the_call_cap_holds_and_the_politeness_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustjudge.config.build import services_of
    from robustjudge.config.files import read_config

    monkeypatch.setenv("HOUSE_KEY", "k")
    monkeypatch.chdir(tmp_path)
    with service() as (url, seen):
        polite = services_of(read_config(config(tmp_path, url, "max_calls: 500")), tmp_path)["house-judge"]
        assert polite.endpoint.settings.rpm == 60.0 and polite.endpoint.max_calls == 500
        capped = config(tmp_path, url, "{rpm: 600000, max_calls: 20}".strip("{}").replace(", ", "\n      "))
        assert command(["run", "-c", str(capped), "--suite", "paper-rq3", "--limit", "4", "--mode", "off"]) == 4
    assert len(seen) <= 20
