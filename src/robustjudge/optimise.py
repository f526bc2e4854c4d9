"""The prompt optimiser with a real judge: items split by cluster, trials as evaluations, a prompt file, a diff, evidence."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from robustjudge.attacks.base import Attack
from robustjudge.datasets.split import Split
from robustjudge.errors import DataError, PlanError
from robustjudge.execution import Options, flown, in_loop
from robustjudge.judges import Prompted
from robustjudge.nouns import Case
from robustjudge.plan import bind, target_of
from robustjudge.protocols import Pairwise, Protocol
from robustjudge.search import Answer, Ascent, CoordinateAscent, Grid, Problem, Race, Result
from robustjudge.search.book import Config, Pair
from robustjudge.steps import together
from robustjudge.trial import Cell, Trial, trial


@dataclass(frozen=True)
class Task:
    """What to optimise, and on what.

    ``judge`` gives model and sampling; its prompt is replaced.  Families map a name to an attack: trained on, met in
    the test alone, and spare ones for co-training.  ``tokens``: the longest prompt text allowed (tokenizer-free count).
    """

    judge: Prompted
    grid: Grid
    cases: tuple[Case, ...]
    families: Mapping[str, Attack]
    held_out: Mapping[str, Attack] = field(default_factory=dict)
    spare: Mapping[str, Attack] = field(default_factory=dict)
    split: Split = Split(0.4, 0.3, 0.3)
    tokens: int | None = None
    protocol: Protocol = Pairwise()
    tau: float = 1.0

    @property
    def cost(self) -> int:
        """Judge calls for one text of one case: one per order."""
        return {"pointwise": 1, "pairwise": 2}.get(self.protocol.kind, getattr(self.protocol, "orders", 0) or self.most)

    @property
    def most(self) -> int:
        """The most candidates on a slate."""
        return int(getattr(self.protocol, "k", 2))


@dataclass(frozen=True)
class Optimised:
    """What the optimiser gives back; ``published`` is Algorithm 1 on the same items with its observations, if it ran."""

    grid: Grid
    answer: Answer
    published: Published | None
    notes: tuple[str, ...]
    protocol: str = "pairwise"

    @property
    def status(self) -> str:
        """``improved`` or ``no_improvement``."""
        return self.answer.status

    @property
    def prompt(self) -> str:
        """The prompt file: TOML in parts; the start's own when there was no improvement."""
        return self.grid.toml(self.answer.config)

    @property
    def diff(self) -> str:
        """A unified diff from the start prompt; empty when nothing changed."""
        return unified(self.grid, self.answer.config)


@dataclass(frozen=True)
class Published:
    """Algorithm 1's result, and what it showed on the items that picked it and on the test items."""

    ascent: Ascent
    family: str
    train: tuple[Result, ...]
    test: tuple[Result, ...]
    calls: int


def unified(grid: Grid, config: Config) -> str:
    """A unified diff from the start prompt to another one."""
    before, after = (grid.toml(c).splitlines(keepends=True) for c in (grid.start, config))
    return "".join(difflib.unified_diff(before, after, "start.toml", "optimised.toml"))


def optimise(
    task: Task, race: Race, options: Options | None = None, published: CoordinateAscent | None = None
) -> Optimised:
    """Search, confirm and test.  Illegal options, too few items and budgets too small are refused before any call."""
    options = options or Options()
    candidates, notes = _candidates(task)
    items, problem = _problem(task, candidates, race.seed)
    race.check(problem)
    with TemporaryDirectory() as spare:  # a search asks for many things twice: without a ledger it would pay twice
        kept = options if options.ledger is not None else replace(options, ledger=Path(spare) / "ledger.sqlite")
        total = 2 * race.budget if published else race.budget
        capped = replace(
            kept, mode="live" if kept.mode == "off" else kept.mode, max_calls=min(total, kept.max_calls or total)
        )

        async def steps() -> tuple[Answer, Published | None]:
            answer = await race(problem)
            baseline = await _published(task, problem, published, race, items) if published else None
            return answer, baseline

        answer, baseline = in_loop(lambda: flown(steps, (task.judge.model,), capped))
    return Optimised(task.grid, answer, baseline, notes, task.protocol.kind)


# --------------------------------------------------------------------------- items and candidates


def _candidates(task: Task) -> tuple[tuple[Config, ...], tuple[str, ...]]:
    task.grid.check(task.protocol.kind)
    found = tuple(task.grid.configs())
    notes = []
    if len(found) < task.grid.size:
        notes.append(f"the grid holds {task.grid.size:,} prompts: a seeded sample of {len(found):,} took part")
    if task.tokens is not None:
        start = task.grid.start
        short = tuple(c for c in found if c == start or task.grid.tokens(c, task.protocol.kind) <= task.tokens)
        if len(short) < len(found):
            notes.append(f"{len(found) - len(short):,} prompts are longer than {task.tokens} tokens and were left out")
        found = short
    return found, tuple(notes)


def _problem(task: Task, candidates: tuple[Config, ...], seed: int) -> tuple[Mapping[str, tuple[Case, ...]], Problem]:
    cases = [c for c in task.cases if c.references and c.reference != c.response]
    if not cases:
        raise DataError("no case has a reference to compare with, which tells whether a judge is right")
    held = _direction(cases, seed)
    parts = task.split(c for c in cases if c.get("direction") != held or not held)
    items: dict[str, tuple[Case, ...]] = {}
    for case in cases:
        name = case.cluster or case.id
        items[name] = (*items.get(name, ()), case)

    def names(of: Iterable[Case]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.cluster or c.id for c in of))

    test = (*parts.test, *(c for c in cases if held and c.get("direction") == held))
    attacks = {**task.families, **task.spare, **task.held_out}
    evaluate = _evaluation(task, items, attacks)
    problem = Problem(
        candidates,
        evaluate,
        names(parts.train),
        names(parts.validation),
        names(test),
        tuple(task.families),
        tuple(task.held_out),
        tuple(n for n in task.spare if n not in task.families and n not in task.held_out),
        task.cost,
        {name: len(group) for name, group in items.items()},
        2 if task.protocol.kind == "pointwise" else None,  # the weak response and the reference
    )
    return items, problem


def _direction(cases: Sequence[Case], seed: int) -> str:
    """The translation direction that only the test meets, drawn by seed; none where there are fewer than three."""
    known = sorted({c.get("direction") for c in cases} - {""})
    alone = [d for d in known if not {c.cluster or c.id for c in cases if c.get("direction") == d}
             & {c.cluster or c.id for c in cases if c.get("direction") != d}]  # fmt: skip
    if len(known) < 3 or not alone or any(not c.get("direction") for c in cases):
        return ""
    return Random(f"direction {seed}").choice(alone)


def _evaluation(task: Task, items: Mapping[str, tuple[Case, ...]], attacks: Mapping[str, Attack]) -> Any:
    protocol = task.protocol
    bound: dict[tuple[Config, str, str], Attack] = {}

    def cell(config: Config, judge: Prompted, case: Case, family: str) -> Cell:
        key = (config, case.kind, family)
        if key not in bound:
            (bound[key],) = bind((attacks[family],), target_of(judge, protocol, case.kind))
        return Cell(case, bound[key], judge, protocol, cleans=1, attack_name=family)

    async def evaluate(config: Config, pairs: Sequence[Pair]) -> tuple[Result, ...]:
        judge = replace(task.judge, template=task.grid.template(config))
        cells = [(i, f, cell(config, judge, c, f)) for i, f in pairs for c in items[i]]
        shown = await together(measured(c, task.tau) for _, _, c in cells)
        groups: dict[Pair, list[Result]] = {}
        for (i, f, _), one in zip(cells, shown, strict=True):
            groups.setdefault((i, f), []).append(one)
        return tuple(_joined(pair, groups[pair]) for pair in pairs)

    return evaluate


async def measured(cell: Cell, tau: float = 1.0) -> Result:
    """One trial as the search needs it."""
    seen = await trial(cell)
    who = cell.case.cluster or cell.case.id, cell.attack_name
    if cell.protocol.kind == "pointwise":
        return await _scored(who, cell, seen, tau)
    clean = "".join(cell.protocol.outcome(s.verdict) for s in seen.clean)
    attacked = "".join(cell.protocol.outcome(s.verdict) for s in seen.attacked)
    n = max(1, len(attacked))
    letters = clean + attacked
    return Result(
        *who,
        float(set(clean) == {"L"}),
        attacked.count("W") / n,
        sum(x not in "Lb" for x in attacked) / n,
        sum(x in "WLT" for x in letters),
        len(letters),
        float(len(set(clean)) == 1 and clean[0] in "WLT"),
    )


async def _scored(who: Pair, cell: Cell, seen: Trial, tau: float) -> Result:
    """A pointwise trial, and whether the judge scores the reference above the weak response."""
    (slate,) = cell.protocol.slates(cell.case, cell.case.reference, "clean/0")
    verdicts = (await cell.judge(slate), *(s.verdict for s in seen.clean), *(s.verdict for s in seen.attacked))
    best, before, after = (*(v.score if v.status == "ok" else None for v in verdicts), None)[:3]
    rise = None if before is None or after is None else after - before
    return Result(
        *who,
        float(best is not None and before is not None and best > before),
        float(rise is not None and rise >= tau - 1e-9),
        float(rise is not None and rise > 1e-9),
        sum(v.status == "ok" for v in verdicts),
        len(verdicts),
    )


def _joined(pair: Pair, found: Sequence[Result]) -> Result:
    n = len(found)

    def mean(name: str) -> float:
        return float(sum(getattr(r, name) for r in found)) / n

    read, asked = sum(r.read for r in found), sum(r.asked for r in found)
    return Result(*pair, mean("right"), mean("won"), mean("published"), read, asked, mean("steady"))


# --------------------------------------------------------------------------- the baseline


async def _published(
    task: Task, problem: Problem, ascent: CoordinateAscent, race: Race, items: Mapping[str, tuple[Case, ...]]
) -> Published:
    """Algorithm 1 with its own objective (minus P-ASR under one attack), on as many training items as the same budget
    of judge calls allows."""
    family = next(iter(task.families))
    most = ascent.sweeps * sum(task.grid.sizes) + 1
    tested = tuple(dict.fromkeys((family, *problem.families, *problem.held_out)))
    rest = race.budget - problem.per_item(tested, problem.test)
    size = rest // (most * problem.per_item((family,), problem.train[:1]))
    if size < 1:
        raise PlanError(
            f"Algorithm 1 needs {most} evaluations; a budget of {race.budget} calls does not hold them for one item"
        )
    used = problem.train[:size]
    book = problem.book(race.budget)

    async def value(config: Config) -> float:
        await book.fill((config,), used, (family,))
        column = book.column(config, used, (family,), "published")
        return -sum(column) / len(column)

    done = await ascent(task.grid.start, task.grid.sizes, value)
    await book.fill((done.config,), problem.test, tested)
    return Published(
        done,
        family,
        book.results(done.config, used, (family,)),
        book.results(done.config, problem.test, tested),
        book.spent,
    )


def write(found: Optimised, folder: Path, header: Mapping[str, Any]) -> dict[str, Path]:
    """Write ``prompt.toml``, ``prompt.diff``, ``evidence.json`` and ``evidence.md`` into ``folder``; their paths."""
    from robustjudge.optimise_evidence import evidence, markdown

    told = {**header, **evidence(found)}
    texts = {
        "prompt.toml": found.prompt,
        "prompt.diff": found.diff,
        "evidence.json": json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        "evidence.md": markdown(told),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return {name: folder / name for name in texts}
