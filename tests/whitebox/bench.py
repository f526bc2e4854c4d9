"""A bench for attacks on tiny judges: judge, cases, and a driver that answers every ask by one model."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from tiny_judges import SOURCE, TARGET, WORDS

from robustjudge.asks import Complete, Gradient, Measure, Sample, Spell, Surprise, Weigh
from robustjudge.judges import Prompted
from robustjudge.models.transformers import Transformers
from robustjudge.nouns import Case, Sampling
from robustjudge.objective import Objective, margins
from robustjudge.prompts.template import Form, Part, PromptMessage, Template
from robustjudge.protocols import Pointwise
from robustjudge.scales import likert
from robustjudge.steps import Ask, Steps, handled, run
from robustjudge.trial import Cell, Meter, Oracle

TEMPLATE = Template(
    "tiny",
    Form(
        "pointwise",
        (PromptMessage("user", (Part("", "<|source|> {task} <|answer|> {response}"),)),),
        likert(1, 5),
        fence="plain",
        append_verdict=False,
    ),
)


def judge_of(model: Transformers) -> Prompted:
    return Prompted(model.name, TEMPLATE, Sampling(max_tokens=4))


def case_of(seed: int, right: int = 1) -> Case:
    """Four source words and an answer of which ``right`` words are right."""
    rng = Random(f"case/{seed}")
    picked = [rng.randrange(len(SOURCE)) for _ in range(4)]
    good = set(rng.sample(range(4), right))
    wrong = [TARGET[i] if at in good else TARGET[(i + rng.randrange(1, 24)) % 24] for at, i in enumerate(picked)]
    return Case(f"tiny-{seed}-{right}", " ".join(SOURCE[i] for i in picked), " ".join(wrong))


def junk(rng: Random, n: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(n))


async def answer(model: Transformers, ask: Ask[Any]) -> Any:
    match ask:
        case Complete(calls):
            return tuple([await model.complete(c) for c in calls])
        case Weigh(calls):
            return await model.weigh(calls)
        case Spell(_, ids):
            return await model.spell(ids)
        case Gradient():
            return await model.gradient(ask)
        case Sample():
            return await model.sample(ask)
        case Surprise(_, texts, context):
            return await model.surprise(texts, context)
        case Measure(_, _, texts):
            return (None,) * len(texts)
    raise TypeError(type(ask).__name__)


def drive(model: Transformers, steps: Steps[Any]) -> Any:
    """The result of steps whose asks are answered by ``model``."""
    with asyncio.Runner() as loop:
        return run(steps, lambda ask: loop.run(answer(model, ask)))


def attacked(model: Transformers, attack: Any, case: Case) -> tuple[str, Meter]:
    """The attack's text on a case, and what it spent."""
    cell = Cell(case, attack, judge_of(model), Pointwise())
    meter = Meter(cell.threat.budget)
    return drive(model, handled(attack(case.sealed()), Oracle(cell, meter))), meter


def fitted(model: Transformers, attack: Any, cases: list[Case]) -> Any:
    """A universal attack fitted on ``cases``."""
    cell = Cell(cases[0], attack, judge_of(model), Pointwise())
    return drive(model, handled(attack.fit(tuple(cases)), Oracle(cell, Meter(cell.threat.budget))))


def rescored(model: Transformers, case: Case, texts: list[str]) -> list[float]:
    """The verdict margin of each text, asked anew by text."""
    about = Objective().bound(case, judge_of(model), Pointwise())
    return [f.worth for f in drive(model, margins(about, texts))]


def verdict(model: Transformers, case: Case, text: str) -> float | None:
    """The score that the judge writes."""
    (slate,) = Pointwise().slates(case, text, "final/0")
    return drive(model, judge_of(model)(slate)).score


def best_random(model: Transformers, case: Case, n: int, length: int, seed: int) -> float:
    """The best margin of ``n`` random suffixes of ``length`` words: what the same number of asks gives by luck."""
    rng = Random(f"luck/{case.id}/{seed}")
    return max(rescored(model, case, [f"{case.response} {junk(rng, length)}" for _ in range(n)]))


def sign_p(wins: int, n: int) -> float:
    """One-sided p of a sign test."""
    from math import comb

    return sum(comb(n, k) for k in range(wins, n + 1)) / 2**n
