"""The red-team prompt: a data file with six placeholders, filled in one pass; what is filled in is never read as one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from robustjudge.judges import Judge, Service
from robustjudge.nouns import Case, Message, Slate, Text
from robustjudge.plan import prompted
from robustjudge.prompts.criteria import criteria
from robustjudge.prompts.render import render
from robustjudge.redteam.strategies import Strategy

PLACEHOLDERS = (
    "TARGET_JUDGE_PROMPT",
    "SCORING_RUBRIC",
    "INPUT_TO_BE_JUDGED",
    "ATTACK_STRATEGIES",
    "NUM_ATTACKS",
    "ROBUSTNESS_THRESHOLD",
)
_PLACE = re.compile(rf"\[({'|'.join(PLACEHOLDERS)})\]")
UNTRUSTED = ("INPUT_TO_BE_JUDGED",)


@cache
def source() -> str:
    """The prompt as it ships, unfilled."""
    return files("robustjudge.redteam").joinpath("prompt.txt").read_text("utf-8").rstrip("\n")


def filled(values: Mapping[str, str]) -> Message:
    """The prompt with every placeholder filled once; the input to be judged is an untrusted part of its own."""
    parts: list[Text] = []
    at = 0
    for m in _PLACE.finditer(source()):
        parts.append(Text(source()[at : m.start()]))
        parts.append(Text(values[m[1]], "candidate/0" if m[1] in UNTRUSTED else ""))
        at = m.end()
    parts.append(Text(source()[at:]))
    return Message("user", tuple(p for p in parts if p.text or p.field))


def values(
    judge: Judge, case: Case, strategies: Sequence[Strategy], number: int, threshold: str, rubric: str = ""
) -> dict[str, str]:
    """What the placeholders stand for; ``rubric`` (a text of the user) replaces the template's criteria."""
    told = "\n".join(f"- {s.name}: {s.words}" if s.words != s.name else f"- {s.name}" for s in strategies)
    return {
        "TARGET_JUDGE_PROMPT": judge_prompt(judge),
        "SCORING_RUBRIC": rubric or rubric_of(judge, case.kind),
        "INPUT_TO_BE_JUDGED": f"Task:\n{case.task}\n\nAnswer:\n{case.response}",
        "ATTACK_STRATEGIES": told,
        "NUM_ATTACKS": str(number),
        "ROBUSTNESS_THRESHOLD": threshold,
    }


def judge_prompt(judge: Judge) -> str:
    """The judge's prompt as it would be sent, with the names of the data in their places; a service shows none."""
    for p in prompted(judge):
        form = p.template.pointwise or p.template.pairwise or p.template.best_of
        if form is None:
            continue
        count = {"pointwise": 1, "pairwise": 2}.get(form.protocol, 3)
        names = ("{response}",) if count == 1 else tuple(f"{{response_{i}}}" for i in "abc"[:count])
        shown = Slate("{task}", names, tuple(range(count)), reference="{reference}" if _graded(form) else "")
        sent = render(form, shown)
        return "\n\n".join(m.text if len(sent) == 1 else f"({m.role})\n{m.text}" for m in sent)
    name = judge.name if isinstance(judge, Service) else type(judge).__name__
    return f"(not known: the judge {name} belongs to somebody else)"


def _graded(form: object) -> bool:
    return any(s.slot.startswith("reference") for m in getattr(form, "segments", ()) for s in m)


def rubric_of(judge: Judge, kind: str) -> str:
    """The criteria for a kind of task and the scale's direction, in words."""
    lines = [f"- {c}" for c in criteria(kind)]
    for p in prompted(judge)[:1]:
        form = p.template.pointwise or p.template.pairwise or p.template.best_of
        if form is not None and form.scale.numeric:
            lines.append(f"Scores run from {form.scale.low:g} (worst) to {form.scale.high:g} (best).")
        elif form is not None:
            lines.append(f"Verdicts are one of: {', '.join(form.scale.labels)}.")
    return "\n".join(lines)
