"""The queue: failures that need a person and generated inputs that wait for approval, gravest first, by content hash."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from robustjudge.engine.folder import Folder
from robustjudge.errors import ConfigError, DataError, UnknownName
from robustjudge.gate.decide import look
from robustjudge.gate.evidence import evidence, subjects
from robustjudge.gate.failures import Outcome
from robustjudge.gate.people import certainty, content_hash, needs_person
from robustjudge.gate.policy import SEVERITIES, Policy
from robustjudge.review.store import INPUT, Event, Store
from robustjudge.variants import Variant, append_variants, read_variants

Kind = Literal["failure", "swing", "generated"]

SIZE = 50
GRAVITY = {name: i for i, name in enumerate(reversed(SEVERITIES))}
STATUS = {"approve": "approved", "edit": "edited", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to decide on.  ``id`` is its content hash; ``cell`` and ``run`` lead to the trial behind a failure,
    ``file`` to the review file of a generated input.  ``swing`` in scale units (``None``: no verdict).  ``origin`` says who
    wrote a generated input, ``checked`` how it was found to keep the response's content."""

    id: str
    kind: Kind
    severity: str
    category: str
    case: str
    attack: str
    judge: str = ""
    defense: str = ""
    protocol: str = ""
    swing: float | None = None
    rules: str = ""
    sure: str = ""
    run: str = ""
    cell: str = ""
    file: str = ""
    text: str = ""
    expected: float | None = None
    status: str = ""
    origin: str = ""
    checked: str = ""

    def waits(self, decided: Set[str]) -> bool:
        """Whether nobody has decided on it, here or in its review file."""
        return self.id not in decided and self.status in ("", "pending")


@dataclass(frozen=True)
class Page:
    """A page of the queue: items with the decision that stands for each, and the counts of the whole queue."""

    items: tuple[tuple[Item, Event | None], ...]
    matching: int
    waiting: int
    total: int
    number: int

    @property
    def last(self) -> int:
        return max(0, (self.matching - 1) // SIZE)


def findings(run: Path, policy: Policy | None = None, least: str = "critical") -> tuple[Item, ...]:
    """The findings of every judge of a run that need a person, and failures of severity ``least`` or graver; behind the
    defense that the policy ships, for no other is decided on by the gate."""
    if least not in SEVERITIES:
        raise ConfigError(f"severity is one of {', '.join(SEVERITIES)}, not {least!r}")
    path = Folder.open(run).path
    policy = policy or Policy()
    out: dict[str, Item] = {}
    there = subjects(path)
    if there and policy.defense not in (held := {d for _, d in there}):
        raise UnknownName("defense", policy.defense, tuple(sorted(held)))
    for judge in [j for j, d in there if d == policy.defense]:
        e = evidence(path, judge, policy.defense)
        for o in look(e, policy).outcomes:
            grave = o.counts and GRAVITY[o.trial.severity] <= GRAVITY[least]
            if grave or needs_person(o, policy.high_stakes):
                item = _finding(content_hash(e, o.trial), o, path)
                out.setdefault(item.id, item)
    return tuple(out.values())


def _finding(name: str, o: Outcome, run: Path) -> Item:
    t = o.trial
    return Item(
        name,
        "failure" if o.failed else "swing",
        t.severity,
        t.category,
        t.case_id,
        t.attack,
        t.judge,
        t.defense,
        t.protocol,
        o.score_delta,
        ", ".join(o.rules),
        certainty(o),
        str(run),
        t.cell,
    )


def generated(files: Iterable[Path]) -> tuple[Item, ...]:
    """The generated inputs of review files, but those that no person had to approve."""
    return tuple(
        [_generated(v, f) for f in files for v in read_variants(f).values() if v.status != "approved" or v.who]
    )


def _generated(v: Variant, file: Path) -> Item:
    more: dict[str, Any] = {"file": str(file), "text": v.text, "expected": v.expected, "status": v.status}
    more |= {"origin": f"{v.source} {v.model}".strip(), "checked": v.reason if v.who and not v.when else v.content}
    return Item(v.id, "generated", v.severity, v.category, v.case, v.attack, **more)


class Queue:
    """Items in a fixed order over a store of decisions.  An edited input adds the input it became, approved."""

    def __init__(self, items: Sequence[Item], store: Store) -> None:
        self.store = store
        order = sorted(items, key=lambda i: (GRAVITY.get(i.severity, 9), -abs(i.swing or 0.0), i.case, i.attack, i.id))
        self._by: dict[str, Item] = {}
        for i in order:
            self._by.setdefault(i.id, i)
        self._lock = threading.Lock()
        self._sync()

    def __len__(self) -> int:
        return len(self._by)

    def item(self, name: str) -> Item | None:
        return self._by.get(name)

    def page(self, number: int = 0, show: str = "waiting", kind: str = "", severity: str = "") -> Page:
        """Page ``number`` (from 0) of the items that are ``waiting``, ``decided`` or ``all``."""
        decided = self.store.decided()
        by = self._by
        waits = {i.id for i in by.values() if i.waits(decided)}
        found = [
            i
            for i in by.values()
            if (show == "all" or (i.id in waits) == (show == "waiting"))
            and (not kind or i.kind == kind)
            and (not severity or i.severity == severity)
        ]
        number = max(0, min(number, (len(found) - 1) // SIZE))
        part = found[number * SIZE : (number + 1) * SIZE]
        standing = self.store.standing([i.id for i in part])
        pairs = tuple([(i, standing.get(i.id)) for i in part])
        return Page(pairs, len(found), len(waits), len(by), number)

    def after(self, name: str) -> str:
        """The next item that waits, from ``name`` on and then from the start; empty when none does."""
        decided = self.store.decided()
        by = self._by
        names = list(by)
        start = names.index(name) + 1 if name in by else 0
        turned = (*names[start:], *names[:start])
        return next((n for n in turned if by[n].waits(decided) and n != name), "")

    def decide(self, item: Item, seen: int, decision: str, who: str, note: str = "", content: str = "") -> Event:
        """Store a decision and, for a generated input, write it into its review file."""
        allowed = INPUT if item.kind == "generated" else ("confirm", "dismiss", "redesign", "other")
        if decision not in allowed:
            raise ConfigError(f"this item is decided by one of {', '.join(allowed)}, not {decision!r}")
        if decision == "edit" and not content.strip():
            raise ConfigError("an edited input needs a text")
        event = self.store.decide(item.id, seen, decision, who, note, content.replace("\r\n", "\n"))
        if item.kind == "generated":
            self._write(item, event)
        return event

    def _write(self, item: Item, event: Event) -> None:
        path = Path(item.file)
        held = read_variants(path).get(item.id)
        if held is None:
            raise DataError(f"{path}: the file no longer holds this input; your decision is in the trail")
        lines = held.decided(STATUS[event.decision], event.who, event.at, event.note, event.content)
        append_variants(path, lines)
        with self._lock:  # replaced, never changed: other threads may be reading the old one
            self._by = {**self._by, **{v.id: _generated(v, path) for v in lines}}

    def _sync(self) -> None:
        """Write into the review files what was decided but not yet written when a process ended."""
        standing = self.store.standing()
        held: dict[str, dict[str, Variant]] = {}
        for item in tuple(self._by.values()):
            event = standing.get(item.id)
            if item.kind != "generated" or event is None:
                continue
            if item.file not in held:
                held[item.file] = read_variants(Path(item.file))
            v = held[item.file][item.id]
            if (v.who, v.when) != (event.who, event.at):
                self._write(item, event)

    def export(self) -> Iterable[Mapping[str, Any]]:
        """Every item with the decision that stands and its whole trail."""
        trails: dict[str, list[Event]] = {}
        for e in self.store.events():
            trails.setdefault(e.item, []).append(e)
        for i in self._by.values():
            trail = sorted(trails.get(i.id, []), key=lambda e: e.version)
            stands = next((e for e in reversed(trail) if e.applied and e.decision != "note"), None)
            said = None if stands is None else _told(stands)
            yield {**asdict(replace(i, run=Path(i.run).name)), "decision": said, "trail": [_told(e) for e in trail]}


def _told(e: Event) -> dict[str, Any]:
    return {k: v for k, v in asdict(e).items() if k != "item"}
