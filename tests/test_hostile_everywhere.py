"""Every payload of the library, and the hostile set of the page tests, in every field of every page and file."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "gate"))

from test_gate_outputs import outputs_hold

from page_help import HOSTILE, NASTY, client, hostile_run, live
from payloads_help import batches, payloads
from robustjudge import reports
from robustjudge.attacks.library import attack_names
from robustjudge.exports import export
from robustjudge.fleet import page as fleet_page
from robustjudge.fleet.night import Stand
from robustjudge.labelling import Item, Store
from robustjudge.labelling.app import app_of as label_of
from robustjudge.profile import draw
from robustjudge.reports.markdown import plain
from robustjudge.review import open_store
from robustjudge.review.app import app_of as review_of
from robustjudge.review.queue import Queue, findings
from robustjudge.tracking.alerts import Alert, Standing
from robustjudge.view.app import app_of as view_of

TEXTS = [HOSTILE, *NASTY, *batches(12)]
ESCAPES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")


def test_the_whole_library_is_there() -> None:
    """Attacks that must ask a judge or a model first send what these are made of."""
    told = {name.rpartition("/")[0] for name in payloads()}
    assert len(told) >= 35 and len(payloads()) >= 100
    asking = set(attack_names()) - told
    assert not asking & {"H1", "H4", "E6", "E7", "E11", "json_injection", "md_hidden", "fence_trick", "invisible"}, (
        asking
    )


@pytest.mark.parametrize("name", sorted(payloads()))
def test_gate_files_hold(name: str) -> None:
    """JUnit, SARIF, both contracts, step summary, comment body and annotations."""
    outputs_hold(payloads()[name])


@pytest.mark.parametrize("i", range(len(TEXTS)))
def test_pages_and_reports_hold(tmp_path: Path, i: int) -> None:
    text = TEXTS[i].replace("\x00", "").encode("utf-8", "replace").decode()
    run = hostile_run(tmp_path / "runs" / "r", 1, text)
    written = reports.write(run)
    html = written["html"].read_text("utf-8")
    ours = ("style", "svg", "td style")  # the style sheet, our drawings, and the shade of a heat map's cell
    assert [x for x in live(html) if x not in ours and not x.startswith("a href=#panel-")] == []
    assert all(re.fullmatch(r"--heat:\d+%", x) for x in re.findall(r'<td[^>]* style="([^"]*)"', html))
    assert not ESCAPES.search(html) and not ESCAPES.search(written["md"].read_text("utf-8"))
    json.loads(written["json"].read_text("utf-8"))

    store = open_store(tmp_path / "review.sqlite")
    queue = Queue(findings(run), store)
    review, view = client(review_of(queue)), client(view_of(run.parent))
    pages = [review.get("/"), review.get("/next", follow_redirects=True), view.get("/"), view.get("/run/r")]
    pages += [view.get("/run/r/decide"), view.get("/run/r", params={"attack": text[:2000]})]
    pages += [view.get("/compare", params={"a": "r", "b": "r", "judge_a": text[:500]})]
    pages += [view.get(x) for x in sorted(set(re.findall(r"/run/r/trial/\w+", pages[3].text)))]
    for item in queue.page().items:
        pages.append(review.get(f"/item/{item[0].id}"))
    for p in pages:
        assert p.status_code in (200, 400) and live(p.text) == [] and not ESCAPES.search(p.text), p.url
        assert "script-src 'self'" in p.headers["content-security-policy"] or "default-src" in str(p.headers)
    for line in review.get("/export.jsonl").text.splitlines():
        json.loads(line)
    store.close()

    rows = list(csv.reader(io.StringIO(export(run, "csv").read_text("utf-8"))))
    assert all(len(r) == len(rows[0]) for r in rows)
    assert not [c for r in rows for c in r if c[:1] in ("=", "+", "@", "\t", "\r") or re.match(r"-[^\d]", c)]
    for line in export(run, "jsonl").read_text("utf-8").splitlines():
        json.loads(line)

    told = Standing(text, text, "h", text, False, text, (text,), 1, 2, text)
    status = fleet_page.page([Stand(text, told, 1, text, categories=((text,) * 3,), notes=(text,))], [text], [text])
    assert live(status) == ["style"] and not ESCAPES.search(status)
    alert = json.dumps(Alert("failed", text, text, "fail", (text,), 1, 2, text).as_dict())
    assert "<script" not in alert and "://" not in alert and "@everyone" not in alert
    assert "<" not in re.sub(r"&\w+;", "", plain(text))


@pytest.mark.parametrize("i", range(len(TEXTS)))
def test_the_labelling_page_holds(tmp_path: Path, i: int) -> None:
    items = {f"i{k}": Item(f"i{k}", TEXTS[i], TEXTS[i]) for k in range(2)}
    store = Store.create(
        tmp_path / "l.sqlite", items, draw(list(items), 2), rubric=TEXTS[i], labels=("SUCCESS", "FAILURE"),
        raters=("ann", "bob"),
    )  # fmt: skip
    text = client(label_of(store)).get("/").text
    assert live(text.replace("/static/label.js", "/static/keys.js")) == [] and not ESCAPES.search(text)
