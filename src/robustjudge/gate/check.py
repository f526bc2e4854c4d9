"""The whole gate on a stored run: policy, waivers, baseline, false alarms, and one verdict; no call is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from robustjudge.engine.collector import paused
from robustjudge.errors import DataError
from robustjudge.gate.auditing import Audited
from robustjudge.gate.baseline import against, check_comparable
from robustjudge.gate.decide import Decision, Seen, Word, decide, look
from robustjudge.gate.evidence import Evidence, evidence
from robustjudge.gate.policy import Policy
from robustjudge.gate.reasons import rationale_check
from robustjudge.gate.selftest import false_alarm
from robustjudge.gate.waivers import Waiver, apply


def check(
    path: Path,
    policy: Policy | None = None,
    *,
    judge: str = "",
    baseline: Path | None = None,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    auditor: Callable[[Evidence], Audited] | None = None,
) -> tuple[Evidence, Decision]:
    """Decide on one judge of the run in ``path``.  ``auditor`` asks a model about its rationales (the only call there is).

    Raises :class:`~robustjudge.errors.ConfigError` (exit 2) for a policy or waiver that does not fit the run, and
    :class:`~robustjudge.errors.NotComparable` for a baseline of other cases or attacks.
    """
    with paused():
        return _checked(path, policy or Policy(), judge, baseline, waivers, today, auditor)


def _checked(
    path: Path,
    policy: Policy,
    judge: str,
    baseline: Path | None,
    waivers: Sequence[Waiver],
    today: date | None,
    auditor: Callable[[Evidence], Audited] | None,
) -> tuple[Evidence, Decision]:
    e = evidence(path, judge, policy.defense)
    seen = _seen(e, policy, auditor)
    applied = apply(waivers, e, seen.outcomes, today)
    d = decide(e, policy, seen, applied.accepted)
    d = replace(d, waivers=applied.used, notes=(*d.notes, *applied.notes))
    if baseline is not None:
        d = _held_against(d, e, baseline, auditor)
    return e, _capped(d, e)


def _seen(e: Evidence, policy: Policy, auditor: Callable[[Evidence], Audited] | None) -> Seen:
    """Every attacked trial judged, with the auditor's answers where there is one."""
    if auditor is None:
        return look(e, policy)
    flagged, told = rationale_check(e, auditor(e))
    return replace(look(e, policy, flagged), rationale=told)


def _held_against(d: Decision, e: Evidence, baseline: Path, auditor: Callable[[Evidence], Audited] | None) -> Decision:
    """Add the paired comparison; the graver of the two verdicts stands."""
    try:
        base = evidence(baseline, e.judge, e.defense)
    except DataError as fault:
        raise DataError(f"the baseline cannot be read, so nothing can be compared: {fault}") from None
    changed = check_comparable(e, base)
    result = against(d.outcomes, _seen(base, d.policy, auditor).outcomes, d.policy, changed)
    order: tuple[Word, ...] = ("fail", "incomplete", "inconclusive", "pass")
    word = min((d.verdict, result.verdict), key=order.index)
    reasons = (f"baseline: {result.reason}", *d.reasons) if result.verdict != "pass" else d.reasons
    notes = (*d.notes, f"against the baseline: {result.reason}", *(f"changed since the baseline: {c}" for c in changed))
    return replace(d, verdict=word, reasons=reasons, notes=notes, baseline=result.as_dict())


def _capped(d: Decision, e: Evidence) -> Decision:
    """Print the false-alarm rate with every verdict; a gate above the policy's cap refuses to block or to pass."""
    fa = false_alarm(e, d.policy)
    d = replace(d, false_alarm=fa.as_dict())
    if fa.gate.value is None or fa.gate.value <= d.policy.false_alarm_cap + 1e-9 or d.unscorable:
        return d
    why = (
        f"this gate would block an unchanged judge in {100 * fa.gate.value:.0f} % of runs, above the policy's cap of"
        f" {100 * d.policy.false_alarm_cap:g} %: it refuses to decide; steady the judge or raise the thresholds"
    )
    word: Word = "inconclusive" if d.verdict in ("pass", "fail") else d.verdict
    return replace(d, verdict=word, reasons=(why, *d.reasons))
