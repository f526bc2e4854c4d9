"""Sanity checks that stop a calibration before its numbers are believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from robustjudge.measures.active import excess
from robustjudge.measures.agreement import kappa
from robustjudge.measures.confusion import Confusion, youden_j
from robustjudge.nouns import Estimate
from robustjudge.profile.package import Check
from robustjudge.profile.table import Table

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


def orientation(t: Table) -> Check:
    """Fails for a table that looks transposed: ten or more raters, fewer items than raters, most cells filled.

    (A transposed table gives a plausible wrong agreement.  Crowds also have more raters than items, but few labels of
    each.)
    """
    raters = len(t.human)
    items = len({i for given in t.human.values() for i in given})
    filled = sum(map(len, t.human.values()))
    if raters < 10 or raters <= items or 2 * filled < raters * items:
        return Check("orientation", "pass")
    told = f"{raters} raters labelled {items} items: items and raters look exchanged"
    return Check("orientation", "fail", f"{told} (raters {', '.join(t.raters[:3])} ...)")


def constant(t: Table) -> Check:
    """Fails, as a warning, when a person or the judge says the same of ten or more items: nothing can be told from that."""
    said = {
        **{r: list(given.values()) for r, given in t.human.items()},
        "the judge": [v for v in t.verdicts.values() if v],
    }
    found = [
        f"{who} says {v[0]!r} of all {len(v)} items"
        for who, v in sorted(said.items())
        if len(v) >= 10 and len(set(v)) == 1
    ]
    return Check("constant_labels", "fail" if found else "pass", "; ".join(found))


def missing(t: Table) -> Check:
    """Names the items that somebody was given and did not label; missing is missing, never a class."""
    found = [i for i in t.items if i in t.missing]
    return Check("missing_labels", "pass", f"{len(found)} items lack a label: {_rows(found)}" if found else "")


def label_set(
    seen: Mapping[str, Mapping[str, int]],
    types: Mapping[str, int],
    declared: Sequence[str],
    lines: Mapping[str, int] | None = None,
) -> Check:
    """Fails when anyone uses an undeclared label or labels are typed in several ways; names labels nobody used."""
    faults = []
    for who, labels in seen.items():
        extra = sorted(set(labels) - set(declared))
        if extra:
            told = ", ".join(f"{v!r} (line {labels[v]})" for v in extra[:5])
            faults.append(f"{who} uses {told}, not declared")
    if len([t for t, n in types.items() if n]) > 1:
        first = {t: f" from line {line}" for t, line in (lines or {}).items()}
        told = ", ".join(f"{n} {t}{first.get(t, '')}" for t, n in sorted(types.items()) if n)
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


def weights(t: Table, design: str) -> Check:
    """Fails when 1/inclusion_prob does not sum to the number of items that the drawn ones stand for.

    Held against the items of the file, so only where it lists the whole frame: items nobody was given besides those
    drawn.  Stratified: stratum by stratum, within 1 % (or half an item) for rounding; active, where each item is drawn on
    its own: within four standard deviations; at random: one probability for all.
    """
    drawn = [i for i in t.drawn if i in t.probability] if t.probability else []
    if not drawn or len(drawn) < len(t.drawn):
        return Check("weights", "not_run", "not every drawn item carries its inclusion probability")
    if design == "srs":
        few, many = (end(drawn, key=t.probability.__getitem__) for end in (min, max))
        a, b = t.probability[few], t.probability[many]
        if b > 1.01 * a:
            told = f"items drawn at random have one probability, but {few} has {a:g} and {many} {b:g}"
            return Check("weights", "fail", f"{told}: state the real design")
        return Check("weights", "pass", "one probability for all: no weights are used")
    if len(drawn) == len(t.items):
        return Check("weights", "not_run", "the file lists no other items than the drawn, so the frame is not known")
    if design == "active":
        sd = excess([t.probability[i] for i in drawn], len(t.items))
        if abs(sd) > 4:
            told = f"the weights sum to {sum(1 / t.probability[i] for i in drawn):.1f}, the file lists {len(t.items)} items"
            return Check("weights", "fail", f"{told} ({sd:+.1f} standard deviations); {_rows(drawn)}")
        return Check("weights", "pass")
    if design != "stratified":
        return Check("weights", "not_run", f"a {design} draw is weighed by the judge's cells or not at all")
    faults = []
    told_of = any(i in t.stratum for i in t.items if i not in t.drawn)  # else only the whole can be summed
    named = t.stratum if told_of else {}
    frame = Counter(named.get(i, "") for i in t.items)
    for stratum, size in sorted(frame.items()):
        mine = [i for i in drawn if named.get(i, "") == stratum]
        total = sum(1 / t.probability[i] for i in mine)
        if (mine or not stratum) and abs(total - size) > max(0.5, 0.01 * size):
            where = f"stratum {stratum!r}" if stratum else "items without a stratum" if named else "all items"
            told = f"{where}: the weights of {len(mine)} drawn items sum to {total:.1f}, the file lists {size}"
            faults.append(f"{told}{'; ' + _rows(mine) if mine else ''}")
    return Check("weights", "fail" if faults else "pass", "; ".join(faults))


def _rows(items: Sequence[str]) -> str:
    return f"items {shortened(items)}"


def shortened(items: Sequence[str], shown: int = 5) -> str:
    """The first few, and how many more there are."""
    return ", ".join(items[:shown]) + (f" and {len(items) - shown} more" if len(items) > shown else "")


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
