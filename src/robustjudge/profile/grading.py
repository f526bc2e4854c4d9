"""Running a judge on labelled items: the same items, the same label set, blind to what people said.

What it gives are judge rows of the long form, so that a file with the judge's labels in it and a judge that we run
go through the same protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from robustjudge.errors import DataError
from robustjudge.execution import Options, fly
from robustjudge.judges import Judge, Prompted
from robustjudge.nouns import Case, Sampling, Verdict
from robustjudge.plan import prompted
from robustjudge.profile.longform import LabelRow
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise
from robustjudge.scales import READER_VERSION
from robustjudge.scales.scale import likert
from robustjudge.spec import digest, key as spec_key
from robustjudge.steps import Steps, together

BRIEF = Sampling(max_tokens=128)
"""A label and a one-clause reason."""


def grader(
    model: str,
    rubric: str,
    labels: Sequence[str],
    *,
    ordinal: bool = False,
    sampling: Sampling = BRIEF,
    expect: bool = False,
    constrained: bool = False,
) -> Prompted:
    """The default judge of a study: one definition and two labels, or the numbers of an ordinal scale.

    Asked SUCCESS or FAILURE whatever the two labels are called: meeting the definition is the positive label.
    """
    if ordinal:
        low, high = (float(labels[i]) for i in (0, -1))
        made = template("robustjudge").scored(likert(min(low, high), max(low, high)))
    elif len(labels) == 2:
        made = template("success_failure").defined(rubric)
    else:
        raise DataError("more than two labels without an order need a judge prompt of your own (-c FILE)")
    return Prompted(model, made, sampling, expect=expect, constrained=constrained)


def judge_rows(
    judge: Judge,
    cases: Iterable[Case],
    labels: Sequence[str],
    positive: str,
    *,
    judge_id: str,
    options: Options,
    repeats: int = 1,
    known: Mapping[str, str] | None = None,
) -> list[LabelRow]:
    """One row per item and repeat, in the order of ``cases``; a verdict that is not ok keeps its status.

    Repeats are asked under replica names of their own (``clean/0``, ``clean/1`` ...), so none is a stored reply of
    another.  ``known`` gives the stratum of an item.
    """
    items = list(cases)
    found = fly({c.id: lambda c=c: _graded(judge, c, repeats) for c in items}, options)  # type: ignore[misc]
    negative = next((v for v in labels if v != positive), "")
    rows: list[LabelRow] = []
    for case in items:
        for i, verdict in enumerate(found[case.id]):
            label = said(verdict, labels, positive, negative)
            rows.append(
                LabelRow(
                    len(rows) + 1,
                    case.id,
                    f"judge:{judge_id}",
                    "judge",
                    label,
                    status=verdict.status,
                    repeat=i,
                    stratum=(known or {}).get(case.id, ""),
                    cluster=case.cluster,
                    score=share(verdict),
                )
            )
    return rows


async def _graded(judge: Judge, case: Case, repeats: int) -> tuple[Verdict, ...]:
    protocol = Pointwise(grading=bool(case.references))
    steps: Iterator[Steps[Verdict]] = (
        judge(slate) for i in range(repeats) for slate in protocol.slates(case, case.response, f"clean/{i}")
    )
    return await together(steps)


def said(verdict: Verdict, labels: Sequence[str], positive: str, negative: str) -> str | None:
    """The study's label of a verdict; a label or number that the study does not declare is told as it is, so that the
    label-set check can name it."""
    if verdict.status != "ok":
        return None
    if verdict.label:
        if verdict.label in labels or verdict.unit is None or len(labels) != 2:
            return verdict.label
        return positive if verdict.unit >= 0.5 else negative
    return None if verdict.score is None else f"{verdict.score:g}"


def share(verdict: Verdict) -> float | None:
    """The expected verdict in [0, 1] where the model told its probabilities: P(positive), or the place on the scale."""
    if verdict.status != "ok" or verdict.expected is None:
        return None
    low, high = verdict.range or (0.0, 1.0)
    return min(1.0, max(0.0, (verdict.expected - low) / (high - low)))


def fingerprint(judge: Judge) -> dict[str, Any]:
    """What a profile is void without: model, prompt, reader and sampling of a judge."""
    found = prompted(judge)
    if len(found) != 1:
        return {"judge_sha256": spec_key(judge), "parser_version": READER_VERSION}
    (one,) = found
    return {
        "model": one.model,
        "template": one.template.name,
        "template_sha256": digest(spec_key(one.template)),
        "judge_sha256": spec_key(judge),
        "parser_version": READER_VERSION,
        "sampling": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(one.sampling).items()},
    }
