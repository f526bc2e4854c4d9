"""Score texts with a detector, outside of any judging: for its calibration and for its evaluation.

Steps, like everything that asks: run them with an engine's driver, or :func:`robustjudge.steps.run` in a notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from robustjudge.defenses.base import Screening, Thresholded
from robustjudge.defenses.threshold import Scored, Threshold, calibrate
from robustjudge.errors import ConfigError
from robustjudge.judges import Judge
from robustjudge.nouns import Slate
from robustjudge.steps import together


@dataclass(frozen=True)
class Sample:
    """One text to score: what it answers, its kind and language, and the case (``cluster``) it comes from."""

    text: str
    task: str = ""
    kind: str = "open"
    language: str = "en"
    cluster: str = ""


async def suspicions(
    detector: Thresholded, samples: Iterable[Sample], judge: Judge | None = None, replica: str = "detect/0"
) -> tuple[float | None, ...]:
    """Suspicion of each text, ``None`` where it could not be had; every text is scored once, alone.

    A detector that re-scores with the judge (ablation) needs ``judge``.
    """

    async def one(sample: Sample) -> float | None:
        slate = Slate(sample.task, (sample.text,), (0,), replica, kind=sample.kind, language=sample.language)
        if isinstance(detector, Screening):
            return (await detector.suspicion((sample.text,), slate))[0]
        if judge is None:
            raise ConfigError(f"{detector.name} re-scores with the judge it guards; give one")
        verdict = await replace(detector, tau=None)(slate, judge)  # type: ignore[type-var]
        return verdict.suspicion[0] if verdict.status == "ok" and verdict.suspicion else None

    return await together(one(s) for s in samples)


async def calibrated(
    detector: Thresholded,
    benign: Sequence[Sample],
    alpha: float | str,
    judge: Judge | None = None,
    stratify: bool = True,
    hard: Sequence[Sample] = (),
) -> Threshold:
    """The threshold of ``detector`` at false-positive rate ``alpha``, from benign texts that serve nothing else; with
    ``hard``-benign ones the rate holds for either group."""

    async def scored(samples: Sequence[Sample]) -> list[Scored]:
        found = await suspicions(detector, samples, judge)
        return [Scored(s, b.kind, b.language, len(b.text)) for s, b in zip(found, samples, strict=True)]

    easy, harder = await scored(benign), await scored(hard)
    name, model = detector.name, "".join(detector.models())
    return calibrate(easy, alpha, name, detector.key(), model, stratify, harder)
