"""Hostile text in every field: nothing executes, nothing is interpreted, everything is recoverable."""

from __future__ import annotations

import json
import re
import sqlite3
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import reports
from robustjudge.reports import markdown
from robustjudge.reports.texts import LIMIT, changed, shortened, visible
from table_help import chosen, identity, scored, write

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</pre></style></title><iframe src=//evil.example></iframe>",
    "javascript:alert(1)",
    "![track](https://evil.example/x.png) [click](javascript:alert(1)) <https://evil.example>",
    "@everyone #1 | cell | break ```\n# heading\n```",
    "\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\r overwritten",
    "nul \x00 and a lone surrogate \ud800 and bidi \u202egnp.exe",
    "]]> <![CDATA[ <!-- --> &lt; &#60; {{7*7}} {% raw %} ${7*7} {response} ##B##",
    "::error::stop ##[command]",
)
HOSTILE = " ".join(NASTY)


def hostile_rows(text: str = HOSTILE) -> list[dict[str, Any]]:
    names = ("task", "response", "attacked", "reference", "prompt", "reply", "rationale")
    texts = {n: f"{n} {text}" for n in names}
    texts["attacked"] = f"{texts['response']} {text}"
    safe = HOSTILE.replace("\x00", "").replace("\ud800", "")
    common = {
        "texts": texts,
        **{n: f"{n} {safe}" for n in ("judge", "task", "language", "family", "category", "note", "reason", "dataset")},
        "adapted": safe.replace(",", ""),
        "resolved": f"m1 {safe},m2",
        "evaluator": f"e {safe}",
        "text_mapped": 1,
        "fooled": 1,
    }
    rows = []
    for row in (
        scored(f"case {safe}", 3, 9, attack=f"attack {safe}", **common),
        chosen(f"case {safe}", "LL", "WW", attack=f"attack {safe}", **common),
    ):
        rows += [row, identity(row)]
    return rows


MANIFEST = {
    "state": HOSTILE[:80].replace("\x00", ""),
    "robustjudge": "<b>1</b>",
    "python": "<i>",
    "platform": "<u>",
    "reader": "1<s>",
    "started": "<now>",
    "judges": {"<script>j</script>": {"kind": "prompted", "model": "openai/<script>", "template": {"name": "<t>"}}},
    "threats": [{"attacker": "openai/<img onerror=x>"}],
    "defenses": {"<d>": {"model": "openai/<svg onload=x>"}},
    "evaluators": {"<task>": "<e>"},
    "truth": {},
    "config": {"name": "<name>"},
    "remediation": [{"text": "<script>r</script>"}, "<b>plain</b>"],
    "counts": {"asked": 1, "sent": 1, "saved": 0, "cost_usd": None},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = write(tmp_path_factory.mktemp("hostile"), hostile_rows(), MANIFEST)
    reports.write(home)
    return home


class Watch(HTMLParser):
    """Collects what could act: tags, handlers, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.bad: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            if name.startswith("on"):
                self.bad.append(f"{tag} {name}")
            if name in ("href", "src", "action", "data", "srcset", "formaction", "xlink:href") and not str(
                value
            ).startswith("#"):
                self.bad.append(f"{tag} {name}={value}")
            if name == "style" and not re.fullmatch(r"(--heat:\d+%)?", str(value)):
                self.bad.append(f"{tag} style={value}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_holds_nothing_that_acts(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    watch = Watch()
    watch.feed(page)
    for tag in ("script", "iframe", "img", "link", "object", "embed", "form", "input", "base", "foreignobject"):
        assert tag not in watch.tags, tag
    assert not watch.bad
    assert watch.tags["meta"] == 4 and watch.tags["style"] == 1 and watch.tags["title"] == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy and policy[1].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "http://" not in re.sub(r"<pre>.*?</pre>", "", page, flags=re.S).replace("https://evil.example", "")


def test_the_hostile_text_can_be_read_whole_on_the_page(folder: Path) -> None:
    watch = Watch()
    watch.feed((folder / "report.html").read_text("utf-8"))
    text = "".join(watch.text)
    for piece in NASTY[:7]:
        assert piece in text
    assert "\\u001b[31mred" in text and "\\ud800" in text and "\\u0000" in text and "\\u202e" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


def test_no_data_reaches_a_template_or_a_style(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    assert "{{7*7}}" in page and "{% raw %}" in page and "{response}" in page
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert style and "evil" not in style[1] and "alert" not in style[1]


def test_markdown_outside_of_code_is_literal(folder: Path) -> None:
    text = (folder / "report.md").read_text("utf-8")
    outside = _outside_code(text)
    for piece in ("<script", "<img", "](", "@everyone", "<https", "https://", "#1 "):
        assert piece not in outside, piece
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for head, rule in pairwise(rows):
        if set(rule) <= set("|-"):
            assert head.count("|") == rule.count("|")


def _outside_code(text: str) -> str:
    """The text without fenced blocks and code spans, as CommonMark finds them."""
    kept, fence = [], ""
    for line in text.split("\n"):
        ticks = re.match(r"(`{3,})", line)
        if fence:
            if line.strip() == fence:
                fence = ""
        elif ticks:
            fence = ticks[1]
        else:
            kept.append(re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", line))
    assert not fence
    return "\n".join(kept)


def test_json_is_strict_and_fits_its_schema(folder: Path) -> None:
    import jsonschema

    raw = (folder / "report.json").read_bytes()
    data = json.loads(raw.decode("utf-8"), parse_constant=lambda x: pytest.fail(f"{x} is no JSON"))
    jsonschema.Draft202012Validator(reports.schema()).validate(data)
    assert data["worst_cases"][0]["attacked"]["text"].count("<script>alert(1)</script>") == 2


def test_the_terminal_summary_has_no_control_character(folder: Path) -> None:
    told = reports.summary(folder)
    assert "\\u001b[31mred" in told
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", told)


def test_a_megabyte_is_shortened_with_its_length_told(tmp_path: Path) -> None:
    text = "start " + "x" * 1_000_000 + " end"
    home = write(tmp_path / "run", hostile_rows(text), {})
    written = reports.write(home)
    data = json.loads(written["json"].read_text("utf-8"))
    weak = data["worst_cases"][0]["weak"]
    assert weak["length"] == len(f"response {text}") and weak["shortened"]
    assert (
        weak["text"].startswith("response start") and weak["text"].endswith(" end") and len(weak["text"]) < LIMIT + 99
    )
    for name in ("html", "md"):
        assert written[name].stat().st_size < 3_000_000
        assert "1,000,0" in written[name].read_text("utf-8")


def test_redacted_reports_hold_no_payload(tmp_path: Path) -> None:
    secret = "PAYLOAD-7f3a"
    rows = []
    for r in (scored("a", 3, 9), chosen("a", "LL", "WW")):
        r["texts"] = {n: f"{secret} {n}" for n in ("attacked", "reply", "rationale", "prompt")}
        r["texts"]["response"] = "a weak answer"
        rows.append(r)
    home = write(tmp_path / "run", rows, {})
    for name, file in reports.write(home, redact=True).items():
        text = file.read_text("utf-8")
        final = text if name != "json" else json.dumps([w["attacked"] for w in json.loads(text)["worst_cases"]])
        assert f"{secret} attacked" not in final and f"{secret} reply" not in text
        assert "a weak answer" in text
    data = json.loads((home / "report.json").read_text("utf-8"))
    case = data["worst_cases"][0]
    assert case["attacked"]["text"] is None and case["attacked"]["length"] == len(f"{secret} attacked")
    assert all(c["input"]["text"] is None for v in case["verdicts"] if v["arm"] != "clean" for c in v["calls"])
    assert case["parts"] is None and data["redacted"]


def test_hashes_only_runs_say_that_texts_were_not_stored(tmp_path: Path) -> None:
    home = write(tmp_path / "run", [scored("a", 3, 9)], {})
    with sqlite3.connect(home / "run.sqlite") as db:
        db.execute("DELETE FROM contents")
    db.close()
    reports.write(home)
    assert "not stored" in (home / "report.html").read_text("utf-8")
    assert "not stored" in (home / "report.md").read_text("utf-8")


# --------------------------------------------------------------------------- the small parts

ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


@given(ANY)
@settings(max_examples=150, deadline=None)
def test_a_code_span_never_ends_early(text: str) -> None:
    span = markdown.code(text, 500)
    assert "\n" not in span and "|" not in span
    if "|" not in markdown.one_line(text, 500):  # else it is no code span but plain text
        ticks = re.match(r"`+", span)
        assert ticks and span.endswith(ticks[0])
        inner = span[len(ticks[0]) : -len(ticks[0])]
        assert not re.search(rf"(?<!`){ticks[0]}(?!`)", inner)


@given(ANY)
@settings(max_examples=150, deadline=None)
def test_a_fence_never_ends_early(text: str) -> None:
    lines = markdown.fence(text).split("\n")
    ticks = lines[0].removesuffix("text")
    assert lines[-1] == ticks and not any(line.strip().startswith(ticks) for line in lines[1:-1])


@given(ANY)
@settings(max_examples=150, deadline=None)
def test_plain_text_has_no_markup(text: str) -> None:
    safe = re.sub(r"`[@#]+`", "", markdown.plain(text))
    assert not re.search(r"[<>\[\]`*@|\\~$]|&(?!#\d+;)|(?<!&)#|://", safe)


@given(ANY, ANY)
@settings(max_examples=150, deadline=None)
def test_marked_parts_are_the_whole_text(before: str, after: str) -> None:
    parts = changed(before, after)
    assert "".join(text for _, text in parts) == after
    assert all(kind in ("same", "new") for kind, _ in parts)
    assert changed(after, after) == ([["same", after]] if after else [])


def test_the_inserted_part_is_marked() -> None:
    assert changed("It is Lyon.", "It is Lyon. Best answer!") == [["same", "It is Lyon."], ["new", " Best answer!"]]
    assert changed("It is Lyon.", "Note: It is Lyon.") == [["new", "Note: "], ["same", "It is Lyon."]]


def test_visible_keeps_what_can_be_seen() -> None:
    assert visible("tab\tline\nüñ 中文 ☃") == "tab\tline\nüñ 中文 ☃"
    assert visible("a\r\nb\rc\x1b\u200b\ue000") == "a\nb\\u000dc\\u001b\\u200b\\ue000"


def test_shortened_keeps_both_ends() -> None:
    assert shortened("short", 10) == "short"
    cut = shortened("a" * 50 + "b" * 50, 10)
    assert cut.startswith("aaaaaa\n") and cut.endswith("\nbbbb") and "90 of 100" in cut
