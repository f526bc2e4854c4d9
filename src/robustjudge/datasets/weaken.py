"""Gives cases their weak response and distractors by rule: spoil the reference, verify, set aside what fails."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

from robustjudge.datasets.base import Quality, Row, SetAside
from robustjudge.datasets.degrade import defects, degrade
from robustjudge.datasets.verify import verify
from robustjudge.nouns import Case, Weak
from robustjudge.spec import digest

DISTRACTORS = 8
"""Distractors of best-of-10: ten candidates less the response and the reference."""

NONE_LEFT = "no weak candidate could be verified"


class Pool:
    """Good texts of other cases, at most ``size`` per kind and language, chosen by hash and not by order.

    Flat in memory; equal for a file and any re-ordering of it; independent of how many cases are asked for.
    """

    def __init__(self, rows: Iterable[Row] = (), size: int = 32) -> None:
        self._size = size
        self._kept: dict[tuple[str, ...], list[tuple[int, str, str, str]]] = {}
        for row in rows:
            if isinstance(row, Case) and row.reference.strip():
                self._add(row)

    @staticmethod
    def _group(case: Case) -> tuple[str, ...]:
        return case.kind, case.language, case.get("code_language") if case.kind.startswith("code") else ""

    def _add(self, case: Case) -> None:
        kept = self._kept.setdefault(self._group(case), [])
        entry = (-int(digest("pool", case.id), 16), case.id, case.cluster or case.id, case.reference)
        if len(kept) < self._size:
            heapq.heappush(kept, entry)
        elif entry > kept[0]:
            heapq.heapreplace(kept, entry)

    def others(self, case: Case, seed: int = 0, n: int = 4) -> tuple[str, ...]:
        """Up to ``n`` good texts of other clusters than the case's, in an order of its own."""
        fit = [e for e in self._kept.get(self._group(case), ()) if e[2] != (case.cluster or case.id)]
        fit.sort(key=lambda e: digest(str(seed), case.id, e[1]))
        texts = dict.fromkeys(e[3] for e in fit if e[3].strip() != case.reference.strip())
        return tuple(texts)[:n]


def weaken(
    rows: Iterable[Row], pool: Pool, *, quality: Quality | None = None, seed: int = 0, distractors: int = DISTRACTORS
) -> Iterator[Row]:
    """Cases with a weak response (where they have none) and up to ``distractors`` distractors of different defects.

    Fewer verified defects give fewer distractors: the best-of-K size of a case is ``2 + len(distractors)``.  Every
    failed candidate is yielded as :class:`SetAside`; a case left without a response is one too, and no case.
    Case id, defect and seed decide everything, so asking for more never changes what was there.
    """
    for row in rows:
        if isinstance(row, Case) and row.reference.strip():
            yield from _weaken(row, pool.others(row, seed), quality, seed, distractors)
        elif isinstance(row, Case) and not row.response.strip():
            yield SetAside(row.id, "", "no reference to make a weak candidate from")
        else:
            yield row


def _weaken(case: Case, others: tuple[str, ...], quality: Quality | None, seed: int, wanted: int) -> Iterator[Row]:
    made: list[Weak] = []
    missing = not case.response.strip()
    taken = {_plain(t) for t in (case.response, *case.references, *(d.text for d in case.distractors))}
    room = max(0, wanted - len(case.distractors)) + missing
    for defect in sorted(defects(case.kind), key=lambda d: digest("order", str(seed), case.id, d.name)):
        if len(made) == room:
            break
        text = degrade(case, defect.name, seed=seed, others=others)
        if text is None or _plain(text) in taken:
            continue
        check = verify(case, text, defect, quality=quality, others=others)
        if check.ok:
            taken.add(_plain(text))
            made.append(Weak(text, defect.name, check.method))
        else:
            yield SetAside(case.id, defect.name, check.reason)
    if not missing:
        yield replace(case, distractors=(*case.distractors, *made)) if made else case
    elif made:
        first, *rest = made
        yield replace(
            case,
            response=first.text,
            defect=first.defect,
            verified=first.verified,
            distractors=(*case.distractors, *rest),
            meta=tuple(sorted((*case.meta, ("weak_seed", str(seed)), ("weak_source", "rules")))),
        )
    else:
        yield SetAside(case.id, "", NONE_LEFT)


def _plain(text: str) -> str:
    return " ".join(text.split())
