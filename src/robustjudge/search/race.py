"""Ours: race all prompts on paired items under constraints, confirm on held-out items, co-train, test once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from random import Random
from typing import Literal

from robustjudge.errors import ConfigError, PlanError
from robustjudge.search.book import Book, Config, Evaluate, Objective, Result, Spent, level, tail
from robustjudge.search.evalue import log_e, log_mean
from robustjudge.spec import register


@dataclass(frozen=True)
class Problem:
    """What is searched, and on which data.

    Items are groups of cases that belong together (a cluster); no item is in two splits.  The test meets the families
    trained on, which tells what selection on noise gained, and the ``held_out`` ones, which nothing before it meets.
    ``spare`` are attacks among which co-training looks for the survivor's weakness.  ``cost``: judge calls for one text
    of one case, ``clean`` for its clean verdicts (default: ``cost``); ``cases``: cases per item where it is not one.
    """

    candidates: tuple[Config, ...]
    evaluate: Evaluate
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    families: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    cost: int = 2
    cases: Mapping[str, int] = field(default_factory=dict)
    clean: int | None = None

    def __post_init__(self) -> None:
        splits = (*self.train, *self.validation, *self.test)
        if len(set(splits)) < len(splits):
            raise PlanError("an item is in two splits: what selects may not test")
        if not (self.candidates and self.train and self.validation and self.test and self.families):
            raise PlanError("a search needs candidates, families, and items to train, validate and test on")
        if {*self.held_out} & {*self.families, *self.spare}:
            raise PlanError("a held-out attack family is also trained on")

    def per_item(self, families: Sequence[str], items: Sequence[str]) -> int:
        """Judge calls of one prompt on these items."""
        clean = self.cost if self.clean is None else self.clean
        return (clean + self.cost * len(families)) * sum(self.cases.get(i, 1) for i in items)

    def book(self, budget: int | None) -> Book:
        """A book for the answers, empty."""
        return Book(self.evaluate, self.cost, budget, self.cases, clean=self.clean)


@dataclass(frozen=True, slots=True)
class Block:
    """One look of a race: items seen so far, prompts before and after it, the incumbent, and why it ended (if it did)."""

    items: int
    before: int
    after: int
    incumbent: Config
    spent: int
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The survivor against the start on validation items: evidence of improvement (log e-value, needed from log(1/alpha)
    on), and each constraint as it was seen."""

    config: Config
    families: tuple[str, ...]
    log_e: float
    needed: float
    accuracy: float
    start_accuracy: float
    parse: float
    improved: bool
    kept: bool
    why: str = ""


@dataclass(frozen=True)
class Answer:
    """What the search gives back.

    ``config`` is the start unless the improvement was confirmed.  ``picked`` is what selection alone would have taken.
    ``train`` and ``test`` hold the observations of start, answer and pick; ``families`` those trained on in the end,
    found by co-training included.  ``exhaustive``: calls that trying every prompt on every training item would have
    cost.
    """

    status: Literal["improved", "no_improvement"]
    config: Config
    picked: Config
    start: Config
    families: tuple[str, ...]
    held_out: tuple[str, ...]
    blocks: tuple[Block, ...]
    checks: tuple[Checked, ...]
    train: Mapping[Config, tuple[Result, ...]]
    test: Mapping[Config, tuple[Result, ...]]
    calls: int
    budget: int
    exhaustive: int
    found: tuple[str, ...] = ()


@register("race")
@dataclass(frozen=True)
class Race:
    """Racing with paired tests that hold under peeking.

    ``budget``: judge calls, never exceeded; confirmation and test are set aside first.  ``alpha`` bounds the chance of
    calling a worse (or equal) prompt an improvement.  ``delta``: clean accuracy that may be lost; ``parse``: share of
    verdicts that must be read.  ``objective``: the worst family's win rate, or the mean of the worse half (``cvar``).
    A race also ends when no other prompt can be better by ``indifference``.  ``rounds`` of co-training each add the
    worst spare attack on the prompt so far to the training families and race again.
    """

    budget: int
    alpha: float = 0.05
    delta: float = 0.02
    parse: float = 0.99
    indifference: float = 0.02
    objective: Objective = "worst"
    block: int = 4
    rounds: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5 or self.block < 1 or self.rounds < 0:
            raise ConfigError("a race needs 0 < alpha < 0.5, a block of at least one item, and no negative rounds")

    async def __call__(self, problem: Problem) -> Answer:
        """Race, confirm, co-train, test once.  Raises :class:`PlanError` when the budget cannot hold a race at all."""
        book = problem.book(None)
        start, families = problem.candidates[0], problem.families
        looks = self.rounds + 1
        self.check(problem)
        book.budget = self.budget - self.reserve(problem)
        order = Random(f"race {self.seed}").sample(problem.train, len(problem.train))
        alive = self.affordable(problem, order, book.budget)
        blocks: list[Block] = []
        checks: list[Checked] = []
        found: list[str] = []
        picked = answer = start
        for turn in range(looks):
            book.budget = self.budget - self.reserve(problem, turn)
            picked = await self.race(problem, book, alive, order, families, blocks)
            book.budget = self.budget - self.reserve(problem, turn + 1)
            check = await self.confirm(problem, book, start, picked, families, log(looks / self.alpha))
            checks.append(check)
            answer = picked if check.kept else answer
            new = await self.weakness(problem, book, answer, order, families) if turn < self.rounds else None
            if new is None:
                break
            found.append(new)
            families = (*families, new)
        book.budget = self.budget
        finals = dict.fromkeys((start, answer, picked))
        tested = (*families, *problem.held_out)
        await book.fill(finals, problem.test, tested)
        shown = {c: self._seen(book, c, order, families) for c in finals}
        return Answer(
            "improved" if answer != start else "no_improvement",
            answer,
            picked,
            start,
            families,
            problem.held_out,
            tuple(blocks),
            tuple(checks),
            shown,
            {c: book.results(c, problem.test, tested) for c in finals},
            book.spent,
            self.budget,
            len(problem.candidates) * problem.per_item(problem.families, problem.train),
            tuple(found),
        )

    def check(self, problem: Problem) -> None:
        """Raise :class:`PlanError` where not even a perfect prompt could be confirmed, or the budget holds no race."""
        needed = log((self.rounds + 1) / self.alpha)
        if log_e([1.0] * len(problem.validation)) < needed:
            least = next(n for n in range(1, 1000) if log_e([1.0] * n) >= needed)
            raise PlanError(
                f"{len(problem.validation)} validation items cannot confirm any improvement at alpha {self.alpha:g}"
                f" in {self.rounds + 1} look(s); {least} are the least: load more cases, or lower the rounds"
            )
        self.affordable(problem, problem.train, self.budget - self.reserve(problem))

    # ------------------------------------------------------------------ budget

    def reserve(self, problem: Problem, turn: int = 0) -> int:
        """Calls set aside, from round ``turn`` on, for the confirmations and the test."""
        known = len(problem.families)
        confirms = sum(
            2 * problem.per_item(("",) * (known + i), problem.validation) for i in range(turn, self.rounds + 1)
        )
        return confirms + 3 * problem.per_item(("",) * (known + self.rounds + len(problem.held_out)), problem.test)

    def affordable(self, problem: Problem, order: Sequence[str], budget: int) -> tuple[Config, ...]:
        """As many candidates as a first block for all of them may cost half of the racing budget."""
        first = problem.per_item(problem.families, order[: self.block])
        room = budget // (2 * first)
        if room < 2:
            raise PlanError(
                f"a budget of {self.budget} judge calls cannot hold a race: {self.reserve(problem)} are set aside to"
                f" confirm and test, and one prompt costs {first} on its first block; give at least"
                f" {self.reserve(problem) + 4 * first}"
            )
        if room >= len(problem.candidates):
            return problem.candidates
        start, *others = problem.candidates
        near = [c for c in others if _far(c, start) == 1]
        rest = [c for c in others if _far(c, start) > 1]
        Random(f"sample {self.seed}").shuffle(rest)
        return (start, *(*near, *rest)[: room - 1])

    # ------------------------------------------------------------------ racing

    async def race(
        self,
        problem: Problem,
        book: Book,
        alive: Sequence[Config],
        order: Sequence[str],
        families: Sequence[str],
        blocks: list[Block],
    ) -> Config:
        """The survivor, or the best so far when items or budget end."""
        start = problem.candidates[0]
        racing = list(alive)
        seen, step, incumbent = 0, self.block, start
        while True:
            items = order[seen : seen + step]
            try:
                await book.fill((start, *racing), items, families)
            except Spent:
                fewer = self._cut(problem, book, racing, start, order[:seen], items, families)
                if len(fewer) < 2:
                    blocks.append(
                        Block(seen, len(racing), len(racing), incumbent, book.spent, "budget: the best so far")
                    )
                    return incumbent
                blocks.append(Block(seen, len(racing), len(fewer), incumbent, book.spent, "cut to the budget"))
                racing = fewer
                continue
            seen, step = seen + len(items), step * 2
            before = len(racing)
            looked = order[:seen]
            incumbent = min(racing, key=lambda c: self._rank(book, c, start, looked, families))
            bar = log(1 / self.alpha)
            racing = [
                c
                for c in racing
                if c in (incumbent, start) or not self._out(book, c, incumbent, start, looked, families, bar)
            ]
            ended = ""
            if all(c in (incumbent, start) for c in racing):
                ended = "one left"
            elif seen == len(order):
                ended = "items"
            elif all(self._no_better(book, c, incumbent, looked, families) >= bar for c in racing if c != incumbent):
                ended = "indifference"
            blocks.append(Block(seen, before, len(racing), incumbent, book.spent, ended))
            if ended:
                return incumbent

    def _cut(
        self,
        problem: Problem,
        book: Book,
        racing: Sequence[Config],
        start: Config,
        seen: Sequence[str],
        items: Sequence[str],
        families: Sequence[str],
    ) -> list[Config]:
        """The best half (by rank so far, else in the order given) or what is left of it that the next block can hold."""
        ranked = sorted(racing, key=lambda c: self._rank(book, c, start, seen, families)) if seen else list(racing)
        ranked = [start, *(c for c in ranked if c != start)]
        room = (book.budget or 0) - book.spent
        one = problem.per_item(families, items)
        most = min(len(ranked) - 1, max(len(ranked) // 2, room // one))
        while most > 0 and sum(book.price(c, [(i, f) for i in items for f in families]) for c in ranked[:most]) > room:
            most -= 1
        return ranked[:most]

    def _rank(
        self, book: Book, c: Config, start: Config, items: Sequence[str], families: Sequence[str]
    ) -> tuple[bool, float, int, Config]:
        """Feasible on what was seen, then the lower objective, then nearer to the start."""
        broken = bool(self._broken(book, c, start, items, families))
        return broken, self.level(book, c, items, families), _far(c, start), c

    def level(self, book: Book, c: Config, items: Sequence[str], families: Sequence[str]) -> float:
        """The objective of a prompt on items seen."""
        return level([_mean(book.column(c, items, (f,))) for f in families], self.objective)

    def _broken(self, book: Book, c: Config, start: Config, items: Sequence[str], families: Sequence[str]) -> str:
        """Which constraint the observed figures break; empty when none."""
        read = book.results(c, items, families)
        if sum(r.read for r in read) < self.parse * sum(r.asked for r in read) - 1e-9:
            return "parse rate"
        lost = _mean(book.column(start, items, families, "right")) - _mean(book.column(c, items, families, "right"))
        return "clean accuracy" if lost > self.delta + 1e-9 else ""

    def _out(
        self,
        book: Book,
        c: Config,
        incumbent: Config,
        start: Config,
        items: Sequence[str],
        families: Sequence[str],
        bar: float,
    ) -> bool:
        """Whether the evidence says: worse than the incumbent, or outside a constraint (one-sided, any time)."""
        if self.worse(book, c, incumbent, items, families) >= bar:
            return True
        right = zip(book.column(start, items, families, "right"), book.column(c, items, families, "right"), strict=True)
        if log_e((a - b for a, b in right), self.delta) >= bar:
            return True
        unread = (
            1 - sum(r.read for r in rs) / max(1, sum(r.asked for r in rs))
            for rs in (book.results(c, (i,), families) for i in items)
        )
        return log_e(unread, 1 - self.parse) >= bar

    def worse(
        self,
        book: Book,
        c: Config,
        other: Config,
        items: Sequence[str],
        families: Sequence[str],
        by: float = 0.0,
    ) -> float:
        """Log e-value against "the objective of ``c`` is at most that of ``other`` plus ``by``".

        The objective is the largest mean over subsets S of families.  If the claim holds, every S of ``c`` is matched by
        some T of ``other``; so for each S the least evidence over T is valid, and so is its mean over S.
        """
        subsets = list(combinations(families, tail(len(families), self.objective)))
        mine = [book.column(c, items, s) for s in subsets]
        theirs = [book.column(other, items, t) for t in subsets]
        return log_mean(min(log_e((a - b for a, b in zip(x, y, strict=True)), by) for y in theirs) for x in mine)

    def _no_better(
        self, book: Book, c: Config, incumbent: Config, items: Sequence[str], families: Sequence[str]
    ) -> float:
        """Log e-value against "``c`` is better than the incumbent by the indifference or more"."""
        return self.worse(book, c, incumbent, items, families, -self.indifference)

    # ------------------------------------------------------------------ after the race

    async def confirm(
        self, problem: Problem, book: Book, start: Config, picked: Config, families: Sequence[str], needed: float
    ) -> Checked:
        """The pick against the start on validation items."""
        items = problem.validation
        await book.fill((start, picked), items, families)
        evidence = self.worse(book, start, picked, items, families) if picked != start else 0.0
        read = book.results(picked, items, families)
        broken = self._broken(book, picked, start, items, families)
        improved = picked != start and evidence >= needed
        why = "" if improved else "the start won the race" if picked == start else "the improvement is not significant"
        if improved and broken:
            why = f"{broken} on validation items is outside its limit"
        return Checked(
            picked,
            tuple(families),
            evidence,
            needed,
            _mean(book.column(picked, items, families, "right")),
            _mean(book.column(start, items, families, "right")),
            sum(r.read for r in read) / max(1, sum(r.asked for r in read)),
            improved,
            improved and not broken,
            why,
        )

    async def weakness(
        self, problem: Problem, book: Book, config: Config, order: Sequence[str], families: Sequence[str]
    ) -> str | None:
        """The spare attack that wins most against the survivor, if it wins more than the families trained on."""
        spare = [f for f in problem.spare if f not in families]
        items = list(order[: self.block])
        if not spare:
            return None
        try:
            await book.fill((config,), items, (*spare, *families))
        except Spent:
            return None
        worst = max(spare, key=lambda f: (_mean(book.column(config, items, (f,))), f))
        gain = _mean(book.column(config, items, (worst,))) - self.level(book, config, items, families)
        return worst if gain > 1e-9 else None

    def _seen(self, book: Book, c: Config, order: Sequence[str], families: Sequence[str]) -> tuple[Result, ...]:
        """What training observed of a prompt: the items on which every family is known."""
        out: list[Result] = []
        for item in order:
            try:
                out += book.results(c, (item,), families)
            except KeyError:
                continue
        return tuple(out)


def _far(a: Config, b: Config) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
