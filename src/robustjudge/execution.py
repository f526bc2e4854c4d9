"""One run: a plan executed into a run folder, resumable at every row, rebuilt by nobody but its table."""

from __future__ import annotations

import asyncio
import json
import platform
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from robustjudge.engine.backend import Backend
from robustjudge.engine.caps import Caps
from robustjudge.engine.driver import AsyncDriver, Job, Landed
from robustjudge.engine.events import Event, Listener, Tally, fan
from robustjudge.engine.folder import Folder
from robustjudge.engine.kernel import Pending
from robustjudge.engine.ledger import Ledger, Mode
from robustjudge.engine.outbox import Outbox
from robustjudge.engine.writer import Writer, connect, settle
from robustjudge.errors import ConfigError, Incomplete, Inconclusive, NoReference, PlanError, RobustJudgeError
from robustjudge.judges import Guarded, models_of
from robustjudge.nouns import Case, Completion
from robustjudge.plan import Plan, artefact_name
from robustjudge.searched import keep
from robustjudge.spec import dump, load
from robustjudge.table import (
    DROP_MARKS,
    PUT_MARK,
    PUT_ROW,
    PUT_TEXT,
    SCHEMA,
    Row,
    Stored,
    Table,
    cell_key,
    error_row,
    row_of,
    upgrade,
)
from robustjudge.trial import Cell, fitting, trial

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """How a plan is executed.

    ``root``: where run folders are made.  ``ledger``: the ledger file shared by runs (``None``: none).  ``window``:
    live trials (0: four times the models' concurrency).  ``store``: ``full`` or ``hashes``.  ``models``: settings by
    model name, or ready providers.  ``services``: answerers of :class:`~robustjudge.judges.Service`.
    ``batch``: write unsent calls to this file for a provider's batch service instead of sending them.
    ``retry_errors``: run cells again whose row says ``error``.  ``truth``: known true rates of planted judges, printed
    beside the measured ones.  ``inputs``: what reading the cases gave (counts, rows set aside), kept in the manifest.
    """

    root: Path = Path("runs")
    ledger: Path | None = Path(".robustjudge/ledger.sqlite")
    mode: Mode = "live"
    slug: str = "run"
    resume: Path | None = None
    window: int = 0
    max_calls: int | None = None
    max_cost: float | None = None
    store: str = "full"
    fail_fast: bool = False
    batch: Path | None = None
    retry_errors: bool = False
    models: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    listener: Listener | None = None


class Run:
    """A finished (or interrupted) run: its folder, its counters, its table."""

    def __init__(self, folder: Folder, tally: Tally) -> None:
        self.folder = folder
        self.tally = tally

    @property
    def path(self) -> Path:
        return self.folder.path

    def table(self) -> Table:
        """The scalar columns of all rows."""
        return Table.load(self.folder.table)

    def report(self, formats: tuple[str, ...] = ("html", "md", "json")) -> dict[str, Path]:
        """Write the reports into the folder and return their paths."""
        from importlib import import_module

        written: dict[str, Path] = import_module("robustjudge.reports").write(self.folder.path, formats)
        return written


def execute(plan: Plan, options: Options | None = None) -> Run:
    """Run a plan to its end.  Works inside a running event loop too (then in a thread of its own)."""
    return in_loop(lambda: execute_async(plan, options or Options()))


def in_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, whether or not an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    box: list[T] = []
    fault: list[BaseException] = []
    flying: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        flying.append((asyncio.get_running_loop(), task))
        return await make()

    def work() -> None:
        try:
            box.append(asyncio.run(main()))
        except BaseException as error:  # carried over to the thread that waits
            fault.append(error)
        finally:
            over.set()

    over = threading.Event()
    thread = threading.Thread(target=work, name="robustjudge-run")
    thread.start()
    stopped = False
    while not over.is_set():
        try:
            over.wait()  # not join: a join that is interrupted takes the thread for dead (Python 3.11)
        except (
            KeyboardInterrupt
        ):  # a notebook's stop button: the first lets calls in flight finish, the second does not
            stopped = True
            for loop, task in flying:
                loop.call_soon_threadsafe(task.cancel)
    thread.join()
    if stopped:
        raise KeyboardInterrupt
    if fault:
        raise fault[0]
    return box[0]


def checked(plan: Plan, options: Options) -> Callable[[str], Any]:
    """The opener of the plan's models, after refusing what cannot be done with them: an unknown name, access that an
    attack needs and a model lacks.  Opening a model sends nothing."""
    opened = lru_cache(maxsize=None)(_opener(options))
    plan.check(lambda name: opened(name).access)
    return opened


async def execute_async(plan: Plan, options: Options) -> Run:
    """Run a plan on the current event loop."""
    from robustjudge.models.prices import table as price_table
    from robustjudge.scales import READER_VERSION

    prices = price_table()
    opened = checked(plan, options)
    for name in models_of_plan(plan) if options.batch else ():
        if not hasattr(opened(name), "batch_line"):
            raise PlanError(f"{name} has no batch service; --batch is for openai/..., anthropic/... and the like")
    if options.mode != "replay-only" and options.batch is None:
        _ready(map(opened, models_of_plan(plan)), options.services.values())
    folder = Folder.open(options.resume) if options.resume else Folder.create(options.root, options.slug)
    priced = lru_cache(maxsize=256)(prices.price)

    def cost(completion: Completion, model: str) -> float | None:
        price = priced(model)
        return None if price is None else price.cost(completion.usage)

    tally = Tally(price=cost)
    listener = fan(tally, options.listener) if options.listener else tally
    async with AsyncExitStack() as last:  # closed in reverse: readers, models, ledger, writer, table, lock
        folder.lock()
        last.callback(folder.unlock)
        last.callback(settle, folder.table)
        writer = Writer()
        last.callback(writer.close)
        ledger = Ledger(writer, options.ledger, options.mode)
        last.callback(ledger.close)
        upgrade(folder.table)
        writer.open("run", folder.table, SCHEMA)
        caps = Caps(options.max_calls, options.max_cost, prices.highest)
        outbox = Outbox(options.batch, writer) if options.batch else None
        backend = Backend(
            opened, ledger, services=options.services, rate=rater(), caps=caps, outbox=outbox, listener=listener
        )
        last.push_async_callback(backend.close)
        reading = connect(folder.table, readonly=True)
        last.callback(reading.close)
        started = datetime.now(UTC)
        _write_manifest(folder, plan, options, started, tally, "running")
        window = options.window or 4 * max((_concurrency(backend, plan)), 1)
        plan = await _fit(plan, backend, folder, listener)
        known = _journal(reading)

        def jobs() -> Iterator[Job | None]:
            kept = 0
            sql = "SELECT attacked_status = 'error' OR clean_status = 'error' FROM trials WHERE cell = ?"
            for cell in plan.cells():
                key = cell_key(cell)
                listener(Event("planned", key))
                row = reading.execute(sql, (key,)).fetchone() if options.resume else None
                if row is not None and not (options.retry_errors and row[0]):
                    listener(Event("row", key, detail="kept"))
                    kept += 1
                    if not kept % 256:
                        yield None  # the event loop gets its turn: a million kept rows take a while
                    continue
                flying[key] = cell
                yield Job(key, lambda cell=cell: trial(cell), known.pop(key, None))  # type: ignore[misc]

        flying: dict[str, Cell] = {}
        stored = Stored()

        def land(landed: Landed) -> None:
            cell, key = flying.pop(landed.job.key), landed.job.key
            if landed.error is not None:
                text = "".join(traceback.format_exception(landed.error))
                reason = landed.error.reason if isinstance(landed.error, NoReference) else "our_error"
                row = error_row(cell, key, landed.trace, READER_VERSION, text, reason)
                listener(Event("fault", key, detail=type(landed.error).__name__))
            else:
                row = _row(landed, cell, READER_VERSION, options.store)
                if landed.result.attack_status == "error":
                    listener(Event("fault", key, detail="attack raised"))
            for pair in stored.fresh(row.texts, writer.healed.get("run", 0)):
                writer.put("run", PUT_TEXT, pair)
            writer.put("run", PUT_ROW, row.values)
            writer.put("run", DROP_MARKS, (key,))
            if options.fail_fast and landed.error is None and landed.result.attack_status == "error":
                raise AttackFailed(f"cell {key}: attack {cell.attack_name} raised\n{landed.result.error}")

        def answered(key: str, pending: Pending) -> None:
            writer.put("run", PUT_MARK, (key, pending.path, pending.mark))

        driver = AsyncDriver(
            backend, land, window=window, answered=answered, listener=listener, fail_fast=options.fail_fast
        )
        state = "incomplete"
        try:
            await driver.run(jobs())
            state = "incomplete" if driver.put_aside else "complete"
        finally:
            if outbox is not None:
                outbox.close()
            writer.flush()
            keep(plan, folder)
            _write_manifest(folder, plan, options, started, tally, state, backend)
    if outbox is not None and outbox.count:
        raise Incomplete(
            f"{outbox.count} calls of {driver.put_aside} trials are written to {options.batch}; have the provider's batch"
            f" service answer them, then: robustjudge cache import RESULTS --ledger {options.ledger}, and run again with"
            f" --resume {folder.path}"
        )
    if not tally.rows:
        raise Inconclusive("the plan has no cell: no case passed the filters, so nothing was measured")
    return Run(folder, tally)


def fly(makes: Mapping[str, Callable[[], Coroutine[Any, Any, Any]]], options: Options | None = None) -> dict[str, Any]:
    """The results of steps run side by side with ledger, limits and caps, but no run folder: for what is no trial
    (shrinking, calibration, optimisers).  ``makes`` gives each its name.  Raises the first error of a step."""
    return in_loop(lambda: fly_async(makes, options or Options()))


async def fly_async(makes: Mapping[str, Callable[[], Coroutine[Any, Any, Any]]], options: Options) -> dict[str, Any]:
    """:func:`fly` on the current event loop."""
    from robustjudge.models.prices import table as price_table

    results: dict[str, Any] = {}

    def land(landed: Landed) -> None:
        results[landed.job.key] = landed.result

    async with AsyncExitStack() as last:
        writer = Writer()
        last.callback(writer.close)
        ledger = Ledger(writer, options.ledger, options.mode)
        last.callback(ledger.close)
        caps = Caps(options.max_calls, options.max_cost, price_table().highest)
        backend = Backend(
            _opener(options), ledger, services=options.services, rate=rater(), caps=caps, listener=options.listener
        )
        last.push_async_callback(backend.close)
        driver = AsyncDriver(backend, land, window=options.window or 64, listener=options.listener, fail_fast=True)
        await driver.run(Job(name, make) for name, make in makes.items())
    return results


class AttackFailed(RobustJudgeError):
    """``--fail-fast``: an attack raised, and this is its traceback."""


def _row(landed: Landed, cell: Cell, reader: str, store: str) -> Row:
    """The row of a finished trial; one that cannot be written (a plugin gave NaN, say) is an error row and says why."""
    try:
        return row_of(landed.result, landed.job.key, landed.trace, reader, store)
    except Exception as fault:
        fault.add_note(f"cell {landed.job.key}: what the trial gave has no row")
        return error_row(cell, landed.job.key, landed.trace, reader, "".join(traceback.format_exception(fault)))


async def flown(make: Callable[[], Coroutine[Any, Any, T]], models: Iterable[str], options: Options) -> T:
    """The result of any steps (a prompt search, say), answered with ledger, caps and limits but without a run folder.

    ``models`` are those that the steps may call; one that lacks a key is refused before anything is sent.
    """
    from robustjudge.models.prices import table as price_table

    opened = lru_cache(maxsize=None)(_opener(options))
    if options.mode != "replay-only":
        _ready(map(opened, models), options.services.values())
    box: list[Landed] = []
    async with AsyncExitStack() as last:
        writer = Writer()
        last.callback(writer.close)
        ledger = Ledger(writer, options.ledger, options.mode)
        last.callback(ledger.close)
        caps = Caps(options.max_calls, options.max_cost, price_table().highest)
        backend = Backend(opened, ledger, services=options.services, rate=rater(), caps=caps, listener=options.listener)
        last.push_async_callback(backend.close)
        driver = AsyncDriver(backend, box.append, window=1, listener=options.listener)
        await driver.run(iter([Job(options.slug, make)]))
    if box[0].error is not None:
        raise box[0].error
    result: T = box[0].result
    return result


def models_of_plan(plan: Plan) -> tuple[str, ...]:
    """Every model that a plan may call: of judges, defenses, surrogates and attackers, without repeats."""
    judges = [j for _, j in plan.judges]
    judges += [t.surrogate for t in plan.threats if t.surrogate is not None]
    guarded = [Guarded(judge, d) for _, d in plan.defenses if d is not None for judge in judges]
    names = [m for judge in (*judges, *guarded) for m in models_of(judge)]
    return tuple(dict.fromkeys([*names, *(t.attacker for t in plan.threats if t.attacker)]))


def _ready(models: Iterable[Any], services: Iterable[Any]) -> None:
    """Raise :class:`ConfigError` before anything is sent when a model or service lacks what it needs (a key)."""
    for thing in (*models, *services):
        check = getattr(thing, "check", None)
        if callable(check):
            check()


def rater(size: int = 8192) -> Callable[[str, Case, tuple[str, ...]], Any]:
    """Answers :class:`~robustjudge.asks.Measure` by the quality evaluators; the clean text is rated once."""
    from robustjudge.quality.base import rate

    @lru_cache(maxsize=size)
    def one(name: str, case: Case, text: str) -> float | None:
        return rate(name, case, text).value

    return lambda name, case, texts: tuple([one(name, case, t) for t in texts])


async def _fit(plan: Plan, backend: Backend, folder: Folder, listener: Listener) -> Plan:
    """Fit the universal attacks (or load what an earlier start of this run fitted) and return the plan with them."""
    from dataclasses import replace

    found: list[tuple[str, Any]] = list(plan.fitted)
    wanted = list(plan.fits())
    if not wanted:
        return plan
    train = [c for c in plan.cases() if (c.cluster or c.id) in plan.train]
    jobs = []
    for key, cell in wanted:
        file = folder.path / "artefacts" / artefact_name(key)
        kept = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        if kept.get("train") == [c.id for c in train]:
            found.append((key, load(kept["attack"])))
        else:
            jobs.append(Job(key, lambda cell=cell: fitting(cell, train)))  # type: ignore[misc]

    def land(landed: Landed) -> None:
        if landed.error is not None:
            raise ConfigError(f"{landed.job.key} could not be fitted: {landed.error}") from landed.error
        attack, spent = landed.result
        artefact = {
            "attack": dump(attack),
            "spent": {k: getattr(spent, k) for k in ("queries", "writes", "losses", "gradients")},
            "train": [c.id for c in train],
            "trace": landed.trace,
        }
        folder.write(f"artefacts/{artefact_name(landed.job.key)}", json.dumps(artefact, indent=2, sort_keys=True))
        found.append((landed.job.key, attack))

    await AsyncDriver(backend, land, window=1, listener=listener, fail_fast=True).run(iter(jobs))
    return replace(plan, fitted=tuple(found))


def _opener(options: Options) -> Callable[[str], Any]:
    from robustjudge.models.base import Settings
    from robustjudge.models.registry import open_model

    def opened(name: str) -> Any:
        given = options.models.get(name)
        if given is not None and not isinstance(given, Settings):
            return given
        return open_model(name, given if given is not None else Settings())

    return opened


def _concurrency(backend: Backend, plan: Plan) -> int:
    return max((backend.model(m).concurrency for _, j in plan.judges for m in models_of(j)), default=16)


def _journal(db: Any) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for cell, path, mark in db.execute("SELECT cell, path, mark FROM journal"):
        out.setdefault(cell, {})[path] = mark
    return out


def described(plan: Plan) -> dict[str, Any]:
    """What a plan is made of, as the manifest keeps it; the cases are told by ``inputs``."""
    return {
        "judges": {name: dump(judge) for name, judge in plan.judges},
        "defenses": {name: dump(d) for name, d in plan.defenses},
        "protocols": [dump(p) for p in plan.protocols],
        "attacks": [dump(a) for a in plan.attacks],
        "threats": [dump(t) for t in plan.threats],
        "seeds": list(plan.seeds),
        "evaluators": dict(plan.evaluators),
        "replicas": {"cleans": plan.cleans, "finals": plan.finals},
    }


def _write_manifest(
    folder: Folder,
    plan: Plan,
    options: Options,
    started: datetime,
    tally: Tally,
    state: str,
    backend: Backend | None = None,
) -> None:
    from robustjudge import __version__
    from robustjudge.scales import READER_VERSION

    old = folder.manifest()
    data = {
        "schema": "robustjudge.manifest/1",
        "state": state,
        "robustjudge": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "reader": READER_VERSION,
        "started": old.get("started", started.isoformat(timespec="seconds")),
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": dict(options.config) or old.get("config", {}),
        **described(plan),
        "inputs": dict(options.inputs) or old.get("inputs", {}),
        "truth": dict(options.truth) or old.get("truth", {}),
        "ledger_mode": options.mode,
        "counts": {
            "rows": tally.rows,
            "asked": tally.asked,
            "sent": tally.sent,
            "saved": tally.saved,
            "again": tally.again,
            "prompt_tokens": tally.prompt_tokens,
            "completion_tokens": tally.completion_tokens,
            "cost_usd": round(tally.cost, 6) if not tally.unpriced else None,
            "unpriced_calls": tally.unpriced,
            "faults": dict(tally.faults),
            "sent_by_role": dict(tally.sent_by_role),
            "sent_by_model": dict(tally.sent_by_model),
            "tokens_by_role": dict(tally.tokens_by_role),
            "tokens_run": backend.tokens_run() if backend is not None else {},
        },
        "starts": [*old.get("starts", []), started.isoformat(timespec="seconds")]
        if state == "running"
        else old.get("starts", []),
    }
    folder.write_manifest(data)
