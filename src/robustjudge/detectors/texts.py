"""Texts to calibrate and evaluate a detector on: from a file of yours, or the built-in cases.

Calibration, evaluation and attack development never share a case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robustjudge.attacks.base import NoCandidate
from robustjudge.attacks.packs import pack
from robustjudge.attacks.text import TextAttack
from robustjudge.datasets.base import BadRow
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.files import records
from robustjudge.datasets.hard_benign import hard_benign
from robustjudge.datasets.held_out import fresh_benign, payloads
from robustjudge.defenses.calibration import Sample
from robustjudge.defenses.classifier import learned_from, learned_from_hard
from robustjudge.door import safe
from robustjudge.errors import DataError
from robustjudge.nouns import Case
from robustjudge.spec import digest

FAMILIES = ("H1", "H2", "H3", "H4", "H5", "H6", "E9")
"""The payload packs whose held-out wordings a detector is tried on unless others are asked for."""

LABELS = ("benign", "hard_benign", "attacked")
COLUMNS = ("text", "label", "group", "task", "kind", "language", "case")


@dataclass(frozen=True)
class Texts:
    """Honest texts, honest texts that look like attacks (by kind), and attacked ones (by family)."""

    benign: tuple[Sample, ...] = ()
    hard: dict[str, tuple[Sample, ...]] = field(default_factory=dict)
    attacked: dict[str, tuple[Sample, ...]] = field(default_factory=dict)

    @property
    def every_hard(self) -> tuple[Sample, ...]:
        """Hard-benign texts of all kinds."""
        return tuple(s for group in self.hard.values() for s in group)

    def only(self, keep: Iterable[bool]) -> Texts:
        """The texts whose flag is set, in the order benign, hard, attacked."""
        flags = iter(list(keep))

        def kept(group: Sequence[Sample]) -> tuple[Sample, ...]:
            return tuple(s for s in group if next(flags))

        benign = kept(self.benign)
        hard = {k: kept(g) for k, g in self.hard.items()}
        attacked = {k: kept(g) for k, g in self.attacked.items()}
        return Texts(benign, {k: g for k, g in hard.items() if g}, {k: g for k, g in attacked.items() if g})

    def each(self) -> tuple[Sample, ...]:
        """Every text, in the order benign, hard, attacked."""
        return (*self.benign, *self.every_hard, *(s for group in self.attacked.values() for s in group))


def read(path: Path) -> tuple[Texts, tuple[BadRow, ...]]:
    """Texts of a JSONL, CSV or TSV file, and the rows that cannot be used.

    Columns: ``text``; ``label`` (benign, hard_benign or attacked; default benign); ``group`` (kind of hard-benign text or
    attack family); ``task``, ``kind`` and ``language`` of the case; ``case``, which groups texts that belong together.
    """
    groups: dict[str, dict[str, list[Sample]]] = {label: {} for label in LABELS}
    bad: list[BadRow] = []
    for record in records(path):
        if isinstance(record, BadRow):
            bad.append(record)
            continue
        line, row = record
        why = _fault(row)
        if why:
            bad.append(BadRow(str(path), line, None, why, f"columns {', '.join(COLUMNS)}"))
            continue
        given = {k: safe(str(row.get(k) or "")) for k in COLUMNS}
        label = given["label"] or "benign"
        sample = Sample(
            given["text"],
            given["task"],
            given["kind"] or "open",
            given["language"] or "en",
            given["case"] or f"line {line}",
        )
        groups[label].setdefault(given["group"] or label, []).append(sample)
    if not any(groups.values()):
        raise DataError(f"{path}: no row can be used" + (f"; the first: {bad[0]}" if bad else ""))
    hard, attacked = ({k: tuple(v) for k, v in groups[x].items()} for x in ("hard_benign", "attacked"))
    return Texts(tuple(s for g in groups["benign"].values() for s in g), hard, attacked), tuple(bad)


def _fault(row: dict[str, object]) -> str:
    unknown = sorted(set(row) - set(COLUMNS))
    if unknown:
        return f"unknown column {unknown[0]!r}"
    if not isinstance(row.get("text"), str):
        return "the column text is missing or no text"
    if row.get("label") not in (None, "", *LABELS):
        return f"label {row['label']!r} is none of {', '.join(LABELS)}"
    return ""


# --------------------------------------------------------------------------- the built-in cases


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Two disjoint halves of the clusters, drawn by hash: adding a case moves no other."""
    sides: tuple[list[Case], list[Case]] = ([], [])
    for case in cases:
        sides[_side(case.cluster or case.id)].append(case)
    return sides


def _side(name: str) -> int:
    return int(digest("detector half", name)[:8], 16) % 2


def honest(cases: Iterable[Case]) -> list[Sample]:
    """Weak responses, distractors and references: what honest authors send."""
    out = []
    for c in cases:
        for text in dict.fromkeys((c.response, *c.references, *(w.text for w in c.distractors))):
            out.append(Sample(text, c.task, c.kind, c.language, c.cluster or c.id))
    return out


def hard_halves(skip: Iterable[str] = ()) -> tuple[dict[str, tuple[Sample, ...]], dict[str, tuple[Sample, ...]]]:
    """The hard-benign texts by kind in two disjoint halves, drawn by hash; ``skip`` are ids to leave out."""
    left_out = frozenset(skip)
    sides: tuple[dict[str, list[Sample]], dict[str, list[Sample]]] = ({}, {})
    for b in hard_benign():
        if b.id not in left_out:
            sides[_side(b.id)].setdefault(b.kind, []).append(Sample(b.text, language=b.language, cluster=b.id))
    first, second = ({k: tuple(v) for k, v in side.items()} for side in sides)
    return first, second


def attacked(cases: Iterable[Case], family: str) -> list[Sample]:
    """The weak responses with a held-out wording of a payload pack, one per case."""
    out = []
    for i, c in enumerate(cases):
        made = TextAttack(family, group="held_out" if pack(family).held_out else "all", seed=i)
        try:
            text = made.applied(c)
        except NoCandidate:
            continue
        out.append(Sample(text, c.task, c.kind, c.language, c.cluster or c.id))
    return out


def spoken(texts: Texts, languages: Iterable[str]) -> Texts:
    """The texts in ``languages``: a calibrated detector refuses the others."""
    known = frozenset(languages)
    return texts.only(s.language in known for s in texts.each())


def development() -> Texts:
    """What the shipped thresholds were calibrated on: honest texts of half of the cases, and of the hard-benign set,
    without those that the shipped classifier learned from."""
    first, _ = halves([c for c in builtin() if not learned_from(c.id)])
    hard: dict[str, list[Sample]] = {}
    for b in hard_benign():
        if not learned_from_hard(b.id):
            hard.setdefault(b.kind, []).append(Sample(b.text, language=b.language, cluster=b.id))
    return Texts(tuple(honest(first)), {k: tuple(v) for k, v in hard.items()})


def held_out() -> Texts:
    """What nothing was fitted on: honest texts of the other half of the cases, the hard-benign texts and the payload
    families that were written after the freeze, each payload beside a weak response of such a case in its language."""
    _, second = halves([c for c in builtin() if not learned_from(c.id)])
    hard: dict[str, list[Sample]] = {}
    for b in fresh_benign():
        hard.setdefault(b.kind, []).append(Sample(b.text, language=b.language, cluster=b.id))
    bad: dict[str, list[Sample]] = {}
    for i, p in enumerate(payloads()):
        cases = [c for c in second if c.language == p.language] or second
        c = cases[i % len(cases)]
        sample = Sample(p.applied(c.response), c.task, c.kind, c.language, c.cluster or c.id)
        bad.setdefault(p.family, []).append(sample)
    return Texts(tuple(honest(second)), {k: tuple(v) for k, v in hard.items()}, {k: tuple(v) for k, v in bad.items()})
