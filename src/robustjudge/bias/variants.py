"""Probes of the prompt instead of the answer: its parts in another order, reasoning asked for or not.

One prompt is n = 1.  The variant is the same judge with one irrelevant thing about its prompt changed; its twin is the
unchanged prompt asked once more, so only flips beyond retest noise count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from robustjudge.judges import Judge, Prompted
from robustjudge.prompts.template import Form, Part, PromptMessage, Template

MARK = "~"
"""Stands between a judge's name and that of its variant."""

THINK = Part("ER", "Before you give the verdict, think it through step by step and write down what you find.")


def variants(name: str, judge: Judge, wanted: tuple[str, ...]) -> Iterator[tuple[str, Judge]]:
    """The variants of a prompted judge whose prompt has what they change; none for any other judge."""
    if not isinstance(judge, Prompted):
        return
    for kind in wanted:
        changed = _changed(judge.template, VARIANTS[kind])
        if changed is not None:
            yield f"{name}{MARK}{kind}", replace(judge, template=changed)


def _changed(template: Template, rule: Callable[[Form], Form | None]) -> Template | None:
    forms = {k: getattr(template, k) for k in ("pointwise", "pairwise")}
    made = {k: changed for k, f in forms.items() if f is not None and (changed := rule(f)) is not None}
    if not made or len(made) < sum(f is not None for f in forms.values()):
        return None
    return replace(template, pointwise=made.get("pointwise"), pairwise=made.get("pairwise"))


def _reordered(form: Form) -> Form | None:
    """The parts that say who judges, what, and by which criteria in reverse order; the verdict line stays last."""
    head = form.messages[0]
    moving = [i for i, p in enumerate(head.parts) if p.code in ("RS", "EI", "IAG", "EC")]
    if len(moving) < 2:
        return None
    parts = list(head.parts)
    for i, j in zip(moving, reversed(moving)):
        parts[i] = head.parts[j]
    return _with(form, head, tuple(parts))


def _reasoned(form: Form) -> Form | None:
    """Reasoning switched: taken out where the prompt asks for it, asked for where it does not."""
    head = form.messages[0]
    if form.scale.first_token or not any(p.code for p in head.parts):
        return None
    kept = tuple(p for p in head.parts if p.code not in ("ER", "IAG"))
    if len(kept) < len(head.parts):
        return _with(form, head, kept)
    at = next((i for i, p in enumerate(head.parts) if p.code == "RF"), len(head.parts))
    return _with(form, head, (*head.parts[:at], THINK, *head.parts[at:]))


def _with(form: Form, head: PromptMessage, parts: tuple[Part, ...]) -> Form:
    return replace(form, messages=(replace(head, parts=parts), *form.messages[1:]))


VARIANTS: dict[str, Callable[[Form], Form | None]] = {"prompt_order": _reordered, "chain_of_thought": _reasoned}
CLAIMS = {
    "prompt_order": "the parts of the judge prompt in reverse order",
    "chain_of_thought": "reasoning before the verdict, asked for or not",
}
