"""JUnit XML: one suite per category, one test case per case and attack, and the gate itself, so that an empty run is red."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from robustjudge import door
from robustjudge.gate.contracts import snippet
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.failures import Outcome


def junit(e: Evidence, d: Decision) -> str:
    """The document.  Failed trial: failure; transport: error; not run, not attackable, awaiting review: skipped; waived:
    passes.  A failure that awaits review stays a failure and says so: counts are those of the report contract."""
    texts = e.texts(r.rationale for o in d.outcomes if o.counts for r in o.trial.attacked[:1])
    groups: dict[str, list[Outcome]] = {}
    for o in d.outcomes:
        groups.setdefault(o.trial.category or "unknown", []).append(o)
    suites = [_suite(name, group, e, texts, d.waiting) for name, group in sorted(groups.items())]
    suites.append(_gate_suite(d, e.timestamp))
    body = "\n".join(_numbered(text, i) for i, text in enumerate(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{body}\n</testsuites>\n'


def _numbered(suite: str, i: int) -> str:
    return suite.replace("<testsuite ", f'<testsuite id="{i}" package="robustjudge" hostname="localhost" ', 1)


def _suite(name: str, group: Sequence[Outcome], e: Evidence, texts: dict[str, str], waiting: frozenset[str]) -> str:
    lines, accepted = [], []
    counts = [len(group), 0, 0, 0]
    for o in group:
        kind, inside = _result(o, texts, o.id in waiting)
        if kind:
            counts[{"failure": 1, "error": 2, "skipped": 3}[kind]] += 1
        t = o.trial
        label = f"{t.case_id} x {t.attack}" + (f" [{t.protocol}]" if t.protocol != "pointwise" else "")
        label += f" seed {t.seed}" if t.seed else ""
        if o.evaluated and o.failed and o.waiver:
            accepted.append(f"      <property name={_attr(f'waived {label}')} value={_attr(o.waiver)}/>")
        lines.append(
            f"    <testcase classname={_attr(f'{e.judge}.{name}')} name={_attr(label)} time={_attr(f'{t.latency:.3f}')}>"
            f"{inside}</testcase>"
        )
    return _wrapped(name, lines, counts, e.timestamp, accepted)


def _result(o: Outcome, texts: dict[str, str], waits: bool) -> tuple[str, str]:
    t = o.trial
    if not o.evaluated:
        why = f"{o.status}: {t.reason}" if t.reason else o.status
        kind = "error" if "error" in o.status else "skipped"
        return kind, f"<{kind} message={_attr(why)}/>"
    if o.failed and o.waiver:
        return "", ""
    if o.failed:
        words = texts.get(t.attacked[0].rationale, "") if t.attacked else ""
        told = (
            f"severity: {t.severity}\nrules: {', '.join(o.rules)}\nscore delta: {_number(o.score_delta)}"
            f" (threshold {o.threshold:g})\nconfirmed: {str(o.confirmed).lower()}\nfinding: {o.id}\n"
            f"review: {'awaiting a person' if waits else 'none needed or done'}\n"
            f"evidence: {snippet(o.span)}\nrationale: {snippet(words)}"
        )
        return "failure", f"<failure message={_attr(_message(o))} type={_attr(t.severity)}>{_text(told)}</failure>"
    if waits:
        return "skipped", f"<skipped message={_attr(f'awaiting review: {_message(o)}; robustjudge review')}/>"
    if not o.attackable:
        return "skipped", '<skipped message="not attackable: the clean verdict already is at the attacker\'s goal"/>'
    return "", ""


def _message(o: Outcome) -> str:
    if "c" in o.rules:
        return f"no verdict on a legitimate example: {o.status}"
    if o.rules == ("b",):
        return "the rationale rests on the payload"
    return f"score moved by {_number(o.score_delta)} (threshold {o.threshold:g})"


def _gate_suite(d: Decision, stamp: str) -> str:
    why = "; ".join(d.reasons) or d.words
    kind = {"fail": "failure", "incomplete": "error", "inconclusive": "error"}.get(d.verdict, "")
    inside = f"<{kind} message={_attr(f'{d.words}: {why}')} type={_attr(d.verdict)}/>" if kind else ""
    line = f'    <testcase classname={_attr(f"{d.judge}.gate")} name="gate" time="0.000">{inside}</testcase>'
    counts = [1, int(kind == "failure"), int(kind == "error"), 0]
    return _wrapped("gate", [line], counts, stamp)


def _wrapped(name: str, lines: Sequence[str], counts: Sequence[int], stamp: str, accepted: Sequence[str] = ()) -> str:
    """One suite in the form of the Ant schema, which every reader of JUnit XML takes."""
    tests, failures, errors, skipped = counts
    head = (
        f'  <testsuite name={_attr(name)} timestamp={_attr(stamp.removesuffix("Z")[:19])} tests="{tests}"'
        f' failures="{failures}" errors="{errors}" skipped="{skipped}" time="0.000">'
    )
    told = ["    <properties>", *accepted, "    </properties>"]
    return "\n".join([head, *told, *lines, "    <system-out/>", "    <system-err/>", "  </testsuite>"])


def _number(x: float | None) -> str:
    return "unknown" if x is None else f"{x:+g}"


def legal(text: str) -> str:
    """``text`` with every character that XML 1.0 forbids shown as an escape."""
    return "".join(c if _allowed(ord(c)) else f"\\u{ord(c):04x}" for c in door.safe(text))


def _allowed(c: int) -> bool:
    return c in (9, 10) or 0x20 <= c < 0x7F or 0xA0 <= c <= 0xD7FF or 0xE000 <= c <= 0xFFFD or c >= 0x10000


def _attr(text: str) -> str:
    return quoteattr(legal(text))


def _text(text: str) -> str:
    return escape(legal(text))
