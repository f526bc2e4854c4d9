"""Seeded degraders: spoil the reference of a case with one named defect."""

from __future__ import annotations

from random import Random

from robustjudge.datasets import answers
from robustjudge.datasets.base import ANSWER_KINDS
from robustjudge.datasets.defects import code, text, worked
from robustjudge.datasets.defects.base import Defect, Material
from robustjudge.errors import UnknownName
from robustjudge.nouns import Case
from robustjudge.spec import digest

_CODE_KINDS = ("code_translation", "code_generation")


def defects(kind: str) -> tuple[Defect, ...]:
    """The defects that fit a kind of task."""
    if kind in ANSWER_KINDS:
        return worked.DEFECTS
    return code.DEFECTS if kind in _CODE_KINDS else text.DEFECTS


def defect(kind: str, name: str) -> Defect:
    """The defect ``name`` of a kind; :class:`UnknownName` with near names otherwise."""
    known = {d.name: d for d in defects(kind)}
    if name not in known:
        raise UnknownName(f"defect of {kind}", name, tuple(known))
    return known[name]


def material(case: Case, others: tuple[str, ...] = ()) -> Material:
    """What there is to spoil in ``case``; ``others`` are good texts of other cases of its kind and language."""
    form = case.get("answer_form") or (answers.form(case.task) if case.kind in ANSWER_KINDS else "")
    return Material(
        good=case.reference,
        task=case.task,
        language=case.language,
        code_language=case.get("code_language").capitalize() if case.kind in _CODE_KINDS else "",
        others=tuple(o for o in others if o.strip() and o.strip() != case.reference.strip()),
        foreign=case.get("original") if case.kind in ("translation", "code_translation") else "",
        gold=case.get("gold") or answers.last(case.reference, form),
        form=form,
    )


def degrade(case: Case, name: str, *, seed: int = 0, others: tuple[str, ...] = ()) -> str | None:
    """The reference of ``case`` spoilt by the defect ``name``, the same for the same case id, defect and seed.

    ``None`` where the defect finds no hold (no number to change, no other case); never the reference itself, never
    blank.  Total on any Unicode text.
    """
    if not case.reference.strip():
        return None
    spoilt = defect(case.kind, name).spoil(material(case, others), Random(int(digest(str(seed), case.id, name), 16)))
    if spoilt is None or not spoilt.strip() or spoilt.split() == case.reference.split():
        return None
    return spoilt
