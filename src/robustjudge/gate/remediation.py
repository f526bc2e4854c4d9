"""Remediation: what to change for each failing category - lint hits, and defenses re-tried on the failing cases, measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError, PlanError
from robustjudge.execution import Options, execute
from robustjudge.gate.bounds import exact
from robustjudge.gate.decide import Decision, look
from robustjudge.gate.evidence import Evidence, evidence
from robustjudge.gate.failures import Outcome
from robustjudge.gate.policy import Policy
from robustjudge.judges import Prompted
from robustjudge.measures.intervals import wilson
from robustjudge.nouns import Case, Estimate
from robustjudge.plan import Plan, prompted
from robustjudge.prompts.lint import lint
from robustjudge.trial import Cell

NO_HELP = "no tested change helped"
CASES = 12
"""Failing cases per category that a change is tried on."""


@dataclass(frozen=True)
class Change:
    """One thing to try: a defense by name, or the judge with another prompt part."""

    kind: str
    text: str
    defense: Any = None
    judge: Any = None


def failing(d: Decision) -> dict[str, list[Outcome]]:
    """The failures of each failing category, confirmed ones first."""
    out: dict[str, list[Outcome]] = {}
    for c in d.categories:
        found = [o for o in d.outcomes if o.counts and not o.waiver and o.trial.category == c.category]
        if c.verdict == "fail" or any(o.confirmed and o.failed for o in found):
            out[c.category] = sorted(found, key=lambda o: (not o.confirmed, o.id))
    return out


def defenses(names: Iterable[str] = ()) -> tuple[Change, ...]:
    """The installed defenses (or those named) as changes to try: those that need no settings and no model of their own."""
    from robustjudge.defenses import library

    out = []
    for name in tuple(names) or tuple(library.defense_names()):
        try:
            made = library.defense_of(name, {})
        except ConfigError:
            continue  # it needs a setting that only the user can give
        models = getattr(made, "models", ())
        if name != "none" and not (models() if callable(models) else models):
            out.append(Change("defense", f"put the defense {name} before the judge", made))
    return tuple(out)


def parts(judge: Any) -> tuple[Change, ...]:
    """Prompt changes to try on a prompted judge: the fence with a code of its own, where the prompt has none."""
    found = prompted(judge)
    if len(found) != 1 or not isinstance(judge, Prompted):
        return ()
    forms = [f for f in found[0].template.forms if f.fence == "plain"]
    if not forms:
        return ()
    template = found[0].template
    given = {n: replace(f, fence="nonce") for n in ("pointwise", "pairwise", "best_of") if (f := getattr(template, n))}
    return (
        Change(
            "template_part",
            "fence untrusted text with a code of its own (fence: nonce)",
            judge=replace(judge, template=replace(template, **given)),
        ),
    )


def lint_entries(judge: Any, categories: Iterable[str]) -> list[dict[str, Any]]:
    """Lint hits of the judge's prompts as untested suggestions, with file and line."""
    hits = [f for p in prompted(judge) for f in lint(p.template) if f.severity != "note"]
    return [
        _entry(c, "lint", f"{f.rule}: {f.message}", where=f"{f.where}:{f.line}")
        for c in categories
        for f in dict.fromkeys(hits)
    ]


def remedy(
    e: Evidence, d: Decision, plan: Plan, options: Options | None = None, changes: Sequence[Change] | None = None
) -> list[dict[str, Any]]:
    """Re-try every change on the failing cases of each failing category and measure what it removed.

    ``plan`` is the run's own plan.  Runs the judge on failing cases only, bare and changed, so both stand on fresh
    calls; clean verdicts of the same cases give the benign utility.  Where nothing helped, one entry says so.
    """
    broken = failing(d)
    if not broken:
        return []
    judge = dict(plan.judges)[e.judge]
    tried = tuple(changes) if changes is not None else (*parts(judge), *defenses())
    out = lint_entries(judge, broken)
    for category, found in broken.items():
        measured = [x for change in tried if (x := _measure(e, d, plan, options, category, found, change)) is not None]
        helped = sorted((x for x in measured if x["failures_after"] < x["failures_before"]), key=_merit)
        out.extend(helped or [_entry(category, "none", NO_HELP, measured=bool(measured), n=_size(found))])
    return out


def _merit(x: Mapping[str, Any]) -> tuple[float, float, float]:
    utility = x["benign_utility"].get("value")
    return x["failures_after"], -(utility if utility is not None else 0.0), x["extra_calls_per_item"] or 0.0


def _size(found: Sequence[Outcome]) -> int:
    return min(CASES, len({o.trial.case_id for o in found}))


def _measure(
    e: Evidence,
    d: Decision,
    plan: Plan,
    options: Options | None,
    category: str,
    found: Sequence[Outcome],
    change: Change,
) -> dict[str, Any] | None:
    """One change on one category; ``None`` where it cannot be put before this judge."""
    ids = list(dict.fromkeys(o.trial.case_id for o in found))[:CASES]
    keys = {(o.trial.case_id, o.trial.attack, o.trial.protocol, o.trial.seed) for o in found if o.trial.case_id in ids}
    attacks = {k[1] for k in keys}

    def keep(cell: Cell) -> bool:
        label = getattr(cell.protocol, "label", cell.protocol.kind)
        return (cell.case.id, cell.attack_name, label, cell.seed) in keys

    judge = dict(plan.judges)[e.judge] if change.judge is None else change.judge
    tried = replace(
        plan,
        cases=lambda: _only(plan.cases(), ids),
        judges=((e.judge, judge),),
        defenses=(("changed", change.defense),) if change.defense is not None else (("none", None),),
        attacks=tuple(a for a in plan.attacks if a.name in attacks),
        keep=keep,
    )
    name = "changed" if change.defense is not None else "none"
    with tempfile.TemporaryDirectory() as folder:
        given = replace(options or Options(ledger=None), root=Path(folder), slug="remedy", resume=None, listener=None)
        try:
            run = execute(tried, given)
        except (ConfigError, PlanError):
            return None
        after = look_at(run.path, e.judge, name, d.policy)
    mine = {k: o for o in found if (k := _key(o)) in keys}
    pairs = [(mine[_key(o)], o) for o in after if _key(o) in mine and o.evaluated]
    if not pairs:
        return None
    before, left = len(pairs), sum(o.counts for _, o in pairs)
    low, high = exact(left, before, 0.975)
    calls = sum(o.trial.judge_calls - old.trial.judge_calls for old, o in pairs) / len(pairs)
    return _entry(
        category,
        change.kind,
        change.text,
        measured=True,
        before=before,
        after=left,
        n=before,
        interval=[low, high],
        calls=calls,
        utility=_utility(pairs),
    )


def look_at(path: Path, judge: str, defense: str, policy: Policy) -> tuple[Outcome, ...]:
    """The outcomes of a small run under the same rules."""
    return look(evidence(path, judge, defense), replace(policy, categories=(), require=(), defense=defense)).outcomes


def _key(o: Outcome) -> tuple[str, str, str, int]:
    return o.trial.case_id, o.trial.attack, o.trial.protocol, o.trial.seed


def _only(cases: Iterable[Case], ids: Sequence[str]) -> Iterable[Case]:
    wanted = set(ids)
    return (c for c in cases if c.id in wanted)


def _utility(pairs: Sequence[tuple[Outcome, Outcome]]) -> dict[str, Any]:
    """Share of clean verdicts that the change leaves within the threshold (a blocked or unread one is lost)."""
    seen: dict[tuple[str, str], bool] = {}
    for old, new in pairs:
        if old.clean is not None:
            kept = new.clean is not None and abs(new.clean - old.clean) <= old.threshold + 1e-9
            seen[old.trial.case_id, old.trial.protocol] = kept
    e: Estimate = wilson(sum(seen.values()), len(seen), reason="no clean verdict")
    return e.as_dict()


def _entry(
    category: str,
    kind: str,
    change: str,
    *,
    where: str | None = None,
    measured: bool = False,
    before: int | None = None,
    after: int | None = None,
    n: int = 0,
    interval: list[float] | None = None,
    calls: float | None = None,
    utility: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "attack_category": category,
        "kind": kind,
        "change": change,
        "where": where,
        "measured": measured,
        "failures_before": before,
        "failures_after": after,
        "n": n,
        "interval": interval,
        "extra_calls_per_item": calls,
        "benign_utility": dict(utility or {}),
    }
