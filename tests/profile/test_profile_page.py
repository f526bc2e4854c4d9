"""The page of a package: readable, self-contained, and inert whatever its texts say."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from robustjudge.nouns import Verdict
from robustjudge.profile import Check, calibrate_judge
from robustjudge.profile.package import JudgeProfile
from robustjudge.profile.page import page

HOSTILE = "<script>alert(1)</script>{{ 7 * 7 }}\"'><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [k for k, _ in attrs]


def test_hostile_texts_stay_text() -> None:
    p = calibrate_judge(
        [0, 1, 2],
        ["SUCCESS", "FAILURE", "SUCCESS"],
        lambda i: Verdict(status="refused") if i == 2 else "SUCCESS",
        judge_id=HOSTILE,
        rubric=HOSTILE,
        population=HOSTILE,
    )
    html = page(replace(p, refusal=HOSTILE, checks=(Check("x", "fail", HOSTILE),)))
    seen = Tags()
    seen.feed(html)
    assert "script" not in seen.tags and "img" not in seen.tags and "link" not in seen.tags
    assert not [a for a in seen.attributes if a.startswith("on") or a in ("src", "href")]
    assert "{{ 7 * 7 }}" in html and "&lt;script&gt;" in html


def test_the_page_says_what_is_unknown() -> None:
    p = calibrate_judge([0], ["FAILURE"], lambda _: "FAILURE")
    html = page(p)
    assert "undefined: no positives" in html and "refused 0" in html and "Inconclusive." in html
    assert "Content address" in page(JudgeProfile())
