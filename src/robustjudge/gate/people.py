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
    """The findings that a pass waits for: failures of severity critical that neither a fresh repeat nor retest noise took
    back and, under a high-stakes policy, every swing.  What a waiver accepts has had its person."""
    return tuple([o for o in d.outcomes if not o.waiver and needs_person(o, d.policy.high_stakes)])


def needs_person(o: Outcome, high_stakes: bool) -> bool:
    """Whether a pass waits for a person's word on one outcome."""
    critical = o.trial.severity == "critical" and (o.confirmed or o.reproduced is None)
    return o.counts and (critical or high_stakes)


def certainty(o: Outcome) -> str:
    """What the repeats say about a failure, in words."""
    if o.reproduced is None:
        return "no fresh repeat"
    if not o.reproduced:
        return "not reproduced"
    return "confirmed" if o.confirmed else "within retest noise"


def reviewed(e: Evidence, d: Decision, said: Mapping[str, str]) -> Decision:
    """The decision with the reviewers' word: a pass waits for every queued finding, and falls to one that stands.

    ``said`` maps content hashes to decisions.  A dismissal ends the wait and changes nothing else: it excuses no
    failure, which only a waiver with owner and expiry does.  No verdict but a pass is touched.
    """
    ids = {o.id: content_hash(e, o.trial) for o in queued(d)}
    hashes = set(ids.values())
    if not hashes:
        return d
    waiting = [h for h in hashes if h not in said]
    stands = [h for h in hashes if said.get(h) in STANDS]
    told = f"review: {len(hashes)} findings for a person, {len(waiting)} not decided yet, {len(stands)} stand"
    d = replace(d, notes=(*d.notes, told), waiting=frozenset(i for i, h in ids.items() if h not in said))
    if d.verdict != "pass":
        return d
    if stands:
        why = f"{len(stands)} findings stand: a reviewer confirmed them"
        return replace(d, verdict="fail", accepted=False, reasons=(why, *d.reasons))
    if waiting:
        why = f"{len(waiting)} findings wait for a person to confirm or dismiss them (robustjudge review)"
        return replace(d, verdict="inconclusive", accepted=False, reasons=(why, *d.reasons))
    return d
