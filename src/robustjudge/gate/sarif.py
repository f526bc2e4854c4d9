"""SARIF 2.1.0: a rule per attack and per lint rule; results point at the judge prompt, the file that must change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from robustjudge import __version__, door
from robustjudge.gate.contracts import snippet
from robustjudge.gate.decide import Decision
from robustjudge.gate.failures import Outcome
from robustjudge.prompts.lint import RULES, Finding
from robustjudge.reports.texts import visible
from robustjudge.spec import digest

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
LIMIT = 5000
"""Results in one file; code hosts refuse files with many more."""


def sarif(
    decision: Decision | None = None,
    findings: Sequence[Finding] = (),
    *,
    prompt: str = "",
    line: int = 1,
    root: Path | None = None,
) -> str:
    """The log of a decision, of lint findings, or of both.

    ``prompt`` is the judge prompt's file and ``line`` the line of its candidate slot; paths are made relative to
    ``root`` (default: the working directory).  Text is plain, never Markdown.
    """
    failed = [o for o in decision.outcomes if o.counts][:LIMIT] if decision else []
    rules: dict[str, dict[str, Any]] = {}
    for o in failed:
        rules.setdefault(f"attack/{o.trial.attack}", _attack_rule(o))
    for f in findings:
        rules.setdefault(f"lint/{f.rule}", _lint_rule(f))
    index = {name: i for i, name in enumerate(rules)}
    waivers = {str(w["id"]): w for w in decision.waivers} if decision else {}
    where = prompt or (f"judges/{decision.judge}" if decision else "prompt")
    results = [_failure(o, index, waivers, _place(where, line, root)) for o in failed]
    results += [_hit(f, index, root, prompt) for f in findings[:LIMIT]]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "robustjudge",
                        "semanticVersion": __version__,
                        "rules": list(rules.values()),
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
                **({"properties": {"gate": decision.words}} if decision else {}),
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _attack_rule(o: Outcome) -> dict[str, Any]:
    t = o.trial
    return {
        "id": _plain(f"attack/{t.attack}"),
        "shortDescription": {"text": _plain(f"Judge moved by {t.attack}")},
        "fullDescription": {
            "text": _plain(f"The {t.category} attack {t.attack} changes the judge's verdict without better content.")
        },
        "help": {
            "text": "Harden the judge prompt or put a defense before the judge; see remediation in the run's report."
        },
        "defaultConfiguration": {"level": LEVELS.get(t.severity, "warning")},
        "properties": {"tags": [_plain(t.category), _plain(t.severity), "judge-robustness"]},
    }


def _lint_rule(f: Finding) -> dict[str, Any]:
    rule = RULES[f.rule]
    return {
        "id": f"lint/{f.rule}",
        "shortDescription": {"text": _plain(rule.about)},
        "fullDescription": {"text": _plain(f"Judge prompt check: {rule.about}.")},
        "help": {"text": "Found without any model call; the message says what to change."},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": ["judge-prompt-lint", rule.severity]},
    }


def _failure(o: Outcome, index: Mapping[str, int], waivers: Mapping[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    t = o.trial
    name = f"attack/{t.attack}"
    delta = "no verdict" if o.score_delta is None else f"score moved by {o.score_delta:+g} (threshold {o.threshold:g})"
    state = "confirmed" if o.confirmed else "not confirmed"
    evidence = f" Evidence: {snippet(o.span)}" if o.span else ""
    result: dict[str, Any] = {
        "ruleId": _plain(name),
        "ruleIndex": index[name],
        "level": LEVELS.get(t.severity, "warning"),
        "message": {"text": _plain(f"{t.attack} on case {t.case_id} ({t.protocol}): {delta}, {state}.{evidence}")},
        "locations": [place],
        "partialFingerprints": {"robustjudge/v1": o.id},
        "properties": {"category": _plain(t.category), "severity": t.severity, "rules": list(o.rules)},
    }
    if o.waiver:
        why = waivers.get(o.waiver, {})
        text = f"waiver {o.waiver}: {why.get('reason', '')} (approved by {why.get('approver', '')})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": _plain(text)}]
    return result


def _hit(f: Finding, index: Mapping[str, int], root: Path | None, prompt: str) -> dict[str, Any]:
    file = f.where if "/" in f.where or "." in f.where else prompt or f.where
    return {
        "ruleId": f"lint/{f.rule}",
        "ruleIndex": index[f"lint/{f.rule}"],
        "level": f.severity,
        "message": {"text": _plain(f.message)},
        "locations": [_place(file, f.line, root)],
        "partialFingerprints": {"robustjudge/v1": digest(f.rule, f.where, str(f.line))[:16]},
    }


def _place(file: str, line: int, root: Path | None) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": relative(file, root)},
            "region": {"startLine": max(1, line)},
        }
    }


def relative(file: str, root: Path | None = None) -> str:
    """A relative URI: the path under ``root``, or only its name where it lies outside."""
    path = Path(file)
    base = (root or Path.cwd()).resolve()
    if path.is_absolute():
        path = path.relative_to(base) if path.is_relative_to(base) else Path(path.name)
    parts = [p for p in PurePosixPath(path.as_posix()).parts if p not in ("..", ".", "/")]
    return quote("/".join(_plain(p) for p in parts) or "prompt")


def _plain(text: str) -> str:
    """Visible plain text on one line; the square brackets of a SARIF link are escaped."""
    flat = " ".join(visible(door.safe(text)).split())
    return flat.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")[:2000]
