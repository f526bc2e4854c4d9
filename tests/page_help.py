"""What the tests of the local pages share: a run full of hostile text, a guarded client, and a reader of live markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from robustjudge import door
from robustjudge.spec import canonical
from robustjudge.web.guard import Guard, csrf_of
from table_help import DEFAULT_TEXTS, _detail, chosen, scored, write

PORT = 8123
TOKENS = {"a" * 43: "ann", "b" * 43: "bob"}
NASTY = (
    "<script>window.pwned=1;document.title='pwned'</script>",
    '"><img src=x onerror="window.pwned=1">',
    "' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1",
    "</pre></textarea></style></title><iframe src=//evil.example></iframe>",
    "<svg onload=window.pwned=1><a href=javascript:window.pwned=1>x</a>",
    "{{7*7}} {% raw %} ${7*7} &lt;b&gt;",
    "\x1b[31mred \u202egnp.exe",
)
HOSTILE = " ".join(NASTY)


def told(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the scores and choices of its columns in its detail too, where the gate reads them."""
    texts = {**DEFAULT_TEXTS, **row.get("texts", {})}
    detail = _detail(row, {k: door.digest(door.safe(v))[:32] for k, v in texts.items()})
    for s in detail["shown"]:
        arm = "clean" if s["arm"] == "clean" else "attacked"
        letters = row.get(f"{arm}_outcomes")
        if letters:
            s.pop("score")
            s |= {"index": [0, 1], "choice": {"W": 0, "L": 1, "T": -1}[letters[s["order"]]]}
        else:
            s["score"] = row[f"{arm}_score"]
    return {**row, "detail": canonical(detail)}


def hostile_run(folder: Path, n: int = 1, hostile: str = HOSTILE, severity: str = "critical") -> Path:
    """A run whose every field holds ``hostile``: ``n`` critical failures, a choice, and a trial that held."""
    texts = {k: f"{k} {hostile}" for k in ("task", "response", "reference", "prompt", "reply", "rationale")}
    texts["attacked"] = f"{texts['response']} INSERTED {hostile}"
    texts["prompt"] = f"[user]\nJudge: {texts['attacked']}"
    names = ("task", "language", "family", "category", "note", "reason", "dataset")
    common: dict[str, Any] = {**{k: f"{k} {hostile}" for k in names}, "judge": f"judge {hostile}", "severity": severity}
    rows = []
    for i in range(n):
        own = {**texts, "attacked": f"{texts['attacked']} {i}", "prompt": f"{texts['prompt']} {i}"}
        own["response"] = f"{texts['response']}"
        rows.append(scored(f"case {i} {hostile}", 2, 9, attack=f"attack {hostile}", texts=own, **common))
    rows.append(chosen(f"pair {hostile}", "LL", "WW", attack="pair", texts=texts, **common))
    rows.append(scored("held", 2, 2, attack="held", texts={**texts, "attacked": "held"}, **common))
    state = {"state": "complete", "started": f"now {hostile}", "judges": {f"judge {hostile}": {}}}
    return write(folder, [told(r) for r in rows], state)


def client(app: Any, who: str = "ann") -> TestClient:
    """A visitor who opened the printed link, following no redirect unasked."""
    token = next(t for t, name in TOKENS.items() if name == who)
    made = TestClient(Guard(app, TOKENS, PORT), base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False)
    assert made.get(f"/?token={token}").status_code == 303
    return made


def form(who: str = "ann", **fields: Any) -> dict[str, Any]:
    """The keyword arguments of a post from the visitor's own page."""
    token = next(t for t, name in TOKENS.items() if name == who)
    data = {**{k: str(v) for k, v in fields.items()}, "csrf": csrf_of(token)}
    return {"data": data, "headers": {"origin": f"http://127.0.0.1:{PORT}"}}


def press(page: Any, key: str) -> None:
    """Press a key that leads to another page, and wait until the script of that page is there to hear the next one."""
    with page.expect_navigation(wait_until="load"):
        page.keyboard.press(key)


class Live(HTMLParser):
    """Everything on a page that could act: elements we never use, handlers, inline style, foreign addresses."""

    ELEMENTS = frozenset({"img", "iframe", "svg", "object", "embed", "style", "video", "audio", "math", "base"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given.get("src") or "inline")
        if tag in self.ELEMENTS:
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "autofocus"):
                self.found.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction") and not (value or "").startswith(("/", "?")):
                self.found.append(f"{tag} {name}={value}")


def live(html: str) -> list[str]:
    """What acts on a page besides our own script file; empty for a safe one."""
    reader = Live()
    reader.feed(html)
    return reader.found + [s for s in reader.scripts if s != "/static/keys.js"]
