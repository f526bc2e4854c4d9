"""What a plan will send before it sends anything: calls, tokens, cost, time, and how precise its figures can be.

Non-adaptive cells are *driven*: the trial's own steps run against an answerer that only counts, so that the count is
exact by construction, equal calls included.  Adaptive cells get a bound that holds whatever the replies are: the
attack's ceiling cut by the budget, times what one candidate costs under the threat model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

from robustjudge.asks import Complete, Gradient, Invoke, Measure, Sample, Spell, Surprise, Weigh
from robustjudge.engine.kernel import ask_keys
from robustjudge.judges import Guarded, Judge, Panel, Prompted, Repeated, Service
from robustjudge.measures.intervals import wilson_bounds, zero_event_bound
from robustjudge.measures.power import detectable_difference
from robustjudge.models.prices import PriceTable, table as price_table
from robustjudge.models.registry import LOCAL
from robustjudge.nouns import Access, Budget, Call, Completion, Slate, Surprisal, Usage, Weights
from robustjudge.plan import Plan
from robustjudge.steps import Ask, run
from robustjudge.trial import Cell, trial

BYTES_PER_TOKEN = 4
"""Prompt tokens are estimated as UTF-8 bytes / 4: four Latin letters, or about 1.3 Chinese characters, to a token."""
REPLY_TOKENS = 200
"""A reply is estimated at this many tokens, or at the sampling's ``max_tokens`` where that is less."""
SECONDS = {"scripted": 0.001, "recorded": 0.001, "llamacpp": 2.5, "hf": 4.0}
REMOTE_SECONDS = 2.0
"""Seconds of one call by provider; endpoints are assumed to take :data:`CONCURRENCY` calls at once."""
SEARCH_SECONDS = {"hf": 0.3}
"""Seconds of one more evaluation of a search, where it is scored in a batch and not written out: 1,488 calls of the
embedded white-box suite took 319 s."""
CONCURRENCY = 16

Line = tuple[str, str]  # role, model


@dataclass(frozen=True)
class Calls:
    """Calls of one model in one role.  ``asked``: by non-adaptive cells; ``sent``: those that the ledger does not answer
    (exact); ``at_most``: with every adaptive cell at its ceiling, ``None`` where an attack has no ceiling and the plan
    no budget.  Tokens, cost (USD; ``None``: price unknown) and seconds are for ``at_most``, or ``sent`` without one."""

    role: str
    model: str
    asked: int
    sent: int
    at_most: int | None
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class Precision:
    """What ``cases`` independent cases can tell of a rate of one judge under one protocol: the half-width of Wilson's
    interval at 50 % and 10 %, the change from 10 % that two such runs would detect (80 % power), and the highest rate
    that 0 successes leave possible (one-sided 95 %)."""

    judge: str
    defense: str
    protocol: str
    cases: int
    half_width_50: float
    half_width_10: float
    detectable: float
    zero_bound: float


@dataclass(frozen=True)
class Forecast:
    """The forecast of a plan.  ``exact``: no cell is adaptive and no defense calls a model, so ``sent`` is what a run
    with a fresh ledger sends.  ``unbounded`` names attacks without a ceiling; ``refused`` counts cells whose slates
    cannot be made (they become error rows)."""

    cells: int
    adaptive: int
    cases: int
    refused: int
    exact: bool
    calls: tuple[Calls, ...]
    precision: tuple[Precision, ...]
    unbounded: tuple[str, ...] = ()

    @property
    def sent(self) -> int:
        """Calls that non-adaptive cells send, exactly (all roles)."""
        return sum(c.sent for c in self.calls)

    @property
    def at_most(self) -> int | None:
        """The most calls that the whole plan can send; ``None`` without a bound."""
        each = [c.at_most for c in self.calls]
        return None if self.unbounded or None in each else sum(x or 0 for x in each)

    @property
    def cost(self) -> float | None:
        """USD for all models; ``None`` where a price is unknown."""
        each = [c.cost for c in self.calls]
        return None if None in each else sum(x or 0.0 for x in each)

    @property
    def seconds(self) -> float:
        """Models work side by side only where they are different."""
        by_model: dict[str, float] = defaultdict(float)
        for c in self.calls:
            by_model[c.model] += c.seconds
        return max(by_model.values(), default=0.0)


@dataclass
class Counted:
    """The tally of one (role, model)."""

    asked: int = 0
    sent: int = 0
    extra: int = 0
    open: bool = False
    prompt: int = 0
    reply: int = 0

    def mean(self) -> tuple[float, float]:
        """Mean tokens of a sent call; before any is known, a rough middle."""
        return (self.prompt / self.sent, self.reply / self.sent) if self.sent else (500.0, float(REPLY_TOKENS))


@dataclass
class Recount:
    """Answers every ask of a trial with nothing, and counts what would have been sent."""

    lines: dict[Line, Counted] = field(default_factory=lambda: defaultdict(Counted))
    seen: set[bytes] = field(default_factory=set)

    def __call__(self, ask: Ask[Any]) -> Any:
        match ask:
            case Complete(calls):
                for call, key in zip(calls, ask_keys(ask), strict=True):
                    self.count((call.role, call.model), bytes.fromhex(key), call)
                return tuple(Completion() for _ in calls)
            case Weigh(asked):
                (whole,) = ask_keys(ask)
                for i, c in enumerate(asked):
                    self.count((c.call.role, c.call.model), bytes.fromhex(whole) + bytes([i % 256]), c.call)
                return tuple(Weights(status="error") for _ in asked)
            case Invoke(service):
                self.count(("judge", service), bytes.fromhex(ask_keys(ask)[0]), None)
                return Completion(status="error")
            case Measure(texts=texts):
                return tuple(None for _ in texts)
            case Surprise(texts=texts):
                return tuple(Surprisal(status="error") for _ in texts)
            case Spell(ids=ids):
                return tuple("" for _ in ids)
            case Gradient() | Sample():
                return ()
            case _:
                raise TypeError(f"{type(ask).__name__} outside of a search")

    def count(self, line: Line, mark: bytes, call: Call | None) -> None:
        """One call asked; sent unless an equal one was."""
        tally = self.lines[line]
        tally.asked += 1
        if mark in self.seen:
            return
        self.seen.add(mark)
        tally.sent += 1
        if call is not None:
            size = sum(len(p.text.encode("utf-8", "surrogatepass")) for m in call.messages for p in m.parts)
            tally.prompt += ceil(size / BYTES_PER_TOKEN)
            tally.reply += min(call.sampling.max_tokens, REPLY_TOKENS)


def forecast(plan: Plan, settings: Mapping[str, Any] | None = None, prices: PriceTable | None = None) -> Forecast:
    """Count what ``plan`` sends with a fresh ledger.  ``settings`` are model settings by name (prices, concurrency).

    Nothing is sent; time grows with the plan (about 3,000 cells a second on one core), memory with its distinct calls
    (under 100 bytes each).
    """
    counter = Recount()
    clusters: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    cases: set[str] = set()
    cells = adaptive = refused = 0
    certain = True
    unbounded: dict[str, None] = {}
    for cell in plan.cells():
        cells += 1
        cases.add(cell.case.id)
        clusters[cell.judge_name, cell.defense_name, cell.protocol.kind].add(cell.case.cluster or cell.case.id)
        try:
            if driven(cell):
                run(trial(cell), counter)
                continue
            adaptive += 1
            certain = False
            if not _bound(cell, counter, bool(plan.train)):
                unbounded[cell.attack_name or cell.attack.name] = None
        except Exception as fault:  # this cell becomes an error row of the run; what it asked before was counted
            if isinstance(fault, (TypeError, AttributeError)):
                raise
            refused += 1
    if plan.train:
        for key, cell in plan.fits():
            certain = False
            if not _search(cell, counter, ceiling_of(cell.attack)):
                unbounded[f"{key} (fitting)"] = None
    return Forecast(
        cells,
        adaptive,
        len(cases),
        refused,
        certain,
        tuple(_calls(line, c, settings or {}, prices or price_table()) for line, c in sorted(counter.lines.items())),
        tuple(precision(*key, len(found)) for key, found in clusters.items()),
        tuple(unbounded),
    )


def driven(cell: Cell) -> bool:
    """Whether the calls of a cell do not depend on any reply, so that they can be counted exactly."""
    a = cell.attack
    if a.access > Access.NONE or getattr(a, "writes", False) or cell.protocol.kind not in _FIXED:
        return False
    return not _replies_matter(cell.judge)


_FIXED = ("pointwise", "pairwise", "best_of")


def _replies_matter(judge: Judge) -> bool:
    """Whether a defense inside asks anything besides the judge's own call."""
    if isinstance(judge, Guarded):
        slate = Slate("", ("a",), (0,))
        return any(added(judge.defense, slate)) or _replies_matter(judge.judge)
    parts = judge.members if isinstance(judge, Panel) else (judge.judge,) if isinstance(judge, Repeated) else ()
    return any(_replies_matter(p) for p in parts)


def added(defense: Any, slate: Slate) -> tuple[int, int, int]:
    """Model calls, judge calls and once-per-run judge calls that a defense may add to one slate.

    A defense that does not say is asked for none where it names no model, and for one call per candidate where it does.
    """
    extra = getattr(defense, "extra", None)
    if extra is None:
        models = getattr(defense, "models", ())
        return (len(models() if callable(models) else models) * len(slate.candidates), 0, 0)
    e = extra(slate)
    return e.calls + e.passes, e.judges, e.once


def most(judge: Judge, slate: Slate) -> Counter[Line]:
    """The most calls that one verdict on ``slate`` can take, by role and model."""
    if isinstance(judge, Prompted):
        return Counter({("judge", judge.model): 2 if judge.expect else 1})
    if isinstance(judge, Service):
        return Counter({("judge", judge.name): 1})
    if isinstance(judge, Repeated):
        return Counter({line: judge.n * n for line, n in most(judge.judge, slate).items()})
    if isinstance(judge, Panel):
        return sum((most(m, slate) for m in judge.members), Counter())
    if isinstance(judge, Guarded):
        calls, again, once = added(judge.defense, slate)
        inner = most(judge.judge, slate)
        out = Counter({line: (1 + again + once) * n for line, n in inner.items()})
        models = getattr(judge.defense, "models", ())
        for model in (models() if callable(models) else models) if calls else ():
            out["detector", model] += calls
        return out
    return Counter({("judge", "unknown"): 1})


def _bound(cell: Cell, counter: Recount, fitted: bool) -> bool:
    """Add what an adaptive (or guarded) cell may send; says whether there is a bound."""
    slates = cell.protocol.slates(cell.case, cell.case.response, "clean/0", cell.seed)
    turns = 1 + int(getattr(cell.protocol, "turns", 0))
    for slate in slates:
        for line, n in most(cell.judge, slate).items():
            counter.lines[line].extra += n * turns * (cell.finals + cell.cleans)
    universal = bool(getattr(cell.attack, "universal", False)) and fitted
    attack: Any = cell.attack
    left = getattr(attack, "fitted_ceiling", partial(Budget, 0, 0, 0, 0))
    return _search(cell, counter, left() if universal else ceiling_of(attack))


def ceiling_of(attack: Any) -> Budget:
    """The most that an attack may ask for; one that does not say has no ceiling."""
    ceiling = getattr(attack, "ceiling", None)
    found: Budget = Budget() if ceiling is None else ceiling()
    return found


def _search(cell: Cell, counter: Recount, ceiling: Budget) -> bool:
    """Add the search of one trial (or fit): each candidate, loss or gradient drives the oracle over every slate, rival
    and draw."""
    threat, attack = cell.threat, cell.attack
    limits = {k: _least(getattr(ceiling, k), getattr(threat.budget, k)) for k in Budget.__dataclass_fields__}
    wide = max(1, len(getattr(attack, "shadows", ())))
    orders = cell.protocol.slates(cell.case, cell.case.response, "search/0", cell.seed)
    per: Counter[Line] = Counter()
    for slate in orders:
        for line, n in most(threat.oracle(cell.judge), slate).items():
            per[line] += 2 * n if attack.access >= Access.ODDS else n  # detectors are asked apart from the margin
    evaluations = [limits["queries"], limits["losses"], limits["gradients"]]
    closed = None not in evaluations and limits["writes"] is not None
    for line, n in per.items():
        tally = counter.lines[line]
        if None in evaluations:
            tally.open = True
        else:
            tally.extra += n * threat.draws * wide * sum(x or 0 for x in evaluations)
    if threat.attacker:
        tally = counter.lines["attacker", threat.attacker]
        tally.extra += limits["writes"] or 0
        tally.open = tally.open or limits["writes"] is None
    return closed


def _least(a: int | None, b: int | None) -> int | None:
    known = [x for x in (a, b) if x is not None]
    return min(known) if known else None


def _calls(line: Line, c: Counted, settings: Mapping[str, Any], prices: PriceTable) -> Calls:
    role, model = line
    at_most = None if c.open else c.sent + c.extra
    n = c.sent if at_most is None else at_most
    prompt, reply = c.mean()
    tokens = round(prompt * n), round(reply * n)
    given = settings.get(model)
    own = getattr(given, "price", None)
    if own is not None:
        cost: float | None = (tokens[0] * own[0] + tokens[1] * own[1]) / 1e6
    else:
        each = prices.cost(Usage(round(prompt), round(reply)), model)
        cost = None if each is None else each * n
    provider = model.partition("/")[0]
    if provider in LOCAL:
        each_call = SECONDS.get(provider, REMOTE_SECONDS)
        seconds = c.sent * each_call + (n - c.sent) * SEARCH_SECONDS.get(provider, each_call)
    else:
        width = min(getattr(given, "max_concurrency", CONCURRENCY), CONCURRENCY)
        seconds = n * REMOTE_SECONDS / width
        rpm = getattr(given, "rpm", None)
        seconds = max(seconds, 60.0 * n / rpm) if rpm else seconds
    return Calls(role, model, c.asked, c.sent, at_most, tokens[0], tokens[1], cost, seconds)


def precision(judge: str, defense: str, protocol: str, cases: int) -> Precision:
    """The precision that ``cases`` cases buy."""
    z = 1.959963984540054

    def half(p: float) -> float:
        low, high = wilson_bounds(p, cases, z)
        return (high - low) / 2

    return Precision(
        judge,
        defense,
        protocol,
        cases,
        half(0.5),
        half(0.1),
        detectable_difference(0.1, cases),
        zero_event_bound(cases),
    )


def expected(plan: Plan, pilot: Any) -> dict[str, float]:
    """Expected victim queries of each adaptive attack of ``plan``, from the mean of a pilot run's table; attacks that
    the pilot did not run are left out."""
    trials: Counter[str] = Counter(
        cell.attack_name or cell.attack.name for cell in plan.cells() if cell.attack.access > Access.NONE
    )
    found = {name: pilot.where(pilot["attack"].equals(name))["queries"] for name in trials}
    return {name: float(queries.mean()) * trials[name] for name, queries in found.items() if len(queries)}
