"""Frozen anchors judged again: did the judge move, or the system behind the live rate?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustjudge.errors import DataError
from robustjudge.measures.compare import mcnemar
from robustjudge.measures.drift import (
    AnchorDrift,
    Chart,
    TwoWindows,
    anchor_drift,
    attribute,
    cusum,
    retest_excess,
    two_windows,
)
from robustjudge.measures.intervals import wilson_bounds
from robustjudge.nouns import Estimate
from robustjudge.profile import panel, table
from robustjudge.profile.checks import label_set
from robustjudge.profile.longform import LabelRow

SURE = 1.2815515655446004
"""Normal quantile of the one-sided 90 % bound on the error rate in control."""
ALPHA = 0.01
"""How unlikely a change must be before it counts as one."""


@dataclass(frozen=True)
class DriftReport:
    """What two judgements of one anchor set say.  ``excess`` is the flip rate over the retest noise of the same run
    (undefined without repeats); ``chart`` follows the error counts of all runs so far."""

    same: bool
    anchors: AnchorDrift | None
    unread: int
    excess: Estimate
    live: TwoWindows | None
    chart: Chart | None
    verdict: str
    judge_moved: bool

    def lines(self) -> list[str]:
        """The report in words."""
        out = []
        if self.anchors is not None:
            a = self.anchors
            out += [
                f"anchors judged twice: {a.n} ({self.unread} left out, a verdict could not be read)",
                f"flip rate: {_shown(a.flip_rate)}",
                f"flips beyond retest noise: {_shown(self.excess)}",
                f"kappa old-new: {_shown(a.kappa)}",
                f"McNemar p: {a.mcnemar.exact_p:.3g}",
                f"TPR change: {_shown(a.tpr_change)}",
                f"FPR change: {_shown(a.fpr_change)}",
            ]
        if self.live is not None:
            out.append(f"live rate change (new - old): {_shown(self.live.difference)}")
        if self.chart is not None:
            c = self.chart
            alarm = f"ALARM at run {c.alarm + 1}" if c.alarm is not None else "in control"
            out.append(
                f"control chart over {len(c.values)} runs: {c.values[-1]:.2f}, limit {c.limit:.2f}: {alarm}"
                f" ({c.method}, target the upper 90 % bound of the first error rate)"
            )
        return [*out, self.verdict]


def _shown(e: Estimate) -> str:
    if e.value is None:
        return f"undefined ({e.reason})"
    return f"{e.value:+.3f}" + (f" [{e.low:+.3f}, {e.high:+.3f}]" if e.low is not None and e.high is not None else "")


def drifted(
    before: Sequence[LabelRow],
    after: Sequence[LabelRow],
    labels: tuple[str, str],
    *,
    live: tuple[tuple[int, int], tuple[int, int]] | None = None,
    history: Path | None = None,
    run_length: float = 370.0,
) -> DriftReport:
    """Compare two judgements of one anchor set; ``after`` may hold judge rows only (the people's labels are frozen).

    ``live`` holds the judge-positive counts of live traffic then and now.  ``history`` is a JSONL file of error counts
    to which this run is appended; with two or more runs it gives a one-sided CUSUM of rising errors.
    """
    positive, negative = labels
    old, new = table.collect(before), table.collect(after)
    for t in (old, new):
        if (used := label_set(t.seen, t.types, labels)).result == "fail":
            raise DataError(f"label set: {used.detail}; the two labels are given by --label, positive first")
    same = not new.human or table.anchors(old) == table.anchors(new)
    same = same and set(old.verdicts) == set(new.verdicts)
    rates = two_windows(*live[1], *live[0]) if live is not None else None
    rate_moved = rates is not None and rates.fisher_p is not None and rates.fisher_p < ALPHA
    nothing = Estimate.undefined("not comparable", method="newcombe")
    if not same:
        return DriftReport(False, None, 0, nothing, rates, None, attribute(False, False, rate_moved), False)
    truth = panel.reference(old).of_item
    read = [i for i in truth if old.verdicts.get(i) is not None and new.verdicts.get(i) is not None]
    if not read:
        raise DataError("no anchor has a reference label and two readable verdicts")
    was, now = [old.verdicts[i] for i in read], [new.verdicts[i] for i in read]
    found = anchor_drift([truth[i] for i in read], was, now, positive, negative)
    excess = _excess(after, read, sum(a != b for a, b in zip(was, now)))
    moved = _shifted(truth, old.verdicts, new.verdicts, read, labels) or (excess.low is not None and excess.low > 0)
    errors = sum(truth[i] != new.verdicts[i] for i in read)
    first = sum(truth[i] != old.verdicts[i] for i in read)
    chart = _chart(history, table.anchors(old), first, errors, len(read), run_length)
    moved = moved or (chart is not None and chart.alarm is not None)
    told = attribute(True, moved, rate_moved, _detectable(found))
    return DriftReport(True, found, len(truth) - len(read), excess, rates, chart, told, moved)


def _shifted(
    truth: Mapping[str, str],
    old: Mapping[str, str | None],
    new: Mapping[str, str | None],
    read: Sequence[str],
    labels: tuple[str, str],
) -> bool:
    """Verdicts on positive or on negative anchors went one way: exact McNemar within each, both together at ALPHA.
    (Over all anchors a judge that got worse both ways would look unmoved.)"""
    tests = []
    for label in labels:
        mine = [(old[i] == labels[0], new[i] == labels[0]) for i in read if truth[i] == label]
        tests.append(mcnemar(mine.count((True, False)), mine.count((False, True))).exact_p)
    return min(tests) * len(tests) < ALPHA


def _detectable(found: AnchorDrift) -> float | None:
    """The change of TPR or FPR that these anchors could have shown: the wider half of their intervals."""
    both = (found.tpr_change, found.fpr_change)
    halves = [(e.high - e.low) / 2 for e in both if e.low is not None and e.high is not None]
    return max(halves) if halves else None


def _excess(after: Sequence[LabelRow], read: Sequence[str], flips: int) -> Estimate:
    """Flips beyond what byte-identical repeats of the same run flip anyway."""
    first = {r.item: r.label for r in after if r.rater_kind == "judge" and r.repeat == 0}
    again = {r.item: r.label for r in after if r.rater_kind == "judge" and r.repeat == 1}
    both = [i for i in read if first.get(i) is not None and again.get(i) is not None]
    if not both:
        return Estimate.undefined("no repeats in the new run: retest noise is unknown", method="newcombe")
    return retest_excess(flips, len(read), sum(first[i] != again[i] for i in both), len(both))


def _chart(path: Path | None, address: str, first: int, errors: int, n: int, run_length: float) -> Chart | None:
    """Append this run's error count and chart all runs on the same anchors.

    The error rate in control is known from one judgement only.  Taken as it was found, a judge that does not change would
    set off the alarm in 42 of 100 histories of fifty runs where one in 370 runs promises 13: its upper :data:`SURE` bound
    is the target.
    """
    if path is None:
        return None
    runs: list[dict[str, Any]] = []
    if path.is_file():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            try:
                runs.append(json.loads(line))
            except ValueError:
                raise DataError(f"{path}, line {number}: not JSON") from None
    bound = wilson_bounds(first / n, n, SURE)[1]
    runs.append({"anchors": address, "errors": errors, "n": n, "target": bound})
    with path.open("a", encoding="utf-8") as f:
        f.write(json.dumps(runs[-1], sort_keys=True) + "\n")
    mine = [r for r in runs if r.get("anchors") == address]
    target = min(max(float(mine[0]["target"]), 1e-6), 1 - 1e-6)
    return cusum([r["errors"] for r in mine], [r["n"] for r in mine], target, run_length)


def judged_again(
    before: Sequence[LabelRow], items: str, judge: Any, name: str, labels: tuple[str, str], options: Any
) -> list[LabelRow]:
    """Judge the anchors anew, twice each, so that the retest noise is measured in the same run; no reply stored by an
    earlier run is reused."""
    from dataclasses import replace

    from robustjudge.datasets.registry import load
    from robustjudge.profile.grading import judge_rows

    wanted = {r.item_id: r.stratum for r in before if r.rater_kind == "judge"}
    cases = [c for c in load(items) if c.id in wanted]
    if lacking := sorted(set(wanted) - {c.id for c in cases}):
        raise DataError(f"{items} lacks {len(lacking)} anchors, among them {', '.join(lacking[:5])}")
    fresh = replace(options, ledger=None, mode="off")
    return judge_rows(judge, cases, labels, labels[0], judge_id=name, options=fresh, repeats=2, known=wanted)
