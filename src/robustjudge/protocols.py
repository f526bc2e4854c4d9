"""Protocols: pointwise, pairwise and best-of-K are the same verbs over slates (paper, eq. 5-7 and 12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, Protocol as Interface, runtime_checkable

from robustjudge.errors import DataError, NoReference, PlanError
from robustjudge.nouns import TIE, Case, Slate, Verdict
from robustjudge.spec import register


@runtime_checkable
class Protocol(Interface):
    """Which slates a response is shown in, and what a verdict on them is worth to its author."""

    kind: ClassVar[str]

    def slates(self, case: Case, response: str, replica: str, seed: int = 0) -> tuple[Slate, ...]:
        """The slates of one measurement, one per order; ``response`` is identity 0."""
        ...

    def worth(self, verdict: Verdict) -> float:
        """Worth to the author in [0, 1]; 0 unless the verdict is ``ok`` (attacks.md 1.3)."""
        ...

    def outcome(self, verdict: Verdict) -> str:
        """One letter: W win, L loss, T tie (several candidates); S scored (one); u r t b e for the other statuses."""
        ...


_CODES = {"unparsed": "u", "refused": "r", "truncated": "t", "blocked": "b", "error": "e"}


_ANSWERS = ("gold", "check", "answers_equal")
"""Entries of a case's ``meta`` that tell the answer: a judge never sees them."""


def _slate(case: Case, texts: tuple[str, ...], index: tuple[int, ...], replica: str) -> Slate:
    return Slate(
        task=case.task,
        candidates=texts,
        index=index,
        replica=replica,
        history=case.history,
        kind=case.kind,
        language=case.language,
        meta=tuple((k, v) for k, v in case.meta if k not in _ANSWERS),
    )


@register("pointwise")
@dataclass(frozen=True)
class Pointwise:
    """One slate of one candidate (eq. 5).  With ``grading`` the reference is shown to the judge as such
    (binary graders); otherwise a pointwise judge never sees it."""

    grading: bool = False
    kind: ClassVar[str] = "pointwise"

    def slates(self, case: Case, response: str, replica: str, seed: int = 0) -> tuple[Slate, ...]:
        slate = _slate(case, (response,), (0,), replica)
        return (replace(slate, reference=case.reference) if self.grading else slate,)

    def worth(self, verdict: Verdict) -> float:
        return verdict.unit if verdict.status == "ok" and verdict.unit is not None else 0.0

    def outcome(self, verdict: Verdict) -> str:
        return _CODES.get(verdict.status, "S")


@register("appeal")
@dataclass(frozen=True)
class Appeal(Pointwise):
    """A pointwise verdict that the author may answer ``turns`` times: the judge's replies stay in the conversation, and
    what counts is the verdict after the last answer.  ``Appeal(1)``, ``Appeal(2)``, ... side by side give the figures
    per turn; they share their first turns in the ledger."""

    turns: int = 3
    label: ClassVar[str] = "appeal"

    def __post_init__(self) -> None:
        if not 1 <= self.turns <= 20:
            raise PlanError(f"an appeal has 1 to 20 turns, not {self.turns}")


class _Choice:
    """What pairwise and best-of-K share: identity 0 is the author's."""

    def worth(self, verdict: Verdict) -> float:
        if verdict.status != "ok":
            return 0.0
        return {0: 1.0, TIE: 0.5}.get(verdict.choice if verdict.choice is not None else 1, 0.0)

    def outcome(self, verdict: Verdict) -> str:
        if verdict.status != "ok":
            return _CODES[verdict.status]
        return {0: "W", TIE: "T"}.get(verdict.choice if verdict.choice is not None else 1, "L")


@register("pairwise")
@dataclass(frozen=True)
class Pairwise(_Choice):
    """Response against the first reference, in both orders (eq. 6-7)."""

    kind: ClassVar[str] = "pairwise"

    def slates(self, case: Case, response: str, replica: str, seed: int = 0) -> tuple[Slate, ...]:
        if not case.references:
            raise NoReference(f"case {case.id}: pairwise judging needs a reference to compare with, and it has none")
        pair = (response, case.reference)
        return tuple(_slate(case, tuple(pair[i] for i in order), order, replica) for order in ((0, 1), (1, 0)))


@register("best_of")
@dataclass(frozen=True)
class BestOf(_Choice):
    """Response, reference and K - 2 distractors in S orders (eq. 12).

    The default ``orders`` = 0 means S = K cyclic rotations of one seeded permutation, so that every candidate visits
    every slot once; a positive number draws that many seeded permutations.  Distractors are drawn by case and seed;
    where fewer than K - 2 exist, the slate is smaller and the row's ``k`` says so.
    """

    k: int = 4
    orders: int = 0
    kind: ClassVar[str] = "best_of"

    def __post_init__(self) -> None:
        if not 2 <= self.k <= 26:
            raise PlanError(f"best-of-K needs 2 to 26 candidates, not {self.k}; ASR@1 is not defined for K = 1")

    def size(self, case: Case) -> int:
        """The K that this case can fill."""
        return min(self.k, 2 + len({w.text for w in case.distractors} - {case.response, case.reference}))

    def slates(self, case: Case, response: str, replica: str, seed: int = 0) -> tuple[Slate, ...]:
        if not case.references:
            raise NoReference(
                f"case {case.id}: best-of-{self.k} needs a reference among the candidates, and it has none"
            )
        rng = Random(f"best_of {case.id} {seed}")
        spare = {w.text: None for w in case.distractors if w.text not in (case.response, case.reference)}
        pool = (response, case.reference, *rng.sample(tuple(spare), self.size(case) - 2))
        if len(set(pool)) < len(pool):
            raise DataError(f"case {case.id}: the attacked response equals another candidate, so a pick is ambiguous")
        first = rng.sample(range(len(pool)), len(pool))
        if self.orders:
            drawn = [first, *(rng.sample(first, len(first)) for _ in range(self.orders - 1))]
        else:
            drawn = [first[i:] + first[:i] for i in range(len(first))]
        return tuple(_slate(case, tuple(pool[i] for i in order), tuple(order), replica) for order in drawn)


def size(protocol: Protocol, case: Case) -> int:
    """The K of a row: how many candidates a slate of ``case`` holds; for an appeal its turns."""
    if isinstance(protocol, BestOf):
        return protocol.size(case)
    if isinstance(protocol, Appeal):
        return protocol.turns
    return 2 if isinstance(protocol, Pairwise) else 1
