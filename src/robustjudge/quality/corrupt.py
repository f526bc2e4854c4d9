"""Seeded damage to a good text, by a stated share: the rungs of the corruption ladder.

Damage is nested: what is damaged at 10 % is also damaged at 25 %, so an evaluator's answer can only be blamed on more
damage, never on other damage.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from fractions import Fraction

from robustjudge.nouns import Case
from robustjudge.quality import answers, consistency
from robustjudge.quality.forms import number
from robustjudge.quality.rouge import tokens

LEVELS = (0.0, 0.10, 0.25, 0.50, 1.0)
ANSWER_KINDS = frozenset({"mathematics", "knowledge", "logic"})
"""Kinds rated by their final answer: a rung damages the answer of that share of cases, not a share of each text."""

_WORD = re.compile(r"\S+")


def words(text: str, share: float, pool: Sequence[str], seed: int) -> str:
    """``text`` with ``share`` of its words (characters of a script without spaces) replaced by words of ``pool``."""
    spans = [m.span() for m in _WORD.finditer(text)]
    if len(spans) < 6 and len(tokens(text)) > 2 * len(spans):
        spans = [(i, i + 1) for i, c in enumerate(text) if not c.isspace()]
    rng = random.Random(seed)
    order = rng.sample(range(len(spans)), len(spans))
    fill = {i: rng.choice(pool) for i in order} if pool else {}
    hit = set(order[: round(share * len(spans))])
    out, at = [], 0
    for i, (start, end) in enumerate(spans):
        old = text[start:end]
        new = fill.get(i, old[::-1]) if i in hit else old
        out += [text[at:start], new if end - start > 1 or not pool else new[:1]]
        at = end
    return "".join([*out, text[at:]])


def final_answer(case: Case, text: str) -> str | None:
    """``text`` with its final answer replaced by another of the same form, or ``None`` when it has none."""
    if case.kind == "logic":
        found = consistency.conclusion(case.task, text)
    else:
        found = answers.extract(case.task, text, case.kind)
    if found is None:
        return None
    return text[: found.start] + _other(found.text, text[found.start : found.end]) + text[found.end :]


def _other(form: str, source: str) -> str:
    if re.fullmatch(r"(?:yes|no)(?:, (?:yes|no))+", form):
        first, _, rest = form.partition(", ")
        return f"{'no' if first == 'yes' else 'yes'}, {rest}"
    if re.fullmatch(r"[A-J]", form):
        other = "B" if form == "A" else "A"
        return source.replace(form, other) if form in source else other
    value = number(form)
    if value is not None:
        changed = value + 1
        return str(changed) if changed.denominator == 1 else str(_decimal(changed))
    return f"1 + {source}" if re.search(r"[\d\\^]", source) else f"not {source}"


def _decimal(value: Fraction) -> str:
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def rungs(case: Case, position: float, pool: Sequence[str], seed: int) -> tuple[str | None, ...]:
    """The reference of ``case`` at each of :data:`LEVELS`.  ``position`` in (0, 1] is the case's place in the nested
    order of an answer kind: its answer is damaged from the first level that reaches it."""
    if case.kind in ANSWER_KINDS:
        damaged = final_answer(case, case.reference)
        return tuple(damaged if level >= position else case.reference for level in LEVELS)
    return tuple(words(case.reference, level, pool, seed) for level in LEVELS)
