"""Helpers: drive a defended scripted judge to its verdict, with detectors and scoring models that are functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import Any

from robustjudge.asks import Complete, Measure, Surprise, Weigh
from robustjudge.judges import Guarded, Prompted
from robustjudge.models.scripted.base import Scripted
from robustjudge.nouns import Call, Completion, Slate, Surprisal, Text, Verdict, Weights
from robustjudge.prompts.library import template
from robustjudge.steps import run

JUDGE = Prompted("scripted/judge", template("vanilla").plain())
"""A prompt without fences of its own, so that what a defense adds is all there is."""


class Rule(Scripted):
    """Base of scripted judges that live in a test: named by their class, not registered."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return type(self).__name__.lower()


def finished(coroutine: Any) -> Any:
    """The value of a coroutine that never waits (scripted models)."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a scripted model waited")


def field_text(call: Call) -> str:
    """The untrusted text of a detector's call."""
    return "".join(p.text for m in call.messages for p in m.parts if isinstance(p, Text) and p.field)


@dataclass
class World:
    """Answers every ask: ``judge`` the judge's calls, ``says`` the detector's (a function of the checked text),
    ``weighs`` its label log-probabilities, ``logprobs`` the scoring model's; counts all of them by kind."""

    judge: Scripted
    says: Callable[[str], str | Completion] = lambda text: "ANSWER: no"
    weighs: Callable[[str], tuple[float, ...]] = lambda text: (log(0.1), log(0.9))
    logprobs: Callable[[str], Surprisal | tuple[float, ...]] = lambda text: (-1.0,) * len(text.split())
    others: dict[str, Scripted] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)

    def __call__(self, ask: Any) -> Any:
        match ask:
            case Complete(calls):
                return tuple(self._reply(c) for c in calls)
            case Weigh(calls):
                if calls and calls[0].call.role == "judge":
                    return finished(self.judge.weigh(calls))
                self.counts["detector"] += len(calls)
                return tuple(Weights(self.weighs(field_text(c.call))) for c in calls)
            case Surprise(_, texts):
                self.counts["passes"] += len(texts)
                found = [self.logprobs(t) for t in texts]
                return tuple(f if isinstance(f, Surprisal) else Surprisal(f) for f in found)
            case Measure(_, _, texts):
                return (None,) * len(texts)
        raise AssertionError(ask)

    def _reply(self, call: Call) -> Completion:
        self.calls.append(call)
        if call.role == "judge":
            self.counts["judge"] += 1
            return finished(self.others.get(call.model, self.judge).complete(call))
        self.counts["detector"] += 1
        said = self.says(field_text(call))
        return said if isinstance(said, Completion) else Completion(said)

    def verdict(self, defense: Any, slate: Slate, judge: Any = JUDGE) -> Verdict:
        return run(Guarded(judge, defense)(slate), self)


def alone(text: str, task: str = "Say what two plus two is.", **more: Any) -> Slate:
    return Slate(task, (text,), (0,), **more)


def pair(first: str, second: str, task: str = "Say what two plus two is.", **more: Any) -> Slate:
    return Slate(task, (first, second), (0, 1), **more)
