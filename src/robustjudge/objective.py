"""Objectives: what a label-probability or white-box ask is about, and the one way it is computed.

The handler *drives the judge itself*, guarded or not, up to its ``Complete``, and weighs the verdict labels of that
very call instead of generating.  One renderer, one truth: whatever a defense did to the prompt is in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

from robustjudge.asks import Complete, Gradient, Spell, Weigh
from robustjudge.errors import PlanError
from robustjudge.nouns import Call, Case, Completion, Feedback, LabelCall, Readout, Verdict, Weights
from robustjudge.steps import Ask, Stateless, handled, together

if TYPE_CHECKING:
    from robustjudge.judges import Judge
    from robustjudge.protocols import Protocol


@dataclass(frozen=True)
class Objective:
    """The verdict margin of a text, averaged over slates (orders x shadow rivals) and over ``judges``.

    ``None`` fields are bound by the trial: ``case`` to the case under attack, ``judges`` to the judge that answers the
    attacker, ``protocol`` to the cell's.  ``shadows`` are rivals of the attacker's own making; the case's real rival is
    never used.  Without shadows the rival is the clean weak response.  A suffix is put behind ``stem`` (default: the
    weak response) with ``joint`` between, or stands alone with ``alone``.  ``target`` is ``win`` (expected score, or
    own label against the rivals') or ``top`` (the highest label against the rest).

    ``replicas`` are the draws of a defense's randomness that the margin is averaged over.  ``screened`` are the judges
    with their detectors (``judges`` are then without): the margin loses ``penalty`` times the share of slates they block.
    """

    case: Case | None = None
    judges: tuple[Judge, ...] = ()
    protocol: Protocol | None = None
    shadows: tuple[str, ...] = ()
    stem: str | None = None
    joint: str = " "
    alone: bool = False
    target: str = "win"
    replicas: tuple[str, ...] = ("search/0",)
    screened: tuple[Judge, ...] = ()
    penalty: float = 0.0

    def bound(self, case: Case, judge: Judge, protocol: Protocol) -> Objective:
        """The same objective with every open field filled."""
        return replace(
            self,
            case=self.case or case,
            judges=self.judges or (judge,),
            protocol=self.protocol or protocol,
        )

    def place(self, suffix: str) -> str:
        """The candidate text for a spelled suffix."""
        if self.alone:
            return suffix
        stem = self.stem if self.stem is not None else (self.case.response if self.case else "")
        return f"{stem}{self.joint}{suffix}" if suffix else stem


@dataclass
class Probe(Stateless):
    """Keeps the judge's own calls instead of sending them; every other ask passes outward."""

    calls: list[Call] = field(default_factory=list)

    async def answer(self, ask: Ask[Any]) -> Any:
        if not isinstance(ask, Complete) or any(c.role != "judge" for c in ask.calls):
            return await ask
        self.calls.extend(ask.calls)
        return tuple(Completion(status="error", reason="probe") for _ in ask.calls)


async def contexts(objective: Objective, text: str) -> tuple[Call, ...]:
    """The calls that the objective's judges would send for a candidate text, none of them sent."""
    probes, _ = await _driven(objective, objective.judges, text)
    found = tuple(call for probe in probes for call in probe.calls)
    for call in found:
        if call.readout is None:
            raise PlanError(f"{call.model}: this scale has no list of labels, so label probabilities cannot be read")
    return found


async def _driven(
    objective: Objective, judges: Sequence[Judge], text: str
) -> tuple[tuple[Probe, ...], tuple[Verdict, ...]]:
    """Every judge driven over every slate of a candidate text, up to its own call."""
    case, protocol = objective.case, objective.protocol
    assert case is not None and protocol is not None
    shadows = objective.shadows or (case.response,)
    if protocol.kind == "best_of":  # a slate of K refuses equal candidates, and the clean text may be its own shadow
        shadows = tuple(s if s != text else f"{s} " for s in shadows)
    rivals = (
        [replace(case, references=(s,), distractors=()) for s in shadows] if protocol.kind != "pointwise" else [case]
    )
    probes, parts = [], []
    for judge in judges:
        for rival in rivals:
            for replica in objective.replicas:
                for slate in protocol.slates(rival, text, replica):
                    probes.append(Probe())
                    parts.append(handled(judge(slate), probes[-1]))
    return tuple(probes), await together(parts)


async def _charge(objective: Objective, text: str) -> float:
    """What being blocked costs a text: ``penalty`` times the share of slates that the detectors block."""
    if not objective.screened or not objective.penalty:
        return 0.0
    _, verdicts = await _driven(objective, objective.screened, text)
    return objective.penalty * sum(v.status == "blocked" for v in verdicts) / max(len(verdicts), 1)


def margin(readout: Readout, weights: Weights, target: str = "win") -> float:
    """Natural-log margin of the author's verdict: log P(own) - log P(rivals) for a choice; for scores the log-odds of
    the expected score over the scale's range, or with ``top`` of the highest label.  Larger is better for the author.
    """
    logs = weights.logprobs
    if readout.identities:
        own = [lp for lp, i in zip(logs, readout.identities, strict=True) if i == 0]
        rest = [lp for lp, i in zip(logs, readout.identities, strict=True) if i != 0]
        return _logsum(own) - _logsum(rest)
    low, high = min(readout.values), max(readout.values)
    if target == "top":
        top = [lp for lp, v in zip(logs, readout.values, strict=True) if v == high]
        rest = [lp for lp, v in zip(logs, readout.values, strict=True) if v != high]
        return _logsum(top) - _logsum(rest)
    total = _logsum(logs)
    share = sum(exp(lp - total) * (v - low) / (high - low) for lp, v in zip(logs, readout.values, strict=True))
    share = min(max(share, 1e-9), 1 - 1e-9)
    return log(share / (1 - share))


def _logsum(logs: Sequence[float]) -> float:
    top = max(logs, default=-inf)
    if top == -inf:
        return -745.0  # the log of the smallest positive float: a margin stays finite
    return top + log(sum(exp(x - top) for x in logs))


async def margins(
    objective: Objective, texts: Sequence[str], suffixes: Sequence[tuple[int, ...]] = (), speller: str = ""
) -> tuple[Feedback, ...]:
    """Mean margin of each candidate text; a text whose calls could not be weighed has worth -745 and its status.

    ``suffixes`` are the token ids of the model ``speller`` that end each text and must still do so in all its prompts;
    other models of a panel read the text in tokens of their own.
    """
    calls = await together(contexts(objective, t) for t in texts)
    charges = await together(_charge(objective, t) for t in texts)
    ends = suffixes or [()] * len(texts)
    flat = [
        LabelCall(c, c.readout.labels, c.readout.lead, end if c.model == speller else ())
        for cs, end in zip(calls, ends, strict=True)
        for c in cs
        if c.readout is not None
    ]
    weights = iter(await Weigh(tuple(flat)) if flat else ())
    out = []
    for cs, charge in zip(calls, charges, strict=True):
        found = [(c.readout, next(weights)) for c in cs if c.readout is not None]
        bad = next((w for _, w in found if w.status != "ok"), None)
        if bad is not None or not found:
            out.append(Feedback(-745.0, bad.status if bad else "blocked"))
            continue
        out.append(Feedback(sum(margin(r, w, objective.target) for r, w in found) / len(found) - charge))
    return tuple(out)


async def losses(objective: Objective, suffixes: Sequence[tuple[int, ...]]) -> tuple[float, ...]:
    """Negative mean margin of each suffix, ``inf`` for one that does not survive the text interface, alone or in the
    prompts of the objective."""
    model = await model_of(objective)
    spelled = await Spell(model, tuple(suffixes))
    legal = [objective.place(text) for text in spelled if text]
    ids = [s for s, text in zip(suffixes, spelled, strict=True) if text]
    worths = iter(await margins(objective, legal, ids, model) if legal else ())
    return tuple(_loss(next(worths)) if text else inf for text in spelled)


def _loss(feedback: Feedback) -> float:
    return -feedback.worth if feedback.status == "ok" else inf


async def swaps(objective: Objective, suffix: tuple[int, ...], k: int) -> tuple[tuple[int, ...], ...]:
    """The ``k`` most promising token ids per position of ``suffix``, over all slates of the objective, by the model whose
    tokens they are (other models of a panel have no gradient by them; losses are over all)."""
    model = await model_of(objective)
    (text,) = await Spell(model, (suffix,))
    calls = [c for c in await contexts(objective, objective.place(text)) if c.model == model]
    asked = tuple(LabelCall(c, own_first(c.readout), c.readout.lead) for c in calls if c.readout is not None)
    return await Gradient(asked, suffix, k, objective.target)


def own_first(readout: Readout) -> tuple[str, ...]:
    """The labels with the author's goal first."""
    goal = 0 if readout.identities else max(readout.values)
    keys = readout.identities or readout.values
    own = [label for label, x in zip(readout.labels, keys, strict=True) if x == goal]
    return (*own, *(label for label in readout.labels if label not in own))


async def model_of(objective: Objective) -> str:
    """The model whose tokens the objective's suffixes are made of: the one its judge calls first."""
    calls = await contexts(objective, objective.place(""))
    if not calls:
        raise PlanError("the objective's judge has no model of its own, so it has no tokens to search over")
    return calls[0].model
