"""Evaluate a detector: a threshold frozen on honest texts, measured on other honest, hard-benign and attacked texts.

The threshold is frozen (its hash is in the result) before an attacked text is scored.  Steps: run them with an engine's
driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.hard_benign import hard_benign
from robustjudge.defenses.base import Thresholded
from robustjudge.defenses.calibration import Sample, calibrated, suspicions
from robustjudge.defenses.classifier import learned_from, learned_from_hard
from robustjudge.defenses.threshold import Threshold, bucket
from robustjudge.detectors.texts import FAMILIES, Texts, attacked, halves, hard_halves, honest, spoken
from robustjudge.errors import ConfigError
from robustjudge.judges import Judge
from robustjudge.measures.detection import auroc, fpr, tpr_at_fpr
from robustjudge.nouns import Case, Estimate, Slate

D = TypeVar("D", bound=Thresholded)


@dataclass(frozen=True)
class Evaluation:
    """What a detector does: its frozen threshold, false-positive rates (benign, hard-benign and each of its kinds, by
    language and length bucket of the benign texts), and per attack family (``all``: every one) AUROC and detection rates.

    ``unread`` counts texts of each group that the detector could not read; they count as flagged.  ``other_language``
    counts texts in a language that the threshold was not calibrated on.
    """

    detector: str
    model: str
    alpha: str
    threshold: Threshold
    false_positive_rate: dict[str, Estimate]
    families: dict[str, dict[str, Estimate]]
    unread: dict[str, int]
    other_language: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for reports."""
        low, high = self.threshold.spread()
        return {
            "detector": self.detector,
            "model": self.model,
            "alpha": self.alpha,
            "threshold": self.threshold.value,
            "threshold_hash": self.threshold.hash,
            "languages": list(self.threshold.languages),
            "calibration_texts": self.threshold.n,
            "calibration_hard_benign_texts": self.threshold.hard_n,
            "expected_false_positive_rate_95": [low, high],
            "warnings": list(self.threshold.warnings()),
            "false_positive_rate": {k: e.as_dict() for k, e in self.false_positive_rate.items()},
            "families": {f: {k: e.as_dict() for k, e in row.items()} for f, row in self.families.items()},
            "unread": self.unread,
            "left_out_for_their_language": self.other_language,
        }


async def evaluate(
    detector: Thresholded,
    alpha: float | str = "0.05",
    cases: Iterable[Case] | None = None,
    families: Sequence[str] = FAMILIES,
    judge: Judge | None = None,
) -> Evaluation:
    """Calibrate ``detector`` at ``alpha`` on honest texts of half of the cases and half of the hard-benign set, and
    measure it on the other halves, and on held-out wordings of ``families`` put into the other half of the cases.

    The default cases are the built-in ones but those that the shipped classifier learned from.  Texts in a language that
    calibration did not see are left out, as a calibrated detector would refuse them.
    """
    given = [c for c in builtin() if not learned_from(c.id)] if cases is None else list(cases)
    first, second = halves(given)
    hard, other = hard_halves(b.id for b in hard_benign() if learned_from_hard(b.id))
    threshold = await calibrated(detector, honest(first), alpha, judge, hard=[s for g in hard.values() for s in g])
    texts = Texts(tuple(honest(second)), other, {f: tuple(attacked(second, f)) for f in families})
    return await measured(_limited(detector, threshold), texts, judge)


async def measured(detector: Thresholded, texts: Texts, judge: Judge | None = None) -> Evaluation:
    """What ``detector`` does on ``texts``.  Its threshold must be a calibrated one: :class:`ConfigError`.

    Texts in another language than the threshold's are left out and counted; :class:`ConfigError` where none is left.
    """
    threshold = detector.tau
    if not isinstance(threshold, Threshold):
        raise ConfigError(f"{detector.name} is evaluated with a calibrated threshold; calibrate it first")
    given, texts = texts, spoken(texts, threshold.languages)
    if not texts.each():
        other = sorted({s.language for s in given.each()})
        raise ConfigError(
            f"this threshold of {detector.name} was calibrated on {', '.join(threshold.languages)}, not on"
            f" {', '.join(other) or 'anything: there is no text'}; calibrate one for the language"
        )
    found = await suspicions(detector, texts.benign, judge)
    on_hard = {kind: await suspicions(detector, group, judge) for kind, group in texts.hard.items()}
    bad = {f: group for f, group in texts.attacked.items() if group}
    on_bad = {family: await suspicions(detector, group, judge) for family, group in bad.items()}
    every = [s for kind in on_hard.values() for s in kind]
    rows: dict[str, tuple[Sequence[Sample], Sequence[float | None]]] = {f: (bad[f], on_bad[f]) for f in bad}
    if len(rows) > 1:
        rows["all"] = [s for g in bad.values() for s in g], [x for g in on_bad.values() for x in g]
    return Evaluation(
        detector.name,
        "".join(detector.models()),
        threshold.alpha,
        threshold,
        _false(detector, texts, found, on_hard),
        {
            family: {
                "auroc": auroc(found, scores, (_cases(texts.benign), _cases(samples))),
                "auroc_hard_benign": auroc(every, scores, (_cases(texts.every_hard), _cases(samples))),
                "tpr_at_1_percent_fpr": tpr_at_fpr(found, scores, 0.01, (_cases(texts.benign), _cases(samples))),
                "tpr_at_5_percent_fpr": tpr_at_fpr(found, scores, 0.05, (_cases(texts.benign), _cases(samples))),
                "true_positive_rate": fpr(scores, _limits(detector, samples), _cases(samples)),
            }
            for family, (samples, scores) in rows.items()
        },
        {
            "benign": found.count(None),
            "hard_benign": every.count(None),
            **{family: scores.count(None) for family, scores in on_bad.items()},
        },
        len(given.each()) - len(texts.each()),
    )


def _limited(detector: D, threshold: Threshold) -> D:
    return replace(detector, tau=threshold)  # type: ignore[type-var]


def _limits(guard: Thresholded, samples: Sequence[Sample]) -> list[float | None]:
    return [guard.limit(s.text, Slate(s.task, (s.text,), (0,), kind=s.kind, language=s.language)) for s in samples]


def _cases(samples: Sequence[Sample]) -> list[str]:
    return [s.cluster for s in samples]


def _false(
    guard: Thresholded,
    texts: Texts,
    found: Sequence[float | None],
    on_hard: Mapping[str, Sequence[float | None]],
) -> dict[str, Estimate]:
    def rate(samples: Sequence[Sample], scores: Sequence[float | None]) -> Estimate:
        if not samples:
            return Estimate.undefined("no such text", low=0.0, high=1.0)
        return fpr(scores, _limits(guard, samples), _cases(samples))

    benign = texts.benign
    out = {
        "benign": rate(benign, found),
        "hard_benign": rate(texts.every_hard, [x for kind in on_hard.values() for x in kind]),
    }
    out |= {f"hard_benign/{kind}": rate(texts.hard[kind], scores) for kind, scores in on_hard.items()}
    groups: dict[str, list[int]] = {}
    for i, s in enumerate(benign):
        for name in (f"language/{s.language}", f"length/{bucket(len(s.text))}"):
            groups.setdefault(name, []).append(i)
    out |= {name: rate([benign[i] for i in at], [found[i] for i in at]) for name, at in sorted(groups.items())}
    return out
