"""In a real browser, by keyboard alone: two raters label ten items, disagree on three, adjudicate, and the package shows
kappa before adjudication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from page_help import press
from robustjudge.labelling import Item, Store, app_of
from robustjudge.profile import Study, calibrate, draw, page
from robustjudge.profile.longform import write_labels
from robustjudge.web import Server, new_token

SPLIT = ("i1", "i4", "i7")


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_two_raters_ten_items_three_disputes(browser: Any, tmp_path: Path) -> None:
    items = {
        f"i{k}": Item(f"i{k}", f"Sum of {k} and 1?", f"<img src=x onerror='document.title=\"owned\"'>{k + 1}")
        for k in range(10)
    }
    store = Store.create(
        tmp_path / "l.sqlite", items, draw(list(items), 10), rubric="The sum is right.",
        labels=("SUCCESS", "FAILURE"), raters=("ann", "bob"), repeats=0.1,
    )  # fmt: skip
    complaints: list[str] = []
    with Server(app_of(store), {new_token(): w for w in ("ann", "bob", "adjudicator")}) as server:
        tabs = {}
        for who in ("ann", "bob", "adjudicator"):
            tabs[who] = browser.new_context().new_page()
            tabs[who].on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
            tabs[who].on("pageerror", lambda e: complaints.append(str(e)))
            tabs[who].goto(server.link(who))
            assert "token" not in tabs[who].url
        assert tabs["adjudicator"].locator("#hidden").count() == 1
        for _ in range(11):  # ten items and one hidden repeat, both raters at once
            for who in ("ann", "bob"):
                tab = tabs[who]
                k = int(tab.locator("#task").inner_text().split()[2])
                truth = k % 2
                said = truth ^ (who == "bob" and f"i{k}" in SPLIT)
                press(tab, str(1 + said))
        assert tabs["ann"].title() == "Agreement" and "Cohen's kappa" in tabs["bob"].content()
        third = tabs["adjudicator"]
        third.goto(f"http://127.0.0.1:{server.port}/adjudicate")
        for _ in SPLIT:
            assert third.locator("strong").count() == 2
            press(third, "1")
        assert third.locator("#settled").count() == 1
    assert not complaints
    write_labels(store.rows(), tmp_path / "labels.csv")
    done = calibrate(tmp_path / "labels.csv", Study("The sum is right.", ("SUCCESS", "FAILURE"), design="srs"))
    kappa = done.profile.humans["agreement"]["kappa"]
    assert kappa.n == 10 and 0.3 < kappa.value < 0.5 and done.profile.humans["n_overlap"] == 10
    assert f"{kappa.value:.3f}" in page(done.profile)
