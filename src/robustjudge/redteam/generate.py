"""The two engines: texts of the attacks themselves (offline, seeded), and texts that a generator model is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robustjudge import door
from robustjudge.asks import Complete
from robustjudge.attacks import library
from robustjudge.attacks.base import NoCandidate, Plugin, split
from robustjudge.attacks.controls import Neutral
from robustjudge.judges import Judge
from robustjudge.nouns import Call, Case, Completion, Sampling
from robustjudge.plan import target_of
from robustjudge.protocols import Protocol
from robustjudge.redteam.content import in_place
from robustjudge.redteam.prompt import filled, values
from robustjudge.redteam.reply import contract, grammar, read
from robustjudge.redteam.strategies import Strategy, shares
from robustjudge.spec import canonical, digest
from robustjudge.steps import run, together
from robustjudge.variants import Variant, variant_id

TEMPERATURE = 0.8
"""Of the generator; the judge is asked at temperature 0."""

CHECK = "content check"
"""Who refused a text that no person has seen."""


@dataclass(frozen=True)
class Brief:
    """What is tested: judge and protocol, the cases, variants per case, and the allowed swing in words.

    ``low`` is the scale's lower end, the score of an empty answer.
    """

    judge: Judge
    protocol: Protocol
    cases: tuple[Case, ...]
    strategies: tuple[Strategy, ...]
    number: int
    threshold: str
    seed: int = 0
    rubric: str = ""
    low: float | None = None


@dataclass
class Made:
    """What came of it: the variants (refused ones with status ``rejected`` and the reason), how many texts were wanted
    and accepted per strategy, and how many were refused for each reason."""

    variants: list[Variant] = field(default_factory=list)
    wanted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    latency: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        total, good = sum(self.wanted.values()), sum(self.accepted.values())
        return {
            "wanted": total,
            "accepted": good,
            "acceptance_rate": good / total if total else None,
            "calls": self.calls,
            "latency_s": round(self.latency, 3),
            "by_strategy": {s: {"wanted": n, "accepted": self.accepted[s]} for s, n in sorted(self.wanted.items())},
            "refused": dict(sorted(self.refused.items())),
        }


# --------------------------------------------------------------------------- the template engine


def by_template(brief: Brief) -> Made:
    """The variants that the attacks write themselves; nothing is asked of any model."""
    made = Made()
    seen: set[str] = set()
    for case in brief.cases:
        target = target_of(brief.judge, brief.protocol, case.kind)
        for strategy, count in shares(brief.strategies, brief.number):
            for k in range(count):
                made.wanted[strategy.name] += 1
                attack = library.attack(strategy.name, target, brief.seed + k)
                assert isinstance(attack, Plugin)
                try:
                    text = run(attack(case.sealed()), _nothing)
                except NoCandidate as why:
                    made.refused[f"no text for this case: {why}"] += 1
                    continue
                v = made_variant(brief, case, strategy, text, k, "template", control=_control(attack, case, text))
                placed = attack.channel in ("replace", "rewrite") or in_place(case, v.text)
                if not placed or v.id in seen:
                    made.refused[
                        "the same text twice" if placed else "the response does not stand in it unchanged"
                    ] += 1
                    continue
                seen.add(v.id)
                made.accepted[strategy.name] += 1
                made.variants.append(v)
    return made


def _nothing(ask: object) -> Any:
    raise NoCandidate(f"it asks for {type(ask).__name__}, and a variant is written before anything is asked")


def _control(attack: Plugin, case: Case, text: str) -> str:
    """The id of the neutral control: a text of the same length at the same place without a payload."""
    return variant_id(case.id, Neutral(attack).made_from(case, text), "control")


def made_variant(
    brief: Brief, case: Case, strategy: Strategy, text: str, seed: int, source: str, **more: Any
) -> Variant:
    safe = door.safe(text)
    channel = channel_of(case, safe)
    by_hand = "response unchanged in place" if in_place(case, safe) else "replaced by rule"
    given = {"content": by_hand, **more}
    return Variant.of(
        case.id,
        safe,
        strategy.category,
        severity=strategy.severity,
        expected=brief.low if not safe.strip() and brief.low is not None else case.expected,
        attack=strategy.name,
        source=source,
        seed=brief.seed + seed,
        channel=channel,
        parent=digest(door.safe(case.response)),
        **given,
    )


def channel_of(case: Case, text: str) -> str:
    """How a text relates to the response: something was added to it, or it was replaced."""
    parts = split(case.response, text)
    if not parts.before and not parts.after:
        return "rewrite" if text.strip() else "replace"
    return "middle" if parts.before and parts.after else "append" if parts.before else "prefix"


# --------------------------------------------------------------------------- the generator model


@dataclass(frozen=True)
class Generator:
    """A model that writes variants.  ``constrained``: ``grammar`` (local models: every text holds the response unchanged),
    ``schema`` (the contract's JSON schema, where the endpoint enforces one) or empty: it writes freely."""

    model: str
    constrained: str = ""
    max_tokens: int = 1024


def asked(brief: Brief, case: Case, strategy: Strategy, count: int, generator: Generator) -> Call:
    """The request for ``count`` variants of one case by one strategy."""
    told = values(brief.judge, case, (strategy,), count, brief.threshold, brief.rubric)
    sampling = Sampling(TEMPERATURE, generator.max_tokens, seed=brief.seed)
    if generator.constrained == "grammar":
        sampling = replace(sampling, grammar=grammar(case.response, strategy.name, count))
    elif generator.constrained == "schema":
        sampling = replace(sampling, schema=canonical(contract((strategy.name,), count)))
    return Call(generator.model, (filled(told),), sampling, f"redteam/{brief.seed}", "attacker")


def requests(brief: Brief) -> tuple[tuple[Case, Strategy, int], ...]:
    """One request per case and strategy that a model can be told of."""
    able = tuple(s for s in brief.strategies if s.words)
    return tuple((c, s, n) for c in brief.cases for s, n in shares(able, brief.number)) if able else ()


async def by_model(brief: Brief, generator: Generator) -> Made:
    """Steps: ask the generator and read what it wrote.  A kill loses nothing: replies lie in the ledger."""
    todo = requests(brief)
    replies: tuple[Completion, ...] = await together([_reply(asked(brief, *r, generator)) for r in todo])
    return sorted_out(brief, generator, todo, replies)


async def _reply(call: Call) -> Completion:
    (reply,) = await Complete((call,))
    return reply


def sorted_out(
    brief: Brief, generator: Generator, todo: Sequence[tuple[Case, Strategy, int]], replies: Sequence[Completion]
) -> Made:
    """Accept or refuse every text of every reply; a refused text stays in the file with the reason."""
    made = Made(calls=len(todo))
    seen: set[str] = set()
    for (case, strategy, count), reply in zip(todo, replies, strict=True):
        made.wanted[strategy.name] += count
        made.latency += reply.latency
        for k, d in enumerate(read(reply, case, strategy, count)):
            if not d.text:
                made.refused[d.fault] += 1
                continue
            more: dict[str, Any] = {"model": generator.model, "content": d.content, "claimed": d.claimed}
            if d.fault:
                made.refused[d.fault.partition(":")[0]] += 1
                more |= {"status": "rejected", "who": CHECK, "reason": d.fault}
            v = made_variant(brief, case, strategy, d.text, k, "generator", **more)
            if v.id in seen:
                made.refused["the same text twice"] += not d.fault
                continue
            seen.add(v.id)
            made.accepted[strategy.name] += not d.fault
            made.variants.append(v)
    return made
