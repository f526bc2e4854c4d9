"""``quality check``: is an evaluator fit to measure content? (tasks.md section 5.6)

Five checks on the references of a set of cases: monotone on a corruption ladder, invariant to whitespace with the
reference as its own maximum, deterministic, sensitivity to attack text (reported, no threshold), and agreement in
direction with people (:mod:`robustjudge.quality.directions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, Rating, change, default_evaluator, evaluator, rate
from robustjudge.quality.codebleu import language_of
from robustjudge.quality.corrupt import LEVELS, rungs
from robustjudge.quality.directions import Agreement, Direction, agreement
from robustjudge.spec import digest

LIMIT = -0.8
"""Spearman's rank correlation of damage and quality must not lie above this."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Mean dQ of one attack text appended to the reference, over ``n`` cases; ``None`` with no known pair."""

    payload: str
    mean: float | None
    n: int
    unknown: int


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """What the ladder found for one task kind and its evaluator.

    ``means[i]`` is the mean quality at ``LEVELS[i]`` over the ``n`` cases known at every level; ``unknown`` counts the
    others, with their reasons.  ``faults`` lists every failed check in words; empty means fit.
    """

    kind: str
    evaluator: str
    n: int
    unknown: int
    reasons: tuple[tuple[str, int], ...]
    means: tuple[float, ...]
    spearman: float | None
    self_is_max: bool
    whitespace_invariant: bool
    deterministic: bool
    sensitivity: tuple[Sensitivity, ...]
    faults: tuple[str, ...]

    @property
    def fit(self) -> bool:
        return not self.faults


@dataclass(frozen=True, slots=True)
class Check:
    """The whole result of ``quality check``: one entry per task kind, and agreement with people per subset."""

    tasks: tuple[TaskCheck, ...]
    directions: tuple[Agreement, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether every task has an evaluator that passed (agreement with people is reported, not judged)."""
        return bool(self.tasks) and all(t.fit for t in self.tasks)


def check(
    cases: Sequence[Case],
    *,
    evaluators: Mapping[str, Evaluator] | None = None,
    payloads: Mapping[str, str] | None = None,
    directions: Sequence[Direction] = (),
    seed: int = 0,
) -> Check:
    """Run all checks.  ``evaluators``: task kind -> evaluator (default :func:`default_evaluator`); ``payloads``: name
    -> attack text.  Raises :class:`~robustjudge.quality.base.MetricUnavailable` before any rating."""
    kinds = sorted({c.kind for c in cases})
    chosen = {k: (evaluators or {}).get(k) or evaluator(default_evaluator(k)) for k in kinds}
    for one in chosen.values():
        one.ready()
    tasks = tuple(_task(k, chosen[k], [c for c in cases if c.kind == k], payloads or {}, seed) for k in kinds)
    return Check(tasks, agreement(directions, cases, chosen))


def _task(kind: str, judge: Evaluator, cases: list[Case], payloads: Mapping[str, str], seed: int) -> TaskCheck:
    order = sorted(cases, key=lambda c: digest(str(seed), c.id))
    table: list[list[float]] = []
    reasons: dict[str, int] = {}
    same_space = deterministic = True
    for i, case in enumerate(order):
        pool = [w for c in order if c.id != case.id for w in c.reference.split()[:40]]
        texts = rungs(case, (i + 1) / len(order), pool, seed + i)
        row = [rate(judge, case, t) if t is not None else _no_answer(judge) for t in texts]
        rung = i % len(texts)  # one rung of each case is rated again: every rung is covered by the set
        text = texts[rung]
        deterministic = deterministic and (text is None or rate(judge, case, text) == row[rung])
        missing = next((r for r in row if r.value is None), None)
        if missing is not None:
            reasons[missing.reason] = reasons.get(missing.reason, 0) + 1
            continue
        table.append([r.value for r in row if r.value is not None])
        spaced = rate(judge, case, respaced(case.reference, code=kind.startswith("code")))
        same_space = same_space and spaced.value is not None and abs(spaced.value - table[-1][0]) <= 1e-6
    means = tuple(sum(column) / len(table) for column in zip(*table)) if table else ()
    rho = spearman(LEVELS, means) if means else None
    self_is_max = all(row[0] >= max(row) - 1e-9 for row in table)
    faults = []
    if rho is None:
        faults.append(
            "no case has a known quality at every level" if not table else "quality is constant on the ladder"
        )
    elif rho > LIMIT:
        faults.append(f"not monotone: Spearman {rho:.2f} is above {LIMIT}")
    if not self_is_max:
        faults.append("a damaged reference is rated above the reference itself")
    if not same_space:
        faults.append("changes with whitespace")
    if not deterministic:
        faults.append("two ratings of one text differ")
    felt = tuple(_sensitivity(judge, order, n, p) for n, p in payloads.items())
    return TaskCheck(
        kind, judge.name, len(table), len(order) - len(table), tuple(sorted(reasons.items())), means, rho,
        self_is_max, same_space, deterministic, felt, tuple(faults),
    )  # fmt: skip


def _no_answer(judge: Evaluator) -> Rating:
    return Rating(None, None, judge.name, "the reference has no final answer to damage")


def _sensitivity(judge: Evaluator, cases: Sequence[Case], name: str, payload: str) -> Sensitivity:
    known, unknown = [], 0
    for case in cases:
        moved = change(rate(judge, case, case.reference), rate(judge, case, appended(case, payload)))
        if moved.unknown:
            unknown += 1
        else:
            known.append(moved.value)
    return Sensitivity(name, sum(known) / len(known) if known else None, len(known), unknown)


def appended(case: Case, payload: str) -> str:
    """The reference with ``payload`` after it, as comments where the answer is code."""
    if case.kind in ("code_translation", "code_generation"):
        mark = "# " if (language_of(case) or "python") == "python" else "// "
        payload = "\n".join(mark + line for line in payload.splitlines())
    return f"{case.reference}\n\n{payload}"


def respaced(text: str, *, code: bool) -> str:
    """The same content with other whitespace: ends padded, lines with trailing blanks, spaces doubled outside code."""
    body = text.strip("\n")
    if not code:
        body = re.sub(r"(?<=\S) (?=\S)", "  ", body.strip())
    return "\n" + re.sub(r"(?<=\S)\n", "  \n", body) + "  \n\n"


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation (average ranks for ties), or ``None`` when either side is constant."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)
