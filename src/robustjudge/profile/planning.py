"""How many labels, of which items, and when to stop: said before the labelling starts, not after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, sqrt

from robustjudge.errors import DataError
from robustjudge.measures import power
from robustjudge.measures.base import bounded
from robustjudge.measures.grid import Panel
from robustjudge.measures.sequential import beta_binomial
from robustjudge.nouns import Estimate
from robustjudge.profile.longform import LabelRow

FLOOR = 30
"""Fewest positives and negatives each; 100 are better."""


def planned(half_width: float, prevalence: float, tpr: float, fpr: float, budget: int | None = None) -> list[str]:
    """The label plan in words: items for TPR and FPR within +- ``half_width``, the verdicts for a corrected rate, and
    with a ``budget`` how to split it and what it can show."""
    positives = max(power.wilson_halfwidth(tpr, half_width), FLOOR)
    negatives = max(power.wilson_halfwidth(fpr, half_width), FLOOR)
    total = max(ceil(positives / prevalence), ceil(negatives / (1 - prevalence)))
    out = [
        f"TPR near {tpr:g} within +-{half_width:g}: {positives} positives;"
        f" FPR near {fpr:g}: {negatives} negatives (at least {FLOOR} each, 100 are better)",
        f"drawn at random at prevalence {prevalence:g}: about {total} items, each by two raters",
    ]
    j = tpr - fpr
    if j <= 0:
        out.append("the judge would be no better than chance: no number of verdicts corrects a rate with it")
    else:
        verdicts = power.proportion_imperfect_judge(prevalence, half_width, tpr, 1 - fpr).n
        out.append(f"a corrected rate within +-{half_width:g}: {verdicts} judge verdicts, error rates taken as known")
        seen = prevalence * tpr + (1 - prevalence) * fpr
        if total > 1.5 * (positives + negatives):
            share = prevalence * tpr / seen
            chosen = ceil(positives / max(share, 1e-9))
            out.append(
                f"one class is rare: draw by the judge's label instead, about {chosen} judge positives and {negatives}"
                " judge negatives (--judged FILE --size LABEL=N); the probabilities are kept and weighed back"
            )
        if budget is not None and 0 < seen < 1:
            pos, neg = power.allocate_labels(budget, seen, tpr, 1 - fpr, pilot=max(20, budget // 5))
            out.append(f"of {budget} labels, {pos} positives and {neg} negatives narrow a corrected rate most")
    if budget is not None:
        held = budget * prevalence
        width = 1.96 * sqrt(tpr * (1 - tpr) / held) if held >= 1 else 1.0
        out.append(f"{budget} random items hold about {held:.0f} positives: TPR +-{width:.2f} at best")
    return out


def next_items(
    judged: Sequence[LabelRow], human: Sequence[LabelRow], positive: str, n: int = 10
) -> list[tuple[str, str]]:
    """The ``n`` items whose labels would narrow the post-stratified rate most: (item, why).

    The variance of w1 p1 + w0 p0 falls fastest where w_k^2 p_k (1 - p_k) / m_k^2 is largest (Neyman); within a judge
    cell items come in the order of a hash, which is a random draw, so the design stays ``judge_chosen``.
    """
    from robustjudge.spec import digest

    said, truth = _joined(judged, human, positive)
    share = {k: sum(v == k for v in said.values()) / len(said) for k in (True, False)}
    count = Counter(said[i] for i in truth)
    hits = Counter(said[i] for i, t in truth.items() if t)
    left = {k: sorted((i for i, v in said.items() if v == k and i not in truth), key=digest) for k in (True, False)}
    spread = {k: (p := (hits[k] + 0.5) / (count[k] + 1)) * (1 - p) for k in (True, False)}
    out: list[tuple[str, str]] = []
    while len(out) < n and (left[True] or left[False]):
        gain = {k: _gain(share[k], spread[k], count[k]) if left[k] else -1.0 for k in (True, False)}
        cell = gain[True] >= gain[False]
        count[cell] += 1
        word = "positive" if cell else "negative"
        out.append(
            (left[cell].pop(0), f"judge says {word}; {share[cell]:.0%} of items, {count[cell] - 1} labelled so far")
        )
    return out


def _gain(share: float, spread: float, count: int) -> float:
    """How much one more label in a judge cell takes off the variance."""
    return share**2 * spread * (1 / (count + 1) - 1 / (count + 2))


def _joined(
    judged: Sequence[LabelRow], human: Sequence[LabelRow], positive: str
) -> tuple[dict[str, bool], dict[str, bool | None]]:
    """(the judge's verdict of every item, the people's label of those that have one), as positive or not; ``None`` where
    people differ and nobody has ruled."""
    said = {r.item: r.label == positive for r in judged if r.rater_kind == "judge" and r.label is not None}
    if not said:
        raise DataError("the file of judge verdicts holds none that could be read")
    if not any(said.values()) and not any(r.label == positive for r in human):
        used = ", ".join(sorted({r.label for r in judged if r.label is not None})[:5])
        raise DataError(f"nobody uses the label {positive!r}; the judge says {used}: name the positive label first")
    votes: dict[str, list[bool]] = {}
    for r in human:
        if r.rater_kind == "human" and r.repeat == 0 and r.label is not None and r.item in said:
            votes.setdefault(r.item, []).append(r.label == positive)
    truth = {i: None if 2 * sum(v) == len(v) else 2 * sum(v) > len(v) for i, v in votes.items()}
    ruled = {r.item: r.label == positive for r in human if r.rater_kind == "adjudicated" and r.item in said}
    return said, truth | ruled


def may_stop(
    judged: Sequence[LabelRow], human: Sequence[LabelRow], positive: str, half_width: float, alpha: float = 0.05
) -> tuple[tuple[str, Estimate, bool], ...]:
    """May labelling stop?  The corrected rate, TPR and FPR of the judged items so far with anytime-valid intervals (every
    look is allowed), and whether each is within +- ``half_width``.

    Labels may have been drawn by what the judge said, as :func:`next_items` does: within each judge cell the share of
    positives gets a beta-binomial confidence sequence at ``alpha``/2, and the rest follows from both, the judge's own
    rate being known.
    """
    said, truth = _joined(judged, human, positive)
    share = sum(said.values()) / len(said)
    cells, value = [], []
    for cell in (True, False):
        mine = [t for i, t in truth.items() if t is not None and said[i] == cell]
        e = beta_binomial(sum(mine), len(mine), alpha / 2)
        cells.append((0.0, 1.0) if e.low is None or e.high is None else (e.low, e.high))
        value.append(sum(mine) / len(mine) if mine else None)
    (l1, u1), (l0, u0) = cells
    known = [v for v, w in zip(value, (share, 1 - share)) if w > 0]
    method, n = "beta-binomial sequences in both judge cells", sum(t is not None for t in truth.values())
    out = []
    for name, of, ends in (
        ("rate", _rate, ((l1, l0), (u1, u0))),
        ("TPR", _tpr, ((l1, u0), (u1, l0))),
        ("FPR", _fpr, ((u1, l0), (l1, u0))),
    ):
        low, high = (_or(of(share, *pair), k) for k, pair in enumerate(ends))
        at = of(share, value[0] or 0.0, value[1] or 0.0)
        if None in known or at is None:
            reason = (
                "no labels in a judge cell" if None in known else "no_positives" if name == "TPR" else "no_negatives"
            )
            e = Estimate.undefined(reason, n=n, low=low, high=high, method=method)
        else:
            e = bounded(at, low, high, n, method)
        out.append((name, e, (high - low) / 2 <= half_width))
    return tuple(out)


def enough(panels: Sequence[Panel], half_width: float, alpha: float = 0.05) -> tuple[tuple[str, Estimate, bool], ...]:
    """May the judge calls of a run stop?  The success rate of each attack so far with an interval that is valid at every
    look (cases in the order of the plan, the mean over a case's own trials), and whether it is within +- ``half_width``.

    One entry per judge, protocol and attack; controls are left out.
    """
    out = []
    for p in panels:
        for line in p.lines:
            rate = line.figures["asr"]
            if line.control or rate.n <= 0:
                continue
            defended = "" if p.defense in ("", "none") else f" + {p.defense}"
            e = beta_binomial((rate.value or 0.0) * rate.n, rate.n, alpha)
            narrow = e.low is not None and e.high is not None and (e.high - e.low) / 2 <= half_width
            out.append((f"{p.judge}{defended}, {p.protocol}, {line.attack}", e, narrow))
    return tuple(out)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _rate(w: float, p1: float, p0: float) -> float | None:
    """Share of positives, where a share ``w`` is called positive and p1, p0 of each cell are."""
    return w * p1 + (1 - w) * p0


def _tpr(w: float, p1: float, p0: float) -> float | None:
    below = _rate(w, p1, p0)
    return w * p1 / below if below else None


def _fpr(w: float, p1: float, p0: float) -> float | None:
    return _tpr(w, 1 - p1, 1 - p0)
