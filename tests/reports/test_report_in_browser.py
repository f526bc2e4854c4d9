"""The hostile report in a real browser: no dialog, no request, no script, and it can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_hostile_text import MANIFEST, hostile_rows

from robustjudge import reports
from table_help import write


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_nothing_acts_when_the_page_is_opened(browser: Any, tmp_path: Path) -> None:
    page_file = reports.write(write(tmp_path / "run", hostile_rows(), MANIFEST), ("html",))["html"]
    asked: list[str] = []
    dialogs: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(page_file.as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    for element in page.query_selector_all("summary, h3, td")[:40]:
        element.hover(force=True)
    scripts = page.evaluate("() => document.scripts.length + document.images.length + document.forms.length")
    told = page.inner_text("main")
    page.close()
    assert asked == [page_file.as_uri()] and not dialogs and scripts == 0
    assert "<script>alert(1)</script>" in told and "\\u001b[31mred" in told
