"""Evaluate a detector: calibrate it on honest texts of some cases, measure it on other cases and on hard-benign texts.

Calibration, evaluation and attack development never share a case; the threshold is frozen (its hash is in the result)
before an attacked text is scored.  Steps: run :func:`evaluate` with an engine's driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from robustjudge.attacks.base import NoCandidate
from robustjudge.attacks.packs import pack
from robustjudge.attacks.text import TextAttack
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import BENIGN_KINDS, hard_benign
from robustjudge.defenses.base import Thresholded
from robustjudge.defenses.calibration import Sample, calibrated, suspicions
from robustjudge.defenses.classifier import learned_from
from robustjudge.defenses.threshold import Threshold, bucket
from robustjudge.judges import Judge
from robustjudge.measures.detection import auroc, fpr, tpr_at_fpr
from robustjudge.nouns import Case, Estimate, Slate
from robustjudge.spec import digest

D = TypeVar("D", bound=Thresholded)

FAMILIES = ("H1", "H2", "H3", "H4", "H5", "H6", "E9")
"""The payload packs whose held-out wordings a detector is tried on unless others are asked for."""


@dataclass(frozen=True)
class Evaluation:
    """What a detector does: its frozen threshold, false-positive rates (benign, hard-benign and each of its kinds, by
    language and length bucket of the benign texts), and per attack family AUROC and detection rates.

    ``unread`` counts texts of each group that the detector could not read; they count as flagged.
    """

    detector: str
    model: str
    alpha: str
    threshold: Threshold
    false_positive_rate: dict[str, Estimate]
    families: dict[str, dict[str, Estimate]]
    unread: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for reports."""
        low, high = self.threshold.spread()
        return {
            "detector": self.detector,
            "model": self.model,
            "alpha": self.alpha,
            "threshold": self.threshold.value,
            "threshold_hash": self.threshold.hash,
            "calibration_texts": self.threshold.n,
            "expected_false_positive_rate_95": [low, high],
            "warnings": list(self.threshold.warnings()),
            "false_positive_rate": {k: e.as_dict() for k, e in self.false_positive_rate.items()},
            "families": {f: {k: e.as_dict() for k, e in row.items()} for f, row in self.families.items()},
            "unread": self.unread,
        }


async def evaluate(
    detector: Thresholded,
    alpha: float | str = "0.05",
    cases: Iterable[Case] | None = None,
    families: Sequence[str] = FAMILIES,
    judge: Judge | None = None,
) -> Evaluation:
    """Calibrate ``detector`` at ``alpha`` on honest texts of half of the cases and measure it on the other half, on the
    hard-benign texts, and on held-out wordings of ``families`` put into the other half.

    The default cases are the built-in ones but those that the shipped classifier learned from.  Texts in a language that
    calibration did not see are left out, as a calibrated detector would refuse them.
    """
    given = [c for c in builtin() if not learned_from(c.id)] if cases is None else list(cases)
    first, second = halves(given)
    threshold = await calibrated(detector, honest(first), alpha, judge)
    known = threshold.languages
    benign = [s for s in honest(second) if s.language in known]
    hard = {
        kind: [Sample(b.text, language=b.language, cluster=b.id) for b in hard_benign(kind) if b.language in known]
        for kind in BENIGN_KINDS
    }
    bad = {f: attacked([c for c in second if c.language in known], f) for f in families}
    found = await suspicions(detector, benign, judge)
    on_hard = {kind: await suspicions(detector, texts, judge) for kind, texts in hard.items()}
    on_bad = {family: await suspicions(detector, texts, judge) for family, texts in bad.items()}
    every = [s for kind in on_hard.values() for s in kind]
    return Evaluation(
        detector.name,
        "".join(detector.models()),
        str(alpha),
        threshold,
        _false(_limited(detector, threshold), benign, found, hard, on_hard),
        {
            family: {
                "auroc": auroc(found, scores, (_cases(benign), _cases(bad[family]))),
                "auroc_hard_benign": auroc(every, scores),
                "tpr_at_1_percent_fpr": tpr_at_fpr(found, scores, 0.01, (_cases(benign), _cases(bad[family]))),
                "tpr_at_5_percent_fpr": tpr_at_fpr(found, scores, 0.05, (_cases(benign), _cases(bad[family]))),
                "true_positive_rate": fpr(scores, _limits(detector, threshold, bad[family]), _cases(bad[family])),
            }
            for family, scores in on_bad.items()
            if scores
        },
        {
            "benign": found.count(None),
            "hard_benign": every.count(None),
            **{family: scores.count(None) for family, scores in on_bad.items()},
        },
    )


def _limited(detector: D, threshold: Threshold) -> D:
    return replace(detector, tau=threshold)  # type: ignore[type-var]


def _limits(detector: Thresholded, threshold: Threshold, samples: Sequence[Sample]) -> list[float | None]:
    guard = _limited(detector, threshold)
    return [guard.limit(s.text, Slate(s.task, (s.text,), (0,), kind=s.kind, language=s.language)) for s in samples]


def _cases(samples: Sequence[Sample]) -> list[str]:
    return [s.cluster for s in samples]


def _false(
    guard: Thresholded,
    benign: Sequence[Sample],
    found: Sequence[float | None],
    hard: Mapping[str, Sequence[Sample]],
    on_hard: Mapping[str, Sequence[float | None]],
) -> dict[str, Estimate]:
    threshold = guard.tau
    assert isinstance(threshold, Threshold)

    def rate(samples: Sequence[Sample], scores: Sequence[float | None]) -> Estimate:
        return fpr(scores, _limits(guard, threshold, samples), _cases(samples))

    flat = [s for kind in hard.values() for s in kind], [x for kind in on_hard.values() for x in kind]
    out = {"benign": rate(benign, found), "hard_benign": rate(*flat)}
    out |= {f"hard_benign/{kind}": rate(hard[kind], scores) for kind, scores in on_hard.items()}
    groups: dict[str, list[int]] = {}
    for i, s in enumerate(benign):
        for name in (f"language/{s.language}", f"length/{bucket(len(s.text))}"):
            groups.setdefault(name, []).append(i)
    out |= {name: rate([benign[i] for i in at], [found[i] for i in at]) for name, at in sorted(groups.items())}
    return out


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Two disjoint halves of the clusters, drawn by hash: adding a case moves no other."""
    sides: tuple[list[Case], list[Case]] = ([], [])
    for case in cases:
        sides[int(digest("detector half", case.cluster or case.id)[:8], 16) % 2].append(case)
    return sides


def honest(cases: Iterable[Case]) -> list[Sample]:
    """Weak responses, distractors and references: what honest authors send."""
    out = []
    for c in cases:
        for text in dict.fromkeys((c.response, *c.references, *(w.text for w in c.distractors))):
            out.append(Sample(text, c.task, c.kind, c.language, c.cluster or c.id))
    return out


def attacked(cases: Iterable[Case], family: str) -> list[Sample]:
    """The weak responses with a held-out wording of a payload pack, one per case."""
    out = []
    for i, c in enumerate(cases):
        made = TextAttack(family, group="held_out" if pack(family).held_out else "all", seed=i)
        try:
            text = made.applied(c)
        except NoCandidate:
            continue
        out.append(Sample(text, c.task, c.kind, c.language, c.cluster or c.id))
    return out
