"""The label table of one calibration: who said what of which item, sorted by what it may be used for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from robustjudge.errors import DataError
from robustjudge.measures.base import Ints, patterns
from robustjudge.profile.longform import BadLabel, LabelRow, Shelf, Told, gathered, owned
from robustjudge.spec import canonical

ABSENT = ""
"""In a pattern, the verdict of an item that the judge was not asked about; an unread verdict is None."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What was said of an item: a label of each rater (None: not labelled), the adjudication, and the verdict."""

    said: tuple[str | None, ...]
    adjudicated: str | None
    verdict: str | None
    stratum: str | None

    @property
    def labels(self) -> tuple[str, ...]:
        """The people's labels that were given, in the order of the raters."""
        return tuple(v for v in self.said if v is not None)

    @property
    def asked(self) -> bool:
        """Whether the judge was asked about the item."""
        return self.verdict != ABSENT


@dataclass(frozen=True)
class Groups:
    """The items by pattern: thousands of items have few patterns, and nearly every statistic needs only how many.

    ``kind[k]`` is the place in ``kinds`` of item ``items[k]``, ``sizes`` the number of items of each kind.
    """

    raters: tuple[str, ...]
    items: tuple[str, ...]
    kinds: tuple[Pattern, ...]
    kind: Ints
    sizes: tuple[int, ...]

    def counted(self) -> Iterable[tuple[Pattern, int]]:
        """Each pattern with its number of items."""
        return zip(self.kinds, self.sizes)


@dataclass(slots=True)
class Sitting:
    """What one person labelled in which place, column by column."""

    session: list[str] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    item: list[str] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)

    def add(
        self, session: str, items: Sequence[str], positions: Sequence[int | None], seconds: Sequence[float | None]
    ) -> None:
        """Labels of one session; those without a position are left out."""
        if None in positions:
            kept = [k for k, v in enumerate(positions) if v is not None]
            items, positions, seconds = ([c[k] for k in kept] for c in (items, positions, seconds))  # type: ignore[assignment]
        self.session += [session] * len(items)
        self.position += positions  # type: ignore[arg-type]
        self.item += items
        self.seconds += seconds

    def rows(self) -> list[tuple[str, int, str, float | None]]:
        """(session, position, item, seconds) in the order of the sittings."""
        return sorted(zip(self.session, self.position, self.item, self.seconds), key=itemgetter(0, 1, 2))


@dataclass
class Table:
    """First independent human labels, adjudications and judge verdicts by item; the rest is kept for the checks."""

    human: dict[str, dict[str, str]] = field(default_factory=dict)  # rater -> item -> label
    repeats: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # rater -> item -> later labels
    adjudicated: dict[str, str] = field(default_factory=dict)
    missing: dict[str, bool] = field(default_factory=dict)  # items with a person's row that holds no label
    verdicts: dict[str, str | None] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # the judge's probability of the positive label
    items: dict[str, None] = field(default_factory=dict)
    stratum: dict[str, str] = field(default_factory=dict)
    probability: dict[str, float] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)  # only where it is not the item itself
    attacked: dict[str, dict[str, str | None]] = field(default_factory=dict)  # attack -> item -> verdict
    sitting: dict[str, Sitting] = field(default_factory=dict)
    seen: dict[str, dict[str, int]] = field(default_factory=dict)  # rater -> label -> line of its first use
    types: Counter[str] = field(default_factory=Counter)
    typed: dict[str, int] = field(default_factory=dict)  # how a label is typed -> line of the first such one
    rejected: list[BadLabel] = field(default_factory=list)
    judge_id: str = ""

    @property
    def raters(self) -> tuple[str, ...]:
        return tuple(sorted(self.human))

    @cached_property
    def drawn(self) -> dict[str, None]:
        """The items that were given to people, labelled or not, in the order of the file."""
        given = {i for labels in self.human.values() for i in labels} | self.adjudicated.keys() | self.missing.keys()
        return {i: None for i in self.items if i in given}

    @cached_property
    def groups(self) -> Groups:
        """The items by what was said of them; made once, when the table is complete."""
        items = tuple(self.items)
        names = self.raters
        columns: list[Sequence[str | None]] = [
            *(list(map(self.human[r].get, items)) for r in names),
            list(map(self.adjudicated.get, items)),
            [self.verdicts.get(i, ABSENT) for i in items],
            list(map(self.stratum.get, items)),
        ]
        found, kind, sizes = patterns(columns, len(items))
        k = len(names)
        return Groups(names, items, tuple(Pattern(p[:k], p[k], p[k + 1], p[k + 2]) for p in found), kind, tuple(sizes))

    def drop(self, items: Iterable[str]) -> None:
        """Forget items (leaks) everywhere."""
        for made in ("groups", "drawn"):
            self.__dict__.pop(made, None)
        for item in items:
            self.items.pop(item, None)
            for given in self.human.values():
                given.pop(item, None)
            for later in self.repeats.values():
                later.pop(item, None)
            for under in self.attacked.values():
                under.pop(item, None)
            for store in (
                self.adjudicated,
                self.missing,
                self.verdicts,
                self.status,
                self.scores,
                self.stratum,
                self.probability,
                self.cluster,
            ):
                store.pop(item, None)


def collect(source: Path | Iterable[LabelRow | BadLabel]) -> Table:
    """Sort rows into a table; duplicates are an error with their lines, before any computation."""
    made = _Collector(source.name if isinstance(source, Path) else "")
    for found in gathered(source, made.shelves) if isinstance(source, Path) else source:
        if isinstance(found, BadLabel):
            made.table.rejected.append(found)
        else:
            made.row(found)
    return made.done()


Store: TypeAlias = tuple[dict[str, Any], Any]
"""A dictionary by item, and what to put there."""


class _Collector:
    """Fills a table.  Rows whose tail was seen before are only gathered, and go to their stores all at once."""

    def __init__(self, file: str = "") -> None:
        self.file = file
        self.table = Table()
        self.lines: dict[tuple[str, ...], dict[str, int]] = {}  # series -> item -> line
        self.shelves: list[Shelf] = []
        self.doubled: list[str] = []
        self.torn: list[str] = []
        self.judges: set[str] = set()

    def gathered(self, shelf: Shelf) -> None:
        """Put the gathered rows of one tail where they belong."""
        t, row, items = self.table, shelf.row, shelf.items
        numbers = owned(shelf.cells)
        if numbers is None:  # some of them cannot be used
            for found in shelf.rows(self.file):
                if isinstance(found, BadLabel):
                    t.rejected.append(found)
                else:
                    self.row(found)
            return
        lines, new = self.lines[row.series], dict(zip(items, shelf.lines))
        if len(new) < len(items) or not lines.keys().isdisjoint(new):
            for item, line in zip(items, shelf.lines):
                if lines.setdefault(item, line) != line:
                    self.twice(item, row.rater_id, lines[item], line)
        else:
            lines.update(new)
        if not new.keys() <= t.items.keys():
            t.items.update(dict.fromkeys(new))
        for store, value in self.stores(row):
            if store.keys().isdisjoint(new):
                store.update(dict.fromkeys(new, value))
            elif list(map(store.get, new)).count(value) < len(new):
                for item, line in new.items():
                    if store.setdefault(item, value) != value:
                        self.other(store, item, value, line)
        if row.label is not None:
            t.types[row.label_type] += len(new)
        seconds, positions, scores = numbers
        if row.rater_kind == "judge":
            t.scores.update((i, v) for i, v in zip(items, scores) if v is not None)
        elif row.rater_kind == "human" and row.label is not None and row.stage == "independent":
            t.sitting.setdefault(row.rater_id, Sitting()).add(row.session, items, positions, seconds)

    def row(self, row: LabelRow) -> None:
        """A whole row."""
        item, t = row.item, self.table
        lines = self.lines.setdefault(row.series, {})
        if lines.setdefault(item, row.line) != row.line:
            self.twice(row.item_id, row.rater_id, lines[item], row.line)
            return
        if row.label is not None:
            who = row.rater_id if row.rater_kind == "human" else row.rater_kind
            t.seen.setdefault(who, {}).setdefault(row.label, row.line)
            t.types[row.label_type] += 1
            t.typed.setdefault(row.label_type, row.line)
        t.items.setdefault(item)
        for store, value in self.stores(row):
            if store.setdefault(item, value) != value:
                self.other(store, item, value, row.line)
        self.owned(row, item, (row.seconds, row.position, row.score))

    def stores(self, row: LabelRow) -> tuple[Store, ...]:
        """What a row says of its item, beside what is its own."""
        t, label = self.table, row.label
        out: list[Store] = []
        if row.stratum:
            out.append((t.stratum, row.stratum))
        if row.inclusion_prob is not None:
            out.append((t.probability, row.inclusion_prob))
        if row.cluster and row.cluster != row.item_id:
            out.append((t.cluster, row.cluster))
        if row.rater_kind == "judge":
            self.judges.add(row.rater_id)
            if row.attack:
                out.append((t.attacked.setdefault(row.attack, {}), label))
            elif row.repeat == 0:
                status = row.status if label is not None or row.status != "ok" else "unparsed"
                out += [(t.verdicts, label), (t.status, status)]
        elif label is None:
            out.append((t.missing, True))
        elif row.rater_kind == "adjudicated":
            out.append((t.adjudicated, label))
        elif row.stage == "independent" and row.repeat == 0:
            out.append((t.human.setdefault(row.rater_id, {}), label))
        return tuple(out)

    def owned(self, row: LabelRow, item: str, own: Told) -> None:
        """A row's place in the sitting, its repeats and its score."""
        t, (seconds, position, score) = self.table, own
        if row.rater_kind == "judge":
            if score is not None and not row.attack and row.repeat == 0:
                t.scores.setdefault(item, score)
        elif row.rater_kind == "human" and row.label is not None and row.stage == "independent":
            if row.repeat:
                t.repeats.setdefault(row.rater_id, {}).setdefault(item, []).append(row.label)
            if position is not None:
                t.sitting.setdefault(row.rater_id, Sitting()).add(row.session, (item,), (position,), (seconds,))

    def twice(self, item: str, rater: str, first: int, second: int) -> None:
        self.doubled.append(f"{item} by {rater} in lines {first} and {second}")

    def other(self, store: dict[str, Any], item: str, value: Any, line: int) -> None:
        """Rows of one item contradict each other about the item itself; of several verdicts the first counts."""
        t = self.table
        for name, held in (("stratum", t.stratum), ("inclusion_prob", t.probability), ("cluster", t.cluster)):
            if store is held:
                self.torn.append(f"{name} of {item} is {held[item]!r} and, in line {line}, {value!r}")

    def done(self) -> Table:
        """The table, or the error that names what was found twice."""
        for shelf in self.shelves:
            self.gathered(shelf)
        if self.shelves:
            self.table.rejected.sort(key=lambda bad: bad.line)
        for what, found in (("labelled twice", self.doubled), ("items described in two ways", self.torn)):
            if found:
                more = f" and {len(found) - 5} more" if len(found) > 5 else ""
                raise DataError(f"{what}: {'; '.join(found[:5])}{more}")
        if len(self.judges) > 1:
            found = sorted(self.judges)
            some = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            hint = "; are item_id and rater_id exchanged?" if len(found) > 5 else ""
            raise DataError(f"one profile describes one judge, but the file holds {some}{hint}")
        self.table.judge_id = next(iter(self.judges), "").removeprefix("judge:")
        return self.table


def address(t: Table) -> str:
    """Content hash of the labels, for tables that came from no file."""
    body = canonical({"human": t.human, "adjudicated": t.adjudicated, "verdicts": t.verdicts})
    return sha256(body.encode()).hexdigest()


def anchors(t: Table) -> str:
    """Hash of what people said of which items: it names a frozen anchor set, whatever judge is held against it."""
    g = t.groups
    said = [canonical([p.said, p.adjudicated]) if p.labels or p.adjudicated is not None else "" for p in g.kinds]
    lines = sorted(f"{item}\x1e{text}" for item, k in zip(g.items, g.kind.tolist()) if (text := said[k]))
    return sha256("\x1d".join([*g.raters, *lines]).encode("utf-8", "surrogatepass")).hexdigest()
