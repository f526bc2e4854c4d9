"""Judges: a judge is ``async (Slate) -> Verdict``; prompted, guarded, repeated, panelled or somebody else's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import exp, inf
from statistics import median
from typing import Any, Protocol as Interface, runtime_checkable

from robustjudge.asks import Complete, Invoke, Weigh
from robustjudge.errors import ConfigError
from robustjudge.nouns import (
    TIE,
    Call,
    Completion,
    LabelCall,
    Message,
    Readout,
    Sampling,
    Slate,
    Text,
    Verdict,
    Weights,
)
from robustjudge.prompts.render import render
from robustjudge.prompts.template import Form, Template
from robustjudge.scales import Reading, Scale
from robustjudge.spec import ByIdentity, register
from robustjudge.steps import together

register("sampling")(Sampling)


@runtime_checkable
class Judge(Interface):
    """Anything that answers a slate with a verdict by asking."""

    def __call__(self, slate: Slate) -> Coroutine[Any, Any, Verdict]: ...


class Defense(Interface):
    """Middleware around a judge: detector, prompt change and response change are one shape."""

    def __call__(self, slate: Slate, judge: Judge) -> Coroutine[Any, Any, Verdict]: ...


@register("prompted")
@dataclass(frozen=True)
class Prompted:
    """A model behind a judge prompt: render, ask once, read strictly.

    ``expect`` asks label probabilities besides, where one candidate is scored, and sets ``Verdict.expected``;
    ``constrained`` holds the reply to the verdict line, with the likeliest of its labels (local models).  ``family``
    overrides the table of model families.
    """

    model: str
    template: Template
    sampling: Sampling = Sampling()
    family: str = ""
    expect: bool = False
    constrained: bool = False

    async def __call__(self, slate: Slate) -> Verdict:
        form = self.template.form(len(slate.candidates))
        call = self.call(slate, form)
        (completion,) = await Complete((call,))
        verdict = decide(completion, form, slate)
        if self.expect and call.readout is not None and len(slate.candidates) == 1:
            asked = LabelCall(call, call.readout.labels, call.readout.lead)
            (weights,) = await Weigh((asked,))
            verdict = with_odds(verdict, weights, call.readout)
        return verdict

    def call(self, slate: Slate, form: Form) -> Call:
        """The request for one slate; an appeal's exchange follows the prompt as further turns.

        The same object for the same slate, which every attack on a case shows again as its clean arm.
        """
        if sum(map(len, slate.candidates)) > SHORT:  # remembering long texts would fill the memory
            return self._call(slate, form)
        known = _calls(self)
        call = known.get(slate)
        if call is None:
            if len(known) >= 512:
                known.clear()
            call = known[slate] = self._call(slate, form)
        return call

    def _call(self, slate: Slate, form: Form) -> Call:
        messages = render(form, slate)
        for i, turn in enumerate(slate.exchange):
            messages = (*messages, Message(turn.role, (Text(turn.text, f"exchange/{i}"),)))
        readout = readout_of(form.scale, slate)
        sampling = self.sampling
        if self.constrained and readout is not None:
            sampling = replace(sampling, grammar=verdict_grammar(readout), max_tokens=min(16, sampling.max_tokens))
        return Call(self.model, messages, sampling, slate.replica, "judge", readout)


SHORT = 16_384
"""Characters of all candidates up to which a call is remembered."""


def _no_calls(judge: Prompted) -> dict[Slate, Call]:
    return {}


_calls: Callable[[Prompted], dict[Slate, Call]] = ByIdentity(_no_calls, kept=64)


def verdict_grammar(readout: Readout) -> str:
    """A GBNF grammar that admits exactly the verdict line with one declared label, closed by a full stop or line break.

    The closing mark is there for the sake of honesty: where "1" may only go on as "10" or end the whole reply, a model
    that wanted to write "1." is pushed to "10".
    """
    options = " | ".join(json.dumps(label) for label in readout.labels)
    lead = f"{json.dumps(readout.lead)} " if readout.lead else ""
    return f"root ::= {lead}({options}) [.\\n]"


def readout_of(scale: Scale, slate: Slate) -> Readout | None:
    """How label probabilities answer this slate on this scale; ``None`` when the labels cannot be listed."""
    labels = _verdict_labels(scale)
    if not labels:
        return None
    if len(slate.candidates) > 1:
        shown = [label for label in labels if label != scale.tie][: len(slate.candidates)]
        ties = (scale.tie,) if scale.tie else ()
        identities = (*slate.index[: len(shown)], *(TIE for _ in ties))
        return Readout((*shown, *ties), scale.lead, identities=identities)
    if scale.labels:
        return Readout(labels, scale.lead, values=tuple(float(label == scale.positive) for label in labels))
    return Readout(labels, scale.lead, values=tuple(float(label) for label in labels))


def decide(completion: Completion, form: Form, slate: Slate) -> Verdict:
    """Read a completion into a verdict in identity space; a fault keeps its status and reason."""
    if completion.status == "error":
        return Verdict(status="error", reason=completion.reason, raw=completion.text)
    finish = "length" if completion.status == "truncated" else completion.finish
    refusal = completion.refusal or (completion.reason or "refused" if completion.status == "refused" else "")
    reading = form.reply.read(completion.text, finish, refusal)
    verdict = from_reading(reading, form.scale, slate)
    if form.reply.fooled(completion.text, finish, refusal):
        verdict = replace(verdict, fooled=True)
    return verdict


def from_reading(reading: Reading, scale: Scale, slate: Slate) -> Verdict:
    """Map a reading (slot space) to a verdict (identity space)."""
    single = len(slate.candidates) == 1
    told = partial(
        Verdict,
        raw=reading.raw,
        form=reading.form,
        rationale=rationale(reading),
        range=_range(scale) if single else None,
    )
    if reading.status != "ok":
        return told(status=reading.status, reason=reading.reason)
    if not single:
        label = str(reading.value)
        if scale.tie and label == scale.tie:
            return told(choice=TIE, label=label)
        slots = [x for x in _verdict_labels(scale) if x != scale.tie]
        slot = slots.index(label) if label in slots else len(slate.candidates)
        if slot >= len(slate.candidates):
            return told(status="unparsed", reason=f"label {label!r} names no candidate of this slate")
        return told(choice=slate.index[slot], label=label)
    if scale.labels:
        label = str(reading.value)
        return told(label=label, unit=float(label == scale.positive), score=float(label == scale.positive))
    score = float(reading.value if reading.value is not None else "nan")
    low, high = _range(scale)
    return told(score=score, unit=(score - low) / (high - low), parts=reading.parts)


@lru_cache(maxsize=256)
def _verdict_labels(scale: Scale) -> tuple[str, ...]:
    return scale.verdict_labels()


def _range(scale: Scale) -> tuple[float, float]:
    if scale.labels or scale.low is None or scale.high is None:
        return 0.0, 1.0
    return float(scale.low), float(scale.high)


def rationale(reading: Reading) -> str:
    """What the judge wrote besides the verdict."""
    if reading.span is None:
        return reading.raw.strip()
    start, end = reading.span
    return (reading.raw[:start] + reading.raw[end:]).strip()


def with_odds(verdict: Verdict, weights: Weights, readout: Readout) -> Verdict:
    """Add label probabilities (renormalised over the declared labels) and the score they imply."""
    if weights.status != "ok":
        return verdict
    mass = [exp(lp) for lp in weights.logprobs]
    total = sum(mass)
    if total <= 0:
        return verdict
    odds = tuple((label, m / total) for label, m in zip(readout.labels, mass, strict=True))
    expected = None
    if readout.values:
        expected = sum(v * p for v, (_, p) in zip(readout.values, odds, strict=True))
    return replace(verdict, odds=odds, expected=expected)


@register("guarded")
@dataclass(frozen=True)
class Guarded:
    """A judge behind a defense is a judge; defenses compose by nesting."""

    judge: Judge
    defense: Defense

    async def __call__(self, slate: Slate) -> Verdict:
        return await self.defense(slate, self.judge)


@register("repeated")
@dataclass(frozen=True)
class Repeated:
    """The same judge ``n`` times under distinct replica names; median of scores, strict majority of choices."""

    judge: Judge
    n: int = 3

    async def __call__(self, slate: Slate) -> Verdict:
        repeats = [replace(slate, replica=f"{slate.replica}.r{i}") for i in range(self.n)]
        return aggregate(await together(self.judge(s) for s in repeats))


@register("panel")
@dataclass(frozen=True)
class Panel:
    """Several judges; a value needs more than half of *all* members, and list order never breaks a tie."""

    members: tuple[Judge, ...]

    async def __call__(self, slate: Slate) -> Verdict:
        return aggregate(await together(m(slate) for m in self.members))


def aggregate(verdicts: tuple[Verdict, ...]) -> Verdict:
    """Median of scores, or the choice (label) that more than half of all members gave; else ``unparsed``.

    Quorum: more than half of all members must be ``ok``.  A panel whose members were all blocked is blocked.
    """
    read = [v for v in verdicts if v.status == "ok"]
    raw = "\n---\n".join(v.raw for v in verdicts)
    if 2 * len(read) <= len(verdicts):
        worst = Counter(v.status for v in verdicts if v.status != "ok").most_common(1)[0][0]
        return Verdict(status=worst, reason=f"quorum: {len(read)} of {len(verdicts)} members gave a verdict", raw=raw)
    why = "\n".join(v.rationale for v in read)
    if all(v.choice is None and not v.label for v in read):
        scores = [v.score for v in read if v.score is not None]
        units = [v.unit for v in read if v.unit is not None]
        ends = read[0].range
        return Verdict(score=median(scores), unit=median(units), rationale=why, raw=raw, form="panel", range=ends)
    votes = Counter((v.choice, "" if v.choice is not None else v.label) for v in read)
    (choice, label), count = votes.most_common(1)[0]
    if 2 * count <= len(verdicts):
        return Verdict(status="unparsed", reason=f"no majority of all {len(verdicts)} members", raw=raw, rationale=why)
    unit = next(v.unit for v in read if v.choice == choice and (v.choice is not None or v.label == label))
    return Verdict(choice=choice, label=label, unit=unit, score=unit, rationale=why, raw=raw, form="panel")


@register("service")
@dataclass(frozen=True)
class Service:
    """A judge that somebody else owns, reached by name (an HTTP endpoint or a Python callable).

    The answer is JSON, or a number alone.  ``overall`` is the dotted path of the score, or ``""`` with ``parts`` given:
    then the mean of the parts.  ``parts`` maps names of sub-scores to their paths.  ``winner`` is the path of the chosen
    slot (counted from ``winner_base``) for judges that compare.  Scores off the scale give ``unparsed``, never a clipped
    value.
    """

    name: str
    low: float = 0.0
    high: float = 10.0
    overall: str = "score"
    parts: tuple[tuple[str, str], ...] = ()
    winner: str = ""
    winner_base: int = 0
    rationale: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.low, str) or isinstance(self.high, str) or not -inf < self.low < self.high < inf:
            raise ConfigError(
                f"service {self.name!r}: low must be under high, the ends of its score scale, not {self.low} and {self.high}"
            )

    async def __call__(self, slate: Slate) -> Verdict:
        if slate.frame.before or slate.frame.after:
            raise ConfigError(
                f"service {self.name!r} owns its prompt, so a defense that adds to the prompt cannot guard it;"
                " use a detector or a transform"
            )
        completion = await Invoke(self.name, slate)
        if completion.status != "ok":
            return Verdict(status=completion.status, reason=completion.reason, raw=completion.text)
        return self.read(completion.text, slate)

    def read(self, text: str, slate: Slate) -> Verdict:
        """The verdict in a JSON answer; anything missing or off the scale is ``unparsed`` with its path."""
        try:
            data = json.loads(text)
        except ValueError:
            return Verdict(status="error", reason="service answered no JSON", raw=text)
        why = str(_path(data, self.rationale) or "") if self.rationale else ""
        if len(slate.candidates) > 1:
            slot = _path(data, self.winner) if self.winner else None
            if not isinstance(slot, int) or isinstance(slot, bool):
                return Verdict(status="unparsed", reason=f"no slot number at {self.winner!r}", raw=text, rationale=why)
            if not 0 <= slot - self.winner_base < len(slate.candidates):
                return Verdict(status="unparsed", reason=f"slot {slot} is not on this slate", raw=text, rationale=why)
            return Verdict(choice=slate.index[slot - self.winner_base], raw=text, rationale=why, form="service")
        parts = []
        for name, path in self.parts:
            value = self._number(_path(data, path))
            if value is None:
                return Verdict(status="unparsed", reason=f"no score on the scale at {path!r}", raw=text, rationale=why)
            parts.append((name, value))
        if not isinstance(data, (dict, list)) and not self.parts:  # the whole answer is the score
            score = self._number(data)
        elif self.overall:
            score = self._number(_path(data, self.overall))
        else:
            score = sum(v for _, v in parts) / len(parts) if parts else None
        if score is None:
            reason = f"no score on the scale at {self.overall!r}"
            return Verdict(status="unparsed", reason=reason, raw=text, parts=tuple(parts), rationale=why)
        unit = (score - self.low) / (self.high - self.low)
        ends = (self.low, self.high)
        return Verdict(score=score, unit=unit, parts=tuple(parts), raw=text, rationale=why, form="service", range=ends)

    def _number(self, value: Any) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return float(value) if self.low <= value <= self.high else None


def _path(data: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list) and step.isdigit() and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    return data


def inner(judge: Judge) -> tuple[Judge, ...]:
    """The judges directly inside ``judge``."""
    if isinstance(judge, (Guarded, Repeated)):
        return (judge.judge,)
    return judge.members if isinstance(judge, Panel) else ()


def models_of(judge: Judge) -> tuple[str, ...]:
    """The models that a judge (and its defenses) may call, in order, without repeats."""
    found: dict[str, None] = {}
    if isinstance(judge, Prompted):
        found[judge.model] = None
    for part in inner(judge):
        found.update(dict.fromkeys(models_of(part)))
    if isinstance(judge, Guarded):
        extra = getattr(judge.defense, "models", ())
        found.update(dict.fromkeys(extra() if callable(extra) else extra))
    return tuple(found)


def undefended(judge: Judge) -> Judge:
    """The same judge with every defense taken off."""
    if isinstance(judge, Guarded):
        return undefended(judge.judge)
    if isinstance(judge, Repeated):
        return replace(judge, judge=undefended(judge.judge))
    if isinstance(judge, Panel):
        return replace(judge, members=tuple(undefended(m) for m in judge.members))
    return judge


def passed(judge: Judge) -> Judge:
    """The judge on the branch where every detector let the text pass (for losses and gradients)."""
    if isinstance(judge, Guarded):
        if getattr(judge.defense, "screens", False):
            return passed(judge.judge)
        open_ = getattr(judge.defense, "passed", None)  # a chain takes its own detectors off
        return replace(judge, judge=passed(judge.judge), defense=open_() if open_ else judge.defense)
    if isinstance(judge, Repeated):
        return replace(judge, judge=passed(judge.judge))
    if isinstance(judge, Panel):
        return replace(judge, members=tuple(passed(m) for m in judge.members))
    return judge
