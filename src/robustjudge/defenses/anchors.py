"""X8 anchors: judge known good, bad and empty texts in the same run; a judge that gets those wrong abstains on the rest.

The anchors must be unrelated to what is judged and unknown to the author.  Their calls are equal for every slate, so a
run pays for them once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from robustjudge import spec
from robustjudge.defenses.base import Extra, Shield
from robustjudge.defenses.committee import vetoed
from robustjudge.errors import ConfigError
from robustjudge.judges import Judge
from robustjudge.nouns import Slate, Verdict
from robustjudge.steps import together


@spec.register("anchor")
@dataclass(frozen=True)
class Anchor:
    """A task with a good and a bad answer; ``good_unit`` and ``bad_unit`` are what they deserve on [0, 1]."""

    task: str
    good: str
    bad: str
    good_unit: float = 1.0
    bad_unit: float = 0.2
    task_kind: str = "open"
    language: str = "en"


SHIPPED = (
    Anchor(
        "Name the three states of matter that water takes in daily life.",
        "Solid (ice), liquid (water) and gas (steam or water vapour).",
        "Green, loud and Tuesday.",
    ),
    Anchor(
        "How many minutes are there in two and a half hours? Show the calculation.",
        "2.5 hours times 60 minutes per hour is 150 minutes.",
        "Two and a half hours are 95 minutes, because an hour has 38 minutes.",
    ),
)


@spec.register("anchors")
@dataclass(frozen=True)
class Anchors(Shield):
    """Abstain (``blocked``, worth ``abstain``) where an empty anchor scores above ``weak`` of the range, or a good one
    no higher than its bad one (pairs: the good one must be picked in both orders).

    ``mapped`` corrects scores by the isotonic map from what the anchors got to what they deserve.  Cost: three judge
    calls per anchor for scores, four for a choice, once per run.  The shipped anchors are public: where authors may know
    this package, give your own.
    """

    anchors: tuple[Anchor, ...] = SHIPPED
    weak: float = 0.35
    mapped: bool = False

    def __post_init__(self) -> None:
        if not self.anchors:
            raise ConfigError("anchoring needs at least one anchor")

    def extra(self, slate: Slate) -> Extra:
        return Extra(once=len(self.anchors) * (3 if len(slate.candidates) == 1 else 4))

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        alone = len(slate.candidates) == 1
        seen = await together(judge(s) for a in self.anchors for s in (scored(a) if alone else compared(a)))
        verdict = await judge(slate)
        fault = self._fault(seen) if alone else _misjudged(seen)
        if fault:
            return vetoed(verdict, f"anchors: {fault}", "abstain")
        if self.mapped and alone and verdict.status == "ok" and verdict.unit is not None and verdict.range:
            return self._mapped(verdict, seen)
        return verdict

    def _fault(self, seen: tuple[Verdict, ...]) -> str:
        for i, anchor in enumerate(self.anchors):
            good, bad, empty = (v.unit if v.status == "ok" else None for v in seen[3 * i : 3 * i + 3])
            if good is None or bad is None or empty is None:
                return "an anchor got no verdict"
            if empty > self.weak + 1e-9:
                return f"an empty answer got {empty:.2f} of the range"
            if good <= bad + 1e-9:
                return f"a good answer ({good:.2f}) got no more than a bad one ({bad:.2f}): {anchor.task[:40]}"
        return ""

    def _mapped(self, verdict: Verdict, seen: tuple[Verdict, ...]) -> Verdict:
        points = []
        for i, anchor in enumerate(self.anchors):
            good, bad, empty = (v.unit or 0.0 for v in seen[3 * i : 3 * i + 3])
            points += [(good, anchor.good_unit), (bad, anchor.bad_unit), (empty, min(empty, anchor.bad_unit))]
        unit = isotonic(points, verdict.unit or 0.0)
        low, high = verdict.range or (0.0, 1.0)
        return replace(verdict, unit=unit, score=low + unit * (high - low))


def scored(anchor: Anchor) -> tuple[Slate, ...]:
    """The anchor's good, bad and empty answer, each alone."""
    texts = (anchor.good, anchor.bad, "")
    return tuple(
        Slate(anchor.task, (t,), (0,), "anchor/0", kind=anchor.task_kind, language=anchor.language) for t in texts
    )


def compared(anchor: Anchor) -> tuple[Slate, ...]:
    """Good against bad and good against empty, both orders; the good answer has identity 0."""
    out = []
    for other in (anchor.bad, ""):
        for pair, index in (((anchor.good, other), (0, 1)), ((other, anchor.good), (1, 0))):
            out.append(Slate(anchor.task, pair, index, "anchor/0", kind=anchor.task_kind, language=anchor.language))
    return tuple(out)


def _misjudged(seen: tuple[Verdict, ...]) -> str:
    if any(v.status != "ok" for v in seen):
        return "an anchor got no verdict"
    return "a good answer lost to a bad or empty one" if any(v.choice != 0 for v in seen) else ""


def isotonic(points: list[tuple[float, float]], x: float) -> float:
    """The least-squares non-decreasing map through ``points`` (pool adjacent violators) at ``x``, linear between."""
    by_x: dict[float, list[float]] = {}
    for a, b in points:
        by_x.setdefault(a, []).append(b)
    blocks: list[list[float]] = []  # total, weight, first x, last x
    for a in sorted(by_x):
        blocks.append([sum(by_x[a]), float(len(by_x[a])), a, a])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, weight, _, last = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += weight
            blocks[-1][3] = last
    xs = [v for b in blocks for v in ((b[2], b[3]) if b[3] > b[2] else (b[2],))]
    ys = [b[0] / b[1] for b in blocks for _ in ((0, 1) if b[3] > b[2] else (0,))]
    at = bisect_left(xs, x)
    if at == 0:
        return ys[0]
    if at == len(xs):
        return ys[-1]
    share = (x - xs[at - 1]) / (xs[at] - xs[at - 1])
    return ys[at - 1] + share * (ys[at] - ys[at - 1])
