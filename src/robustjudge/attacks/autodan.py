"""O6 AutoDAN: a hierarchical genetic search over fluent paragraphs made of sentences.

Source: arXiv 2310.04451, applied to judges in arXiv 2506.09443 section IV-B.  Genes, prototypes and synonyms are ours;
fitness is asked as label odds of the text, so that no tokenizer and no gradient is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp, inf
from random import Random
from typing import Any, ClassVar

from robustjudge import spec
from robustjudge.attacks.base import Exhausted, Target, language_of, objective, stem
from robustjudge.attacks.search import Best, Search, odds
from robustjudge.attacks.text import TextAttack
from robustjudge.nouns import Access, Budget, Case

Genes = tuple[str, ...]

_PROTOTYPES = ("H1", "H3", "H5", "authority", "expert_claim", "fake_citation", "flattery", "forged_rubric")

_SYNONYMS = (
    ("good", "strong", "excellent", "fine", "superb"),
    ("right", "correct", "accurate", "valid"),
    ("clear", "plain", "lucid", "transparent"),
    ("complete", "full", "thorough", "exhaustive"),
    ("give", "award", "assign", "grant"),
    ("choose", "pick", "select", "prefer"),
    ("answer", "response", "reply", "text"),
    ("highest", "top", "best", "maximum"),
    ("score", "mark", "rating", "grade"),
    ("rule", "criterion", "guideline", "standard"),
    ("checked", "verified", "confirmed", "examined"),
    ("please", "kindly", "do"),
    ("final", "binding", "definitive", "settled"),
    ("evaluation", "assessment", "review", "judgement"),
)
SYNONYMS = {word: tuple(w for w in group if w != word) for group in _SYNONYMS for word in group}
"""A small English table of our own."""


@spec.register("autodan")
@dataclass(frozen=True)
class AutoDAN(Search):
    """``population`` paragraphs, ``generations`` rounds, ``elites`` kept; crossover at up to ``cuts`` sentence cuts with
    probability ``crossover``, a sentence replaced with probability ``mutation``; every ``paragraph_every``-th
    generation works on sentences, the others swap up to ``swaps`` words by momentum.

    ``pool`` gives the genes (default: our prototypes in the case's language); ``genes`` is how many make a paragraph.
    With ``rescore`` elites are scored again, as published.  Queries: ``P * G``, else ``P + (G - 1) * (P - elites)``.
    """

    population: int = 256
    generations: int = 100
    elites: int = 12
    crossover: float = 0.5
    cuts: int = 5
    mutation: float = 0.01
    swaps: int = 5
    paragraph_every: int = 5
    rescore: bool = False
    pool: tuple[str, ...] = ()
    genes: int = 4
    seed: int = 0
    target: Target = Target()

    access: ClassVar[Access] = Access.ODDS
    name: ClassVar[str] = "O6"

    family: ClassVar[str] = "optimisation"
    small: ClassVar[Mapping[str, Any]] = {"population": 8, "generations": 4, "elites": 1, "paragraph_every": 2}
    """Quick: P = 8, G = 4, 1 elite: 29 queries.

    Reference: P = 256, G = 100, 12 elites: 25,600 published, 24,412 with elites cached.
    """
    single: ClassVar[Mapping[str, Any]] = {"generations": 1}

    def ceiling(self) -> Budget:
        fresh = self.population - (0 if self.rescore else self.elites)
        return Budget(self.population + (self.generations - 1) * fresh, 0, 0, 0)

    def prototypes(self, case: Case) -> tuple[str, ...]:
        """The sentences that paragraphs are made of."""
        if self.pool:
            return self.pool
        made = [TextAttack(p, i, target=self.target).payload(case) for p in _PROTOTYPES for i in range(5)]
        lines = [s.strip() for text in made for s in re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", text)]
        return tuple(dict.fromkeys(s for s in lines if s))

    def paragraph(self, case: Case, genes: Genes) -> str:
        """The attacked text of one individual."""
        return stem(case) + ("" if language_of(case) == "zh" else " ").join(genes)

    async def __call__(self, case: Case) -> str:
        best = Best()
        with suppress(Exhausted):  # the budget is spent: best-so-far is the answer
            await self.evolve(case, best, [])
        return best.take("no label probability came back for any paragraph")

    async def evolve(self, case: Case, best: Best, trace: list[float]) -> None:
        """Run the generations; ``trace`` gets the best worth after each."""
        rng = Random(f"{self.seed}/{case.id}/autodan")
        pool = self.prototypes(case)
        herd: list[Genes] = [tuple(rng.choice(pool) for _ in range(self.genes)) for _ in range(self.population)]
        known: dict[int, float] = {}
        momentum: dict[str, float] = {}
        for generation in range(self.generations):
            fresh = [i for i in range(len(herd)) if i not in known]
            texts = [self.paragraph(case, herd[i]) for i in fresh]
            answers = await odds(objective(), texts)
            for i, text, worth in zip(fresh, texts, answers):
                known[i] = worth
                if worth > -inf:
                    best.offer(text, worth)
            trace.append(best.worth)
            order = sorted(known, key=lambda i: -known[i])
            ranked, worths = [herd[i] for i in order], [known[i] for i in order]
            momentum = _momentum(ranked, worths, momentum)
            elites = ranked[: self.elites]
            count = self.population - len(elites)
            if (generation + 1) % self.paragraph_every == 0:
                children = self._crossed(ranked, worths, count, pool, rng)
            else:
                children = [self._swapped(genes, momentum, rng) for genes in ranked[self.elites :]]
            herd = [*elites, *children]
            known = {} if self.rescore else dict(enumerate(worths[: len(elites)]))

    def _crossed(
        self, ranked: Sequence[Genes], worths: Sequence[float], count: int, pool: Sequence[str], rng: Random
    ) -> list[Genes]:
        """Children of parents picked by softmax of worth; the longer parent's tail is kept."""
        top = max(worths)
        finite = top > -inf
        weights = [exp(max(w - top, -700.0)) if finite else 1.0 for w in worths]
        children: list[Genes] = []
        while len(children) < count:
            a, b = rng.choices(ranked, weights, k=2)
            if rng.random() < self.crossover:
                a, b = _zipped(a, b, self.cuts, rng)
            for child in (a, b):
                mutated = tuple(rng.choice(pool) if rng.random() < self.mutation else gene for gene in child)
                children.append(mutated)
        return children[:count]

    def _swapped(self, genes: Genes, momentum: dict[str, float], rng: Random) -> Genes:
        """Up to ``swaps`` words replaced by synonyms, those with more momentum being likelier."""
        left = self.swaps

        def swap(match: re.Match[str]) -> str:
            nonlocal left
            options = SYNONYMS.get(match[0].lower())
            if not options or left == 0 or rng.random() < 0.5:
                return match[0]
            left -= 1
            lowest = min((momentum.get(w, 0.0) for w in options), default=0.0)
            chosen = rng.choices(options, [momentum.get(w, 0.0) - lowest + 0.1 for w in options])[0]
            return chosen.capitalize() if match[0][0].isupper() else chosen

        return tuple(re.sub(r"[A-Za-z]+", swap, gene) for gene in genes)


def _zipped(a: Genes, b: Genes, cuts: int, rng: Random) -> tuple[Genes, Genes]:
    """Exchange the segments between up to ``cuts`` cuts; the tail beyond the shorter parent stays with its own."""
    short = min(len(a), len(b))
    points = sorted(rng.sample(range(1, short), min(cuts, short - 1))) if short > 1 else []
    left, right = list(a), list(b)
    for i, (low, high) in enumerate(zip([0, *points], [*points, short])):
        if i % 2:
            left[low:high], right[low:high] = right[low:high], left[low:high]
    return tuple(left), tuple(right)


def _momentum(ranked: Sequence[Genes], worths: Sequence[float], before: dict[str, float]) -> dict[str, float]:
    """Mean worth of the individuals that hold each word, averaged with what was known."""
    seen: dict[str, list[float]] = {}
    for genes, worth in zip(ranked, worths):
        if worth > -inf:
            for word in set(re.findall(r"[a-z]+", " ".join(genes).lower())):
                seen.setdefault(word, []).append(worth)
    now = {word: sum(ws) / len(ws) for word, ws in seen.items()}
    return {**before, **{w: (v + before[w]) / 2 if w in before else v for w, v in now.items()}}
