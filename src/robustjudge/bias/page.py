"""The report of a bias run: canonical JSON, and one self-contained page with every text escaped."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from robustjudge.bias.finding import Report
from robustjudge.reports.texts import visible
from robustjudge.spec import canonical


@lru_cache(maxsize=1)
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    env = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: visible(v) if isinstance(v, str) else v,
    )
    return env.from_string((files("robustjudge.bias") / "page.html").read_text(encoding="utf-8"))


def page(report: Report) -> str:
    """The report as one HTML page; nothing in it loads or runs."""
    judges = list(dict.fromkeys(f.judge for f in report.findings))
    rows = [(j, [f for f in report.findings if f.judge == j]) for j in judges]
    text: str = _template().render(r=report, judges=rows)
    return text.lstrip()


def write(report: Report, folder: Path) -> dict[str, Path]:
    """Write ``bias.json`` and ``bias.html`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    out = {"json": folder / "bias.json", "html": folder / "bias.html"}
    out["json"].write_text(canonical(report.as_dict()) + "\n", encoding="utf-8")
    out["html"].write_text(page(report), encoding="utf-8")
    return out
