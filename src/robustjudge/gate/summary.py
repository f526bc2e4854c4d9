"""Markdown for people in CI: the step summary and the body of a pull-request comment; every foreign text is escaped."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustjudge import door
from robustjudge.gate.contracts import snippet
from robustjudge.gate.decide import CategoryResult, Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.reports.texts import visible

LIMIT = 1_000_000
"""Bytes of a step summary; GitHub refuses one of 1 MiB."""
ROWS = 20
ANNOTATIONS = 10
MARKER = "<!-- robustjudge-gate -->"
"""First line of the comment, by which a later run finds and replaces it."""

ICONS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "incomplete": "⏸️"}


def summary(
    e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]] = (), link: str = "", rows: int = ROWS
) -> str:
    """The gate line, the categories with n and bounds, the top failures, false alarms and what to change.

    Rows, not bytes, are left out until the text fits a step summary.
    """
    while True:
        text = _summary(e, d, remediation, link, rows)
        if len(text.encode()) < LIMIT or rows == 0:
            return text
        rows //= 2


def comment(e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]] = (), link: str = "") -> str:
    """The body of a pull-request comment: the summary behind a marker, short enough for the API."""
    rows = 10
    while True:
        text = f"{MARKER}\n{summary(e, d, remediation, link, rows)}"
        if len(text) < 60_000 or rows == 0:
            return text[:65_000]
        rows //= 2


def _summary(e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]], link: str, rows: int) -> str:
    out = [f"## {ICONS[d.verdict]} robustjudge gate: {d.words}", ""]
    out.append(
        f"Judge {code(d.judge)}, prompt {code(e.prompt_version)}, policy {code(d.policy.name)}, {d.planned} trials."
    )
    out += ["", *(f"- {plain(r)}" for r in d.reasons[:rows]), ""]
    out += ["| category | verdict | cases | failed | confirmed | rate | bounds (one-sided) | limit |"]
    out += ["|---|---|--:|--:|--:|--:|---|--:|"]
    out += [_row(c) for c in d.categories[: max(rows, 1)]]
    failed = sorted(
        (o for o in d.outcomes if o.counts),
        key=lambda o: (not o.confirmed, o.trial.severity not in ("critical", "high"), -abs(o.score_delta or 0.0), o.id),
    )
    if failed and rows:
        texts = e.texts(r.rationale for o in failed[:rows] for r in o.trial.attacked[:1])
        out += ["", f"### Failures ({len(failed)}, the first {min(rows, len(failed))})", ""]
        out += ["| case | attack | severity | delta | confirmed | rationale |", "|---|---|---|--:|---|---|"]
        for o in failed[:rows]:
            words = texts.get(o.trial.attacked[0].rationale, "") if o.trial.attacked else ""
            delta = o.status if o.score_delta is None else f"{o.score_delta:+g}"
            state = "accepted" if o.waiver else "yes" if o.confirmed else "no"
            cells = (
                code(o.trial.case_id),
                code(o.trial.attack),
                o.trial.severity,
                delta,
                state,
                code(snippet(words)[:160]),
            )
            out.append(f"| {' | '.join(cells)} |")
    out += ["", *_remedies(remediation[:rows])]
    out += [_risk(d), ""]
    out += [f"- {plain(n)}" for n in d.notes[:rows]]
    out += [
        f"- accepted: waiver {code(str(w['id']))} of {plain(str(w['owner']))}: {plain(str(w['reason']))}"
        for w in d.waivers[:rows]
        if w["findings"]
    ]
    if link:
        out += ["", f"Reports: {plain(link)}"]
    return "\n".join(out).rstrip() + "\n"


def _row(c: CategoryResult) -> str:
    b = c.bounds.estimate
    value = "unknown" if b.value is None else f"{100 * b.value:.1f} %"
    low, high = 0.0 if b.low is None else b.low, 1.0 if b.high is None else b.high
    return (
        f"| {plain(c.category)} | {c.verdict} | {c.cases} | {c.failed} | {c.confirmed} | {value} |"
        f" {100 * low:.1f} to {100 * high:.1f} % | {100 * c.limit:g} % |"
    )


def _remedies(remediation: Sequence[Mapping[str, Any]]) -> list[str]:
    if not remediation:
        return []
    out = ["### What to change", ""]
    for r in remediation:
        what = f"{plain(str(r['attack_category']))}: {plain(str(r['change']))}"
        where = f" at {code(str(r['where']))}" if r.get("where") else ""
        if r["measured"] and r["kind"] == "none":
            out.append(f"- {what} (n = {r['n']})")
        elif r["measured"]:
            out.append(
                f"- {what}{where} ({r['failures_before']} failures before, {r['failures_after']} after, n = {r['n']})"
            )
        else:
            out.append(f"- {what}{where} (untested)")
    return [*out, ""]


def _risk(d: Decision) -> str:
    """The false-alarm and power line that stands with every verdict."""
    return risk_line(d.false_alarm)


def risk_line(fa: Mapping[str, Any]) -> str:
    """False alarms, retest flips and the smallest effect seen, in one sentence."""
    if not fa:
        return "False alarms: not measured."

    def share(name: str) -> str:
        e = fa[name]
        if e["value"] is None:
            return f"unknown ({e['reason']})"
        low, high = e["low"] or 0.0, 1.0 if e["high"] is None else e["high"]
        return f"{100 * e['value']:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"

    mde = fa.get("mde_at_80_percent_power")
    seen = "no failure rate at all" if mde is None else f"a failure rate of {100 * mde:.1f} %"
    return (
        f"False alarms: {share('per_comparison')} of {fa['per_comparison']['n']} retests would count as failures, gate"
        f" {share('gate')}; retest flips {share('flip_rate')}; at {fa['cases']} cases the gate sees {seen} with 80 % power."
    )


# --------------------------------------------------------------------------- escaping


def code(text: str) -> str:
    """Foreign text as a Markdown code span: fence longer than any run of backticks inside, table bars escaped."""
    flat = " ".join(visible(door.safe(text)).split()).replace("|", "\\|") or " "
    fence = "`" * (max((len(m) for m in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def plain(text: str) -> str:
    """Text of ours that may hold foreign names: no markup, mention, link or HTML survives."""
    flat = " ".join(visible(door.safe(text)).split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~])", r"\\\1", flat)
    flat = re.sub(r"^([#+=-]|\d+(?=[.)]))", lambda m: f"\\{m[1]}" if not m[1].isdigit() else f"{m[1]}\\", flat)
    return flat.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


def log_safe(text: str) -> str:
    """Text for a workflow log, where ``::`` and ``##[`` start commands: one visible line that is none."""
    flat = " ".join(visible(door.safe(text)).split())
    return flat.replace("%", "%25").replace("::", ":\u2060:").replace("##[", "#\u2060#[")


def annotate(d: Decision, file: str = "", line: int = 1) -> list[str]:
    """GitHub annotation commands for the gate and its first failures, limited in number."""
    level = {"pass": "notice", "fail": "error"}.get(d.verdict, "warning")
    at = f" file={_value(file)},line={line}" if file else ""
    out = [f"::{level}{at}::{log_safe(f'robustjudge gate: {d.words}')}"]
    for reason in d.reasons[: ANNOTATIONS - 1]:
        out.append(f"::{level}{at}::{log_safe(reason)}")
    return out


def _value(text: str) -> str:
    return log_safe(text).replace(":", "%3A").replace(",", "%2C")


def append_step_summary(text: str) -> bool:
    """Append to the file that the CI names in ``GITHUB_STEP_SUMMARY``; false where it names none."""
    name = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not name:
        return False
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
    return True


def stopped(text: str) -> str:
    """Raw output between a stop-commands token and its end, so that a workflow log obeys nothing inside."""
    token = secrets.token_hex(12)
    return f"::stop-commands::{token}\n{text}\n::{token}::\n"
