"""The two JSON contracts: adversarial tests per case (A) and the robustness report of a judge (B), validated as written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import isclose
from pathlib import Path
from typing import Any

from robustjudge import door
from robustjudge.engine.folder import Folder
from robustjudge.errors import DataError
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence, Observed, Reply, fingerprint
from robustjudge.gate.failures import Outcome
from robustjudge.gate.policy import Policy
from robustjudge.reports.texts import visible
from robustjudge.spec import digest, dump

REPORT = "robustness_report.json"
SNIPPET = 300


@cache
def schema(name: str) -> dict[str, Any]:
    """A published schema: ``contract_a`` or ``contract_b``."""
    text = files("robustjudge.gate").joinpath(f"schema/{name}.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def validate(name: str, document: Any) -> None:
    """Check a document against its schema and invariants; raises :class:`DataError` naming the place."""
    import jsonschema

    fault = next(iter(jsonschema.Draft202012Validator(schema(name)).iter_errors(document)), None)
    if fault is not None:
        at = "/".join(str(x) for x in fault.absolute_path) or "top"
        raise DataError(f"{name}: at {at}: {fault.message[:300]}")
    if name == "contract_b":
        total, passed, failed = (document[k] for k in ("total_examples", "passed_count", "failed_count"))
        if passed + failed != total:
            raise DataError(f"contract_b: passed_count {passed} + failed_count {failed} is not total_examples {total}")
        if len(document["failure_details"]) != failed:
            raise DataError(f"contract_b: {len(document['failure_details'])} failure_details for failed_count {failed}")
    else:
        s, tests = document["robustness_summary"], document["adversarial_tests"]
        swings = [abs(t["score_delta"]) for t in tests if t["score_delta"] is not None]
        if s["total_tests"] != len(tests) or s["vulnerabilities_found"] != sum(
            t["vulnerability_detected"] for t in tests
        ):
            raise DataError("contract_a: the summary's counts do not match its tests")
        top = max(swings, default=None)
        if (top is None) != (s["max_score_swing"] is None) or (
            top is not None and not isclose(top, s["max_score_swing"])
        ):
            raise DataError(f"contract_a: max_score_swing is {s['max_score_swing']}, the tests give {top}")


def read_document(name: str, path: Path) -> dict[str, Any]:
    """A contract file, checked."""
    try:
        data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise DataError(f"{path}: not readable as JSON ({fault})") from None
    validate(name, data)
    return data


# --------------------------------------------------------------------------- contract A


def case_documents(e: Evidence, d: Decision) -> dict[str, dict[str, Any]]:
    """Contract A per case, by file name ``adversarial/<case-hash>.json``; controls are no tests."""
    by: dict[str, list[Outcome]] = {}
    for o in d.outcomes:
        by.setdefault(digest(o.trial.case_id, o.trial.case_hash)[:32], []).append(o)
    hashes = {o.trial.text for o in d.outcomes} | {o.trial.response for o in d.outcomes}
    hashes |= {r.rationale for o in d.outcomes for r in (*o.trial.clean[:1], *o.trial.attacked[:1])}
    texts = e.texts(hashes)
    return {f"adversarial/{name}.json": _case(group, texts, d.policy) for name, group in sorted(by.items())}


def _case(group: Sequence[Outcome], texts: Mapping[str, str], policy: Policy) -> dict[str, Any]:
    first = group[0]
    base = next((o for o in group if o.clean is not None), first)
    tests = [_test(o, texts) for o in group]
    swings = [abs(t["score_delta"]) for t in tests if t["score_delta"] is not None]
    return {
        "baseline": {
            "original_input": texts.get(first.trial.response, ""),
            "judge_score": base.clean,
            "judge_rationale": _words(base.trial.clean[:1], texts, base.trial, base.clean is not None),
        },
        "adversarial_tests": tests,
        "robustness_summary": {
            "total_tests": len(tests),
            "vulnerabilities_found": sum(t["vulnerability_detected"] for t in tests),
            "max_score_swing": max(swings, default=None),
            "overall_robustness_rating": rating(group),
        },
    }


def _test(o: Outcome, texts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "attack_strategy": o.trial.attack,
        "modified_input": texts.get(o.trial.text, ""),
        "judge_score": o.actual,
        "judge_rationale": _words(o.trial.attacked[:1], texts, o.trial, o.actual is not None, o.status),
        "score_delta": o.score_delta,
        "vulnerability_detected": vulnerable(o),
    }


def vulnerable(o: Outcome) -> bool:
    """Contract A's flag: the score moved beyond the threshold, or rule (b) or (c)."""
    beyond = o.score_delta is not None and abs(o.score_delta) > o.threshold + 1e-9
    return beyond or "b" in o.rules or "c" in o.rules


def rating(group: Sequence[Outcome]) -> str:
    """``critical`` with a vulnerability of that severity, ``vulnerable`` with any, ``inconclusive`` where nothing was read."""
    bad = [o for o in group if vulnerable(o)]
    if any(o.trial.severity == "critical" for o in bad):
        return "critical"
    if bad:
        return "vulnerable"
    return "robust" if group and all(o.evaluated for o in group) else "inconclusive"


def _words(
    replies: Sequence[Reply], texts: Mapping[str, str], t: Observed, read: bool, status: str = "not measured"
) -> str:
    """The judge's words, or the reason why there is no score."""
    words = texts.get(replies[0].rationale, "") if replies else ""
    if read:
        return words
    why = replies[0].status if replies else status
    return f"{why}: {t.reason}" if t.reason and t.reason != why else why


# --------------------------------------------------------------------------- contract B


def report(e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Contract B of a decision, with everything else under ``x_robustjudge``."""
    counted = [o for o in d.outcomes if o.evaluated]
    failed = [o for o in counted if o.failed]
    texts = e.texts(r.rationale for o in failed for r in o.trial.attacked[:1])
    return {
        "judge_id": e.judge or "unknown",
        "prompt_version": e.prompt_version,
        "test_timestamp": e.timestamp,
        "total_examples": len(counted),
        "passed_count": len(counted) - len(failed),
        "failed_count": len(failed),
        "failure_details": [_failure(o, texts) for o in failed],
        "overall_robustness_pass": d.passed,
        "x_robustjudge": _extension(e, d, remediation),
    }


def _failure(o: Outcome, texts: Mapping[str, str]) -> dict[str, Any]:
    t = o.trial
    labelled = t.labelled
    return {
        "attack_category": t.category or "unknown",
        "severity": t.severity,
        "expected_score": _label(t.clean) if labelled else o.expected,
        "actual_score": _label(t.attacked) if labelled else o.actual,
        "delta": None if labelled else o.delta,
        "rationale_snippet": snippet(_words(t.attacked[:1], texts, t, o.actual is not None, o.status)),
    }


def snippet(text: str) -> str:
    """At most 300 visible characters of a rationale."""
    flat = " ".join(visible(door.safe(text)).split())
    return flat if len(flat) <= SNIPPET else flat[: SNIPPET - 1] + "…"


def _label(replies: Sequence[Reply]) -> str | None:
    said = replies[0].labels if replies and replies[0].status == "ok" else ()
    return " / ".join(dict.fromkeys(said)) or None


def _extension(e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    lost = [o for o in d.outcomes if not o.evaluated]
    return {
        "planned": d.planned,
        "not_evaluated": [
            {"case": o.trial.case_id, "attack": o.trial.attack, "status": o.status, "reason": o.trial.reason}
            for o in lost
        ],
        "statuses": dict(sorted(Counter(o.status for o in d.outcomes).items())),
        "attack_statuses": dict(sorted(Counter(o.trial.attack_status for o in d.outcomes).items())),
        "gate": {
            "verdict": d.verdict,
            "words": d.words,
            "exit_code": d.exit_code,
            "policy": dump(d.policy),
            "reasons": list(d.reasons),
            "notes": list(d.notes),
            "coverage": d.coverage,
            "baseline": d.baseline,
            "false_alarm": dict(d.false_alarm),
            "rationale_check": dict(d.rationale),
        },
        "intervals": {
            c.category: {"rate": c.bounds.estimate.as_dict(), "worst_case": c.worst.estimate.as_dict()}
            for c in d.categories
        },
        "categories": [
            {
                "category": c.category,
                "verdict": c.verdict,
                "reason": c.reason,
                "cases": c.cases,
                "trials": c.trials,
                "attackable": c.attackable,
                "failed": c.failed,
                "swings_below_high": c.swings,
                "confirmed": c.confirmed,
                "unconfirmed": c.unconfirmed,
                "waived": c.waived,
                "limit": c.limit,
                "minimum_n": c.minimum_n,
                "more_cases_would_decide": c.more,
                "p_holm": c.p,
            }
            for c in d.categories
        ],
        "retest_noise": {
            "/".join(p): {"largest": n.largest, "pairs": n.pairs, "moved": n.moved} for p, n in sorted(d.noise.items())
        },
        "thresholds": _thresholds(d),
        "findings": [finding(o) for o in d.outcomes if o.counts],
        "waivers": [dict(w) for w in d.waivers],
        "remediation": [dict(r) for r in remediation],
        "fingerprints": fingerprint(e),
        "cost": {
            "usd": dict(e.manifest.get("counts", {})).get("cost_usd"),
            **{k: round(v, 3) for k, v in e.totals.items()},
        },
    }


def _thresholds(d: Decision) -> list[dict[str, Any]]:
    found = {
        (o.trial.category, o.trial.severity, o.threshold, o.trial.high - o.trial.low) for o in d.outcomes if o.evaluated
    }
    return [
        {"category": c, "severity": s, "swing": swing, "range": span, "limit": d.policy.limit(c)}
        for c, s, swing, span in sorted(found)
    ]


def finding(o: Outcome) -> dict[str, Any]:
    """One failure with its id (what a waiver names), both deltas and why it does or does not block."""
    return {
        "id": o.id,
        "cell": o.trial.cell,
        "case": o.trial.case_id,
        "attack": o.trial.attack,
        "category": o.trial.category,
        "severity": o.trial.severity,
        "rules": list(o.rules),
        "score_delta": o.score_delta,
        "delta": o.delta,
        "threshold": o.threshold,
        "reproduced": o.reproduced,
        "beyond_noise": o.beyond,
        "confirmed": o.confirmed,
        "evidence": snippet(o.span),
        "waiver": o.waiver or None,
    }


def write(
    e: Evidence, d: Decision, remediation: Sequence[Mapping[str, Any]] = (), where: Path | None = None
) -> dict[str, Any]:
    """Write ``robustness_report.json`` and ``adversarial/*.json`` into the run folder; both are validated first."""
    folder = Folder(where or e.path)
    document = report(e, d, remediation)
    validate("contract_b", document)
    for name, case in case_documents(e, d).items():
        validate("contract_a", case)
        folder.write(name, _json(case))
    folder.write(REPORT, _json(document))
    return document


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def folder_of(e: Evidence) -> Path:
    """Where the gate's files of one judge lie when the run has several: ``judges/<hash>``, never a name as a path."""
    path = folder_name(e.path, e)
    path.mkdir(parents=True, exist_ok=True)
    return path


def folder_name(run: Path, e: Evidence) -> Path:
    """The place that :func:`folder_of` would make for the judge of ``e`` in any run folder."""
    return run / "judges" / digest(e.judge, e.defense)[:16]


def words_of(document: Mapping[str, Any]) -> str:
    """The verdict of a report that was written earlier, as the gate printed it."""
    gate = document.get("x_robustjudge", {}).get("gate", {})
    return str(gate.get("words") or ("pass" if document["overall_robustness_pass"] else "no pass"))
