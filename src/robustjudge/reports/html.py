"""report.html: one self-contained file; every text from outside is escaped by the template, nothing is loaded or run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from robustjudge.reports import svg, words
from robustjudge.reports.shields import plot
from robustjudge.reports.texts import LIMIT, one_line, shortened, visible


def _text(value: Any) -> Markup:
    """Any value as visible, escaped text; no name, however long, makes the page long."""
    return escape(visible(shortened(str(value), LIMIT + 500)))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("robustjudge.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: v if isinstance(v, Markup) else _text("" if v is None else v),
    )
    env.globals.update(
        svg=svg,
        value=words.value,
        interval=words.interval,
        full=words.full,
        title=words.title,
        who=words.who,
        fit_words=words.fitted,
        call_words=words.calls,
        no_worst=words.no_worst,
        percent=words.percent,
        protocol_words=words.protocol_words,
        statuses=words.STATUS_WORDS,
        heat=heat,
        shade=shade,
        figures=figures,
        definitions=words.DEFINITIONS,
        shield_points=plot,
    )
    env.filters["line"] = one_line
    return env


def page(report: dict[str, Any]) -> str:
    """The page of a report dictionary."""
    return _environment().get_template("report.html").render(r=report) + "\n"


def heat(panel: dict[str, Any]) -> list[tuple[dict[str, Any], list[dict[str, Any] | None]]]:
    """Rows of the heat map: a line and its corrected success per task, in the panel's order of tasks."""
    return [(x, [x["by_task"].get(task, {}).get("asr") for task in panel["tasks"]]) for x in panel["lines"]]


def shade(estimate: dict[str, Any] | None) -> str:
    """The background of a heat-map cell: a number between 0 and 1 for the style sheet, or nothing."""
    if estimate is None or estimate["value"] is None:
        return ""
    return f"--heat:{100 * float(estimate['value']):.0f}%"


CORRECTED = {
    "appeal": ("asr_worst_case", "shift", "top_score_rate", "decision_flip_rate"),
    "pointwise": ("asr_worst_case", "shift", "dq", "expected_shift", "top_score_rate", "decision_flip_rate"),
    "": ("asr_worst_case", "win", "tie", "pac", "win_given_clean_correct"),
}
PUBLISHED = {
    "appeal": ("paper_asr", "paper_sdr"),
    "pointwise": ("paper_asr", "paper_sdr", "paper_isdr"),
    "pairwise": ("paper_p_asr",),
    "best_of": ("paper_asr_at_1", "clean_asr_at_1", "chance"),
}


def figures(panel: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The corrected and the published figures that a panel has, in the order of their columns."""
    held = {name for x in panel["lines"] for name in x["figures"]}
    corrected = CORRECTED.get(panel["protocol"], CORRECTED[""])
    published = PUBLISHED.get(panel["protocol"], ())
    return [n for n in corrected if n in held], [n for n in published if n in held]
