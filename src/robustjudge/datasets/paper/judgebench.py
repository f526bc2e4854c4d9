"""T6 logic, T7 mathematics, T8 knowledge: JudgeBench pairs of one right and one wrong answer (Tan et al., 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.datasets import answers
from robustjudge.datasets.base import BadRow, Row, case_id
from robustjudge.datasets.paper.common import draft, folder, rows
from robustjudge.errors import UnknownName

FILES = {
    "logic": "math_task/livebench-reasoning.json",
    "mathematics": "math_task/livebench-math.json",
    "knowledge": "knowledge_task/mmlu-knowledge.json",
}
"""The shorter ``mmlu-knowledge_2.json`` is a subset of the knowledge file and is never loaded beside it."""

_TEXTS = ("question", "response_A", "response_B", "label", "source")
_BETTER = {"A>B": ("response_A", "response_B"), "B>A": ("response_B", "response_A")}


@spec.register("judgebench")
@dataclass(frozen=True)
class JudgeBench:
    """One case per pair: the response labelled worse is under attack, the one labelled better is the reference
    (right by label; its prose is a model's and may be ragged).

    ``meta`` holds the ``gold`` answer, the ``answer`` of the worse response and ``answers_equal`` (``true``,
    ``false`` or ``unknown``): equal final answers mean that the label reflects form, so such a pair is to be left out
    of clean-correct statistics.
    """

    root: str
    kind: str = "mathematics"

    def __post_init__(self) -> None:
        if self.kind not in FILES:
            raise UnknownName("JudgeBench subset", self.kind, tuple(FILES))

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        return (FILES[self.kind],)

    def rows(self) -> Iterator[Row]:
        file = FILES[self.kind]
        where = str(folder(self.root) / file)
        for record in rows(self.root, file, "pair_id", _TEXTS):
            if isinstance(record, BadRow):
                yield record
                continue
            line, fields = record
            if fields["label"] not in _BETTER:
                yield BadRow(where, line, None, f"unknown label {fields['label']!r}", "'A>B' or 'B>A'", field="label")
                continue
            better, worse = (fields[name] for name in _BETTER[fields["label"]])
            if better == worse:
                yield BadRow(where, line, None, "both responses are the same text", "two different responses")
                continue
            form = answers.form(fields["question"])
            gold, given = answers.last(better, form), answers.last(worse, form)
            known = bool(gold and given)
            yield draft(
                id=case_id(file, fields["pair_id"]),
                task=fields["question"],
                response=worse,
                references=(better,),
                kind=self.kind,
                dataset=fields["source"],
                language="en",
                cluster="",
                meta={
                    "answer": given,
                    "answer_form": form,
                    "answers_equal": ("true" if answers.same(gold, given) else "false") if known else "unknown",
                    "gold": gold,
                    "label": fields["label"],
                    "response_model": str(fields.get("response_model") or ""),
                    "subject": fields["source"],
                },
                source=f"JudgeBench (gpt split), {fields['pair_id']}",
                licence="not stated; JudgeBench MIT (unverified)",
                defect="labelled_worse",
                verified="label",
            )
