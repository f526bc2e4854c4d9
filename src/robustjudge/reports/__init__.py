"""Reports: pure functions of a run's table and manifest.  The same folder gives the same bytes; no clock, no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import Folder
from robustjudge.errors import UnknownName

FORMATS = ("html", "md", "json")


def write(folder: Path, formats: Sequence[str] = FORMATS, redact: bool = False) -> dict[str, Path]:
    """Write ``report.html``, ``report.md`` and ``report.json`` (those asked for) into a run folder; returns their paths.

    ``redact`` puts hashes where attacked texts, judge inputs and replies would stand.
    """
    from robustjudge.reports.model import build

    for name in formats:
        if name not in FORMATS:
            raise UnknownName("report format", name, FORMATS)
    home = Folder.open(Path(folder))
    report = build(home.path, redact)
    return {name: home.write(f"report.{name}", rendered(report, name)) for name in formats}


def rendered(report: dict[str, Any], name: str) -> str:
    """A report dictionary as the text of one format."""
    if name == "json":
        return json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    if name == "md":
        from robustjudge.reports.markdown import document

        return document(report)
    from robustjudge.reports.html import page

    return page(report)


def summary(folder: Path) -> str:
    """One sentence per judge and protocol for a terminal; first, where it applies, why too few rows are ok."""
    from robustjudge.reports.model import build
    from robustjudge.reports.texts import visible

    report = build(Path(folder), redact=True)
    warnings = [f"{w['level']}: {w['text']}" for w in report["warnings"] if w["level"] != "note"]
    lines = [report["first_line"], *report["summary"], *warnings]
    return visible("\n".join(line for line in lines if line))


def schema() -> dict[str, Any]:
    """The JSON schema of ``report.json``."""
    from importlib.resources import files

    data: dict[str, Any] = json.loads(files("robustjudge.reports").joinpath("schema", "report.json").read_text("utf-8"))
    return data
