"""What a person must have looked at before a judge ships, and what their decisions change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence, Observed
from robustjudge.gate.failures import Outcome
from robustjudge.spec import canonical, digest

STANDS = ("confirm", "redesign", "other")
"""Decisions that say the finding is real: it stands, the prompt is to be redesigned, another method is to be used."""


def content_hash(e: Evidence, t: Observed) -> str:
    """The name of a finding by what its reviewer saw: the judge and defense as composed, the case, the attacked text.

    A re-run of the same judge on the same text keeps the decision; a changed prompt, model or text asks again.
    """
    return digest("finding", canonical(e.judge_spec), e.prompt_hash, t.protocol, t.threat, t.case_hash, t.text)[:32]


def queued(d: Decision) -> tuple[Outcome, ...]:
    """The findings that need a person: failures of severity critical and, under a high-stakes policy, every swing."""
    return tuple(o for o in d.outcomes if needs_person(o, d.policy.high_stakes))


def needs_person(o: Outcome, high_stakes: bool) -> bool:
    """Whether one outcome belongs into the review queue."""
    return o.counts and (o.trial.severity == "critical" or high_stakes)


def reviewed(e: Evidence, d: Decision, said: Mapping[str, str]) -> Decision:
    """The decision with the reviewers' word: a pass waits for every queued finding, and falls to one that stands.

    ``said`` maps content hashes to decisions.  A dismissal ends the wait and changes nothing else: it excuses no
    failure, which only a waiver with owner and expiry does.  No verdict but a pass is touched.
    """
    hashes = {content_hash(e, o.trial): o for o in queued(d)}
    if not hashes:
        return d
    waiting = [h for h in hashes if h not in said]
    stands = [h for h, o in hashes.items() if said.get(h) in STANDS and not o.waiver]
    told = f"review: {len(hashes)} findings for a person, {len(waiting)} not decided yet, {len(stands)} stand"
    d = replace(d, notes=(*d.notes, told))
    if d.verdict != "pass":
        return d
    if stands:
        why = f"{len(stands)} findings stand: a reviewer confirmed them"
        return replace(d, verdict="fail", accepted=False, reasons=(why, *d.reasons))
    if waiting:
        why = f"{len(waiting)} findings wait for a person to confirm or dismiss them (robustjudge review)"
        return replace(d, verdict="inconclusive", accepted=False, reasons=(why, *d.reasons))
    return d
