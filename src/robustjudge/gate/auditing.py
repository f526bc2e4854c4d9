"""The second layer of rule (b): an auditor model is asked about every rationale of a run, blind to the arm it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from robustjudge.execution import Options, flown
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.rationale import audit, labelled, quality
from robustjudge.models.families import family_of, same_family
from robustjudge.nouns import Estimate
from robustjudge.prompts.criteria import criteria
from robustjudge.steps import together

BATCH = 32
"""Rationales per ask; the calls of one ask run side by side."""


@dataclass(frozen=True)
class Audited:
    """What the auditor said of each rationale (by its hash; ``None``: not readable), and how good it is.

    ``rates`` are its sensitivity and false-positive rates on what it answered of the labelled set; ``same`` whether judge
    and auditor are of one family (``None``: unknown); ``unread`` how many of its words on that set could not be read, of how
    many.
    """

    model: str
    family: str
    same: bool | None
    said: Mapping[str, bool | None]
    rates: Mapping[str, Estimate]
    unread: tuple[int, int]

    @property
    def warning(self) -> str:
        """What its family means for the figures; empty where it is another one."""
        if self.same:
            return f"judge and auditor are of one family ({self.family}): they may be won by the same things"
        if self.same is None:
            return "the family of judge or auditor is unknown, so a shared one is not excluded"
        return ""

    def as_dict(self) -> dict[str, Any]:
        answered = [v for v in self.said.values() if v is not None]
        return {
            "model": self.model,
            "family": self.family,
            "same_family_as_judge": self.same,
            "warning": self.warning or None,
            "rationales": len(self.said),
            "unread": len(self.said) - len(answered),
            "flagged": sum(answered),
            "labelled_unread": list(self.unread),
            "labelled": {k: v.as_dict() for k, v in self.rates.items()},
        }


async def audited(e: Evidence, model: str, options: Options, family: str = "") -> Audited:
    """Ask ``model`` about every rationale of the clean, neutral and attacked arms, and about the labelled set.

    Make it with :func:`robustjudge.execution.in_loop`.  ``family`` overrides the table of model families.
    """
    kinds: dict[str, str] = {}
    for t in e.trials:
        if t.control and t.control != "neutral":
            continue
        for r in (*t.clean[:1], *t.attacked):
            if r.status == "ok" and r.rationale:
                kinds.setdefault(r.rationale, t.task)
    texts = e.texts(kinds)
    asked = {h: (texts[h], kinds[h]) for h in sorted(kinds) if texts.get(h, "").strip()}
    known = labelled()
    marks = [*asked, *(f"labelled/{x.id}" for x in known)]
    words = [*asked.values(), *((x.rationale, "open") for x in known)]
    answers = await flown(partial(_all, model, words), [model], options)
    said = dict(zip(marks, answers, strict=True))
    on_set = {x.id: said.pop(f"labelled/{x.id}") for x in known}
    theirs = family_of(model, family)
    mine = [family_of(m, f) for m, f in _models(e.judge_spec)]
    same = [same_family(theirs, m) for m in mine]
    return Audited(
        model,
        theirs,
        True if True in same else None if None in same or not same else False,
        said,
        quality(lambda item: on_set[item.id]),
        (sum(v is None for v in on_set.values()), len(on_set)),
    )


async def _all(model: str, words: list[tuple[str, str]]) -> tuple[bool | None, ...]:
    """The auditor's word on each (rationale, kind of task), in order."""
    by: dict[str, list[int]] = {}
    for i, (_, kind) in enumerate(words):
        by.setdefault(kind, []).append(i)
    parts = [(kind, at[i : i + BATCH]) for kind, at in by.items() for i in range(0, len(at), BATCH)]
    replies = await together([audit(model, [words[i][0] for i in at], rubric(kind)) for kind, at in parts])
    out: list[bool | None] = [None] * len(words)
    for (_, at), said in zip(parts, replies, strict=True):
        for i, answer in zip(at, said, strict=True):
            out[i] = answer
    return tuple(out)


def rubric(kind: str) -> str:
    """The criteria of a kind of task, which the auditor holds a reason against."""
    return "\n".join(f"- {c}" for c in criteria(kind))


def _models(spec: Any) -> list[tuple[str, str]]:
    """Every (model, declared family) inside a dumped judge."""
    from robustjudge.reports.origin import models

    return list(models(spec))
