"""Sanity checks that stop a calibration before its numbers are believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from robustjudge.measures.agreement import kappa
from robustjudge.measures.confusion import Confusion, youden_j
from robustjudge.nouns import Estimate
from robustjudge.profile.package import Check

RECONCILED_FROM = 50


def polarity(c: Confusion) -> Check:
    """Fails when J or kappa is below 0 with its whole interval; both orientations are shown, nothing is flipped."""
    j, k = youden_j(c), kappa(c.table)
    if j.value is None and k.value is None:
        return Check("polarity", "not_run", j.reason)
    inverted = any(e.high is not None and e.high < 0 for e in (j, k))
    if not inverted:
        return Check("polarity", "pass")
    flipped = Confusion(c.fn, c.tn, c.tp, c.fp)
    return Check(
        "polarity",
        "fail",
        f"labels look inverted: J {_shown(j)} as given, {_shown(youden_j(flipped))} with the judge's labels exchanged; "
        "check which label means yes",
    )


def better_than_chance(c: Confusion) -> Check:
    """Fails when J <= 0: no rate can be corrected with such a judge."""
    j = youden_j(c)
    if j.value is None:
        return Check("better_than_chance", "not_run", j.reason)
    if j.value <= 0:
        return Check("better_than_chance", "fail", f"judge_not_better_than_chance: J {_shown(j)}")
    return Check("better_than_chance", "pass", f"J {_shown(j)}")


def label_set(seen: Mapping[str, Mapping[str, int]], types: Mapping[str, int], declared: Sequence[str]) -> Check:
    """Fails when anyone uses an undeclared label or labels are typed in several ways; names labels nobody used."""
    faults = []
    for who, labels in seen.items():
        extra = sorted(set(labels) - set(declared))
        if extra:
            told = ", ".join(f"{v!r} (line {labels[v]})" for v in extra[:5])
            faults.append(f"{who} uses {told}, not declared")
    if len([t for t, n in types.items() if n]) > 1:
        told = ", ".join(f"{n} {t}" for t, n in sorted(types.items()) if n)
        faults.append(f'labels are typed in several ways ({told}): "2" and 2 are not one label')
    if faults:
        return Check("label_set", "fail", "; ".join(faults))
    used = {v for labels in seen.values() for v in labels}
    unused = [v for v in declared if v not in used]
    return Check("label_set", "pass", f"never used: {', '.join(unused)}" if unused else "")


def reconciled(pairs: Mapping[tuple[str, str], tuple[int, int]]) -> Check:
    """Fails (as a warning) when two raters agree on every one of 50 or more items: kappa 1 is then no evidence."""
    same = [(a, b, n) for (a, b), (agree, n) in pairs.items() if n >= RECONCILED_FROM and agree == n]
    if same:
        a, b, n = same[0]
        told = f"{a} and {b} agree on all {n} items: probably adjudicated before release"
        return Check("reconciled_labels", "fail", told)
    return Check("reconciled_labels", "pass" if pairs else "not_run")


def leak(items: Collection[str], tuned_on: Collection[str]) -> tuple[Check, tuple[str, ...]]:
    """Items that the judge prompt was tuned on or shows as examples; they are to be excluded."""
    if not tuned_on:
        return Check("leak", "not_run", "no list of tuning items given"), ()
    found = tuple(sorted(set(items) & set(tuned_on)))
    if not found:
        return Check("leak", "pass"), ()
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return Check("leak", "fail", f"{len(found)} items excluded: {', '.join(found[:10])}{more}"), found


def _shown(e: Estimate) -> str:
    if e.value is None:
        return f"undefined ({e.reason})"
    return f"{e.value:.3f}" + (f" [{e.low:.3f}, {e.high:.3f}]" if e.low is not None and e.high is not None else "")
