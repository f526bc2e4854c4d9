"""X7 ensembles: the same judge over several orders, or behind several prompts.

``strict`` order ensembling removes wins that come from a place: a pick counts only if every order agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from robustjudge import spec
from robustjudge.defenses.base import Extra, Shield
from robustjudge.errors import ConfigError
from robustjudge.judges import Guarded, Judge, Prompted, Repeated, aggregate
from robustjudge.nouns import Slate, Verdict
from robustjudge.prompts.template import Template
from robustjudge.steps import together

INCONSISTENT = "inconsistent"


@spec.register("order_ensemble")
@dataclass(frozen=True)
class OrderEnsemble(Shield):
    """Every candidate stands in every slot once (two orders for a pair, K rotations for K).

    All orders must pick the same candidate (or all tie); else the verdict is ``unparsed`` with reason
    ``inconsistent``, never a tie.  The attack's success rate becomes the share won in every order.  A lone candidate is
    judged once.
    """

    def extra(self, slate: Slate) -> Extra:
        return Extra(judges=len(slate.candidates) - 1)

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        if len(slate.candidates) == 1:
            return await judge(slate)
        verdicts = await together(judge(s) for s in rotations(slate))
        bad = next((v for v in verdicts if v.status != "ok"), None)
        if bad is not None:
            return bad
        first = verdicts[0]
        if any(v.choice != first.choice for v in verdicts):
            raw = "\n---\n".join(v.raw for v in verdicts)
            why = "\n".join(v.rationale for v in verdicts)
            return Verdict(status="unparsed", reason=INCONSISTENT, raw=raw, rationale=why, form="orders")
        return replace(first, form="orders")


def rotations(slate: Slate) -> tuple[Slate, ...]:
    """The slate with its candidates rotated through every slot, as shown first.

    A rotation of a slate's rotation is one of the same set, so both orders of a protocol ask the same questions.
    """
    n = len(slate.candidates)
    return tuple(
        replace(
            slate,
            candidates=slate.candidates[i:] + slate.candidates[:i],
            index=slate.index[i:] + slate.index[:i],
        )
        for i in range(n)
    )


@spec.register("prompt_ensemble")
@dataclass(frozen=True)
class PromptEnsemble(Shield):
    """The guarded judge behind its own prompt and behind each of ``templates``; median, or majority of all."""

    templates: tuple[Template, ...]

    def __post_init__(self) -> None:
        if not self.templates:
            raise ConfigError("a prompt ensemble needs at least one more template")

    def extra(self, slate: Slate) -> Extra:
        return Extra(judges=len(self.templates))

    def refuses(self, judge: Judge) -> str:
        try:
            prompted_by(judge, self.templates[0])
        except ConfigError as fault:
            return str(fault)
        return ""

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        judges = (judge, *(prompted_by(judge, t) for t in self.templates))
        return aggregate(await together(j(slate) for j in judges))


def prompted_by(judge: Judge, template: Template) -> Judge:
    """The same judge behind another prompt; raises :class:`ConfigError` where its prompt is not ours to change."""
    if isinstance(judge, Prompted):
        return replace(judge, template=template)
    inner = getattr(judge, "judge", None)
    if isinstance(judge, (Guarded, Repeated)) or (inner is not None and hasattr(judge, "rest")):
        return replace(judge, judge=prompted_by(inner, template))  # type: ignore[type-var, arg-type]
    raise ConfigError("a prompt ensemble needs a judge with a prompt of its own (a model behind a template)")
