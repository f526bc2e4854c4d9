"""The labelling page over HTTP: blind, one label per press, candidate text never markup, agreement hidden to the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest

from robustjudge.labelling import Item, Store, app_of
from robustjudge.profile import draw
from robustjudge.web import Server, new_token

LABELS = ("SUCCESS", "FAILURE")
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7919*7907 }}\u202eabc"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, Store]]:
    items = {f"i{k}": Item(f"i{k}", f"task {k}", f"{EVIL} {k}") for k in range(4)}
    store = Store.create(
        tmp_path / "l.sqlite", items, draw(list(items), 4), rubric="<b>Right?</b>", labels=LABELS,
        raters=("ann", "bob"), repeats=0.0,
    )  # fmt: skip
    tokens = {new_token(): who for who in ("ann", "bob", "adjudicator")}
    with Server(app_of(store), tokens) as server:
        yield server, store


class Visitor:
    """A browser without scripts: keeps cookies and sends the form of the page it is on."""

    def __init__(self, server: Server, who: str) -> None:
        self.base = f"http://127.0.0.1:{server.port}"
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(CookieJar()))
        self.page = self.get(server.link(who)[len(self.base) :])

    def get(self, path: str) -> str:
        self.page = self.opener.open(self.base + path, timeout=10).read().decode()
        return self.page

    def press(self, number: int, path: str = "/label") -> str:
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', self.page))
        body = urlencode({**form, "label": number}).encode()
        request = Request(self.base + path, body, {"Origin": self.base})
        self.page = self.opener.open(request, timeout=10).read().decode()
        return self.page


def test_two_raters_label_disagree_and_are_adjudicated(served: tuple[Server, Store]) -> None:
    server, store = served
    ann, bob = Visitor(server, "ann"), Visitor(server, "bob")
    assert "0 of 4 labelled" in ann.page
    for _ in range(4):
        ann.press(0)
    assert 'id="hidden"' in ann.page and "kappa" not in ann.page  # bob is not done: no agreement for anyone
    assert "SUCCESS" not in bob.get("/agreement")
    bob.get("/")
    for k in range(4):
        bob.press(int(k == 3))
    assert 'id="agreement"' in bob.page
    third = Visitor(server, "adjudicator")
    assert third.page.count("<strong>") == 2
    third.press(1, "/adjudicate")
    assert 'id="settled"' in third.page
    rows = store.rows()
    assert [r.rater_kind for r in rows].count("adjudicated") == 1 and len(rows) == 9
    assert all(r.seconds is not None for r in rows if r.rater_kind == "human")


def test_candidate_text_is_never_markup(served: tuple[Server, Store]) -> None:
    page = Visitor(served[0], "ann").page
    assert "<script>alert" not in page and "<img" not in page and "{{ 7919*7907 }}" in page and "62615533" not in page
    assert "\u202e" not in page and "\\u202e" in page and "&lt;b&gt;Right?&lt;/b&gt;" in page


def test_going_back_shows_the_label_and_changes_it(served: tuple[Server, Store]) -> None:
    server, store = served
    ann = Visitor(server, "ann")
    ann.press(0)
    assert 'aria-pressed="true"' in ann.get("/?position=0")
    ann.press(1)
    assert [r.label for r in store.rows()] == ["FAILURE"]
    assert "task" in ann.get("/?position=3")  # not labelled yet: the next open item is shown instead
    assert 'name="position" value="1"' in ann.page


def test_raters_do_not_adjudicate_and_forged_labels_are_refused(served: tuple[Server, Store]) -> None:
    ann = Visitor(served[0], "ann")
    with pytest.raises(HTTPError, match="403"):
        ann.get("/adjudicate")
    ann.get("/")
    for number in (7, -1):
        with pytest.raises(HTTPError, match="400"):
            ann.press(number)
    ann.page = ann.page.replace('value="0"', 'value="999"', 1)
    with pytest.raises(HTTPError, match=r"4\d\d"):
        ann.press(0, "/adjudicate")
    third = Visitor(served[0], "adjudicator")
    assert 'id="hidden"' in third.page  # nobody is done
    assert served[1].rows() == []
