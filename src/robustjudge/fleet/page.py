"""The status page of a fleet: one self-contained file, every text escaped; and the same as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robustjudge.fleet.night import Stand
from robustjudge.reports.texts import one_line
from robustjudge.shapes.page import document, safe

SIGNS = {"pass": "✓", "pass with accepted risk": "✓", "fail": "✗"}


def page(stands: Sequence[Stand], faults: Sequence[str] = (), ending: Sequence[str] = (), now: str = "") -> str:
    """The page; ``faults`` are alerts that were not delivered, ``ending`` what is about to expire."""
    bad = [s for s in stands if not s.told.passed]
    stamp = now or datetime.now(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
    body = [
        "<h1>Judges</h1>",
        f"<p><strong>{len(stands) - len(bad)} of {len(stands)} pass.</strong> {_safe(stamp)}</p>",
    ]
    body += _list("About to expire", ending) + _list("Alerts that were not delivered", faults)
    heads = ("member", "judge", "verdict", "failed", "why", "prompt", "judged", "before")
    body.append(
        '<div class="scroll"><table><thead><tr>' + "".join(f"<th>{h}</th>" for h in heads) + "</tr></thead><tbody>"
    )
    for s in (*bad, *(x for x in stands if x.told.passed)):
        t = s.told
        why = s.fault or (t.reasons[0] if t.reasons else "")
        run = f"{t.run} (nothing changed)" if s.kept else t.run
        cells = (
            s.member,
            t.judge,
            f"{SIGNS.get(t.verdict, '?')} {t.verdict}",
            f"{t.failed} of {t.total}" if t.total else "",
            why,
            t.prompt_version,
            f"{s.when} {run}".strip(),
            " ".join(SIGNS.get(w, "?") for _, w in s.trend[1:]),
        )
        body.append("<tr>" + "".join(f"<td>{_safe(c)}</td>" for c in cells) + "</tr>")
    body.append("</tbody></table></div>")
    for s in stands:
        body += [f"<h2>{_safe(s.member)}: {_safe(s.told.judge)}</h2>"]
        if s.fault:
            body.append(f"<p>{_safe(s.fault, 2000)}</p>")
        body += _list("", [f"{c}: {v} – {r}" for c, v, r in s.categories])
        body += [f'<p class="dim">{_safe(n)}</p>' for n in s.notes[:20]]
        if len(s.trend) > 1:
            body += _list("Verdicts, the newest first", [f"{when}: {word}" for when, word in s.trend])
    body.append(
        '<p class="dim">✓ passes, ✗ fails, ? no verdict. The column "before" shows earlier nights, the newest first.'
        " A verdict that was kept stands because neither prompt, model, data nor attack changed since its run.</p>"
    )
    return document("robustjudge fleet", "\n".join(body))


def _list(title: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    return [f"<h3>{_safe(title)}</h3>"] * bool(title) + ["<ul>", *(f"<li>{_safe(x)}</li>" for x in items), "</ul>"]


def _safe(text: str, limit: int = 400) -> Any:
    return safe(one_line(text, limit))


def write(folder: Path, stands: Sequence[Stand], faults: Sequence[str], ending: Sequence[str]) -> tuple[Path, Path]:
    """``fleet.html`` and ``fleet.json`` in ``folder``."""
    from robustjudge.engine.folder import Folder

    place = Folder(folder)
    data = {
        "schema": "robustjudge.fleet/1",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "judges": [{**asdict(s), "trend": [list(x) for x in s.trend]} for s in stands],
        "undelivered": list(faults),
        "expiring": list(ending),
    }
    html = place.write("fleet.html", page(stands, faults, ending))
    return html, place.write("fleet.json", json.dumps(data, indent=2, ensure_ascii=False) + "\n")
