"""The review page in a real browser: ten failures by keyboard, two reviewers at once, and no hostile script runs."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path
from typing import Any

import pytest

from page_help import TOKENS, hostile_run, press
from robustjudge.review import open_store
from robustjudge.review.app import app_of
from robustjudge.review.queue import Queue, findings
from robustjudge.review.store import Store
from robustjudge.view.app import app_of as view_of
from robustjudge.web import Server

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return hostile_run(tmp_path / "run", 9)


def pages_of(store: Store, run: Path) -> Any:
    return app_of(Queue(findings(run), store))


def watched(context: Any, server: Server, acted: list[str]) -> Any:
    """A page that notes whatever a hostile text could cause: a dialog, a request elsewhere, a script error of the policy."""
    page = context.new_page()
    home = f"http://127.0.0.1:{server.port}/"
    page.on("dialog", lambda d: (acted.append(d.message), d.dismiss()))
    page.on("request", lambda r: None if r.url.startswith(home) else acted.append(r.url))
    page.on("console", lambda m: acted.append(m.text) if m.type == "error" and "409" not in m.text else None)
    page.on("pageerror", lambda e: acted.append(str(e)))
    return page


def test_ten_failures_by_keyboard_and_no_hostile_script_runs(browser: Any, run: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "review.sqlite")
    acted: list[str] = []
    with Server(pages_of(store, run), TOKENS) as server:
        page = watched(browser.new_context(), server, acted)
        page.goto(server.link("ann"))
        assert "token" not in page.url and "10 of 10 wait" in page.inner_text("#left")
        press(page, "j")
        for key in "cdrocdcdcc":
            page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
            assert page.evaluate("() => [window.pwned, document.images.length, document.scripts.length]") == [
                None,
                0,
                1,
            ]
            assert "<script>window.pwned=1" in page.inner_text("main") and page.locator("mark.new").count() >= 2
            page.keyboard.press("n")
            page.keyboard.type("cd: my reason <b>")  # keys that would decide, were they not typed into the note
            page.keyboard.press("Escape")
            press(page, key)
        assert "0 of 10 wait" in page.inner_text("#left")
    said = list(store.events())
    words = {"c": "confirm", "d": "dismiss", "r": "redesign", "o": "other"}
    assert [e.decision for e in said] == [words[k] for k in "cdrocdcdcc"]
    assert {(e.who, e.note, e.applied) for e in said} == {("ann", "cd: my reason <b>", True)}
    assert len({e.item for e in said}) == 10 and acted == []
    store.close()


def test_two_reviewers_at_once_on_postgresql_lose_nothing(browser: Any, run: Path, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS review_events")
    stores = open_store(postgres), open_store(postgres)
    acted: list[str] = []
    with Server(pages_of(stores[0], run), TOKENS) as one, Server(pages_of(stores[1], run), TOKENS) as two:
        ann = watched(browser.new_context(), one, acted)
        bob = watched(browser.new_context(), two, acted)
        ann.goto(one.link("ann", "/next"))
        bob.goto(two.link("bob", "/next"))
        item = ann.url.rpartition("/")[2]
        assert bob.url.endswith(item)
        press(ann, "c")
        assert not ann.url.endswith(item)
        bob.keyboard.press("n")
        bob.keyboard.type("a long and careful reason")
        bob.keyboard.press("Escape")
        press(bob, "d")
        assert "ann wrote on this item" in bob.inner_text("#fault")
        assert bob.input_value("textarea[name=note]") == "a long and careful reason"
        assert stores[0].standing()[item].decision == "confirm"
        press(bob, "d")  # has now seen what ann said
        assert not bob.url.endswith(item)
        ann.goto(f"http://127.0.0.1:{one.port}/item/{item}")
        assert ann.locator("#trail tbody tr").count() == 3
    trail = [(e.who, e.decision, e.note, e.applied) for e in stores[1].trail(item)]
    assert trail == [
        ("ann", "confirm", "", True),
        ("bob", "dismiss", "a long and careful reason", False),
        ("bob", "dismiss", "a long and careful reason", True),
    ]
    assert acted == []
    for s in stores:
        s.close()


FOREIGN = """<!doctype html><title>elsewhere</title><iframe name=f></iframe>
<form id=a method=post target=f action="http://127.0.0.1:{port}/item/{item}"><input name=decision value=confirm>
<input name=seen value=0><input name=csrf value=guess></form>
<script>
document.getElementById("a").submit();
fetch("http://127.0.0.1:{port}/", {{credentials: "include"}}).then(r => r.text()).then(t => {{ window.read = t }})
  .catch(() => {{ window.refused = true }});
</script>"""


def test_another_site_can_neither_read_nor_decide(browser: Any, run: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "review.sqlite")
    queue = Queue(findings(run), store)
    item = queue.page().items[0][0].id
    with Server(app_of(queue), TOKENS) as server:
        body = FOREIGN.format(port=server.port, item=item).encode()

        class Elsewhere(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        assert page.goto(f"http://127.0.0.1:{server.port}/").status == 403  # without the link
        assert page.goto(server.link("ann")).status == 200
        answers: list[int] = []
        other = context.new_page()
        other.on("response", lambda r: answers.append(r.status) if f":{server.port}/item/" in r.url else None)
        other.goto(f"http://127.0.0.1:{evil.server_port}/")
        other.wait_for_function("() => window.refused === true || window.read !== undefined")
        for _ in range(300):
            if answers:
                break
            other.wait_for_timeout(100)
        assert other.evaluate("() => [window.refused, window.read]") == [True, None]
        assert answers == [403]
        evil.shutdown()
        evil.server_close()
    assert list(store.events()) == []
    store.close()


def test_the_run_browser_shows_a_hostile_run_and_nothing_acts(browser: Any, run: Path) -> None:
    acted: list[str] = []
    with Server(view_of(run.parent), TOKENS) as server:
        page = watched(browser.new_context(), server, acted)
        page.goto(server.link("ann"))
        for link in ("#runs a", "#trials a"):
            with page.expect_navigation(wait_until="load"):
                page.click(link)
        page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert "<script>window.pwned=1" in page.inner_text("main")
        press(page, "b")
        assert page.locator("#trials").count() == 1
        press(page, "d")
        assert page.locator("#verdict").count() == 1
        page.fill("textarea[name=policy]", "minimum_n: 500  # d, tried out")
        page.keyboard.press("Escape")
        press(page, "d")  # decided again under another policy, without a call
        assert page.inner_text("#verdict") == "inconclusive" and "500" in page.inner_text("main")
        assert page.input_value("textarea[name=policy]").endswith("tried out")
        page.goto(f"http://127.0.0.1:{server.port}/compare?a={run.name}&b={run.name}")
        assert "trials flipped" in page.inner_text("main")
        assert page.evaluate("() => [window.pwned, document.images.length]") == [None, 0]
    assert acted == []
