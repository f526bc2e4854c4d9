"""What the probes found: corrected p values, the decision against the band, and the sentence that says what is ruled out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from robustjudge.bias.crossed import NAME, crossed
from robustjudge.bias.effects import Row
from robustjudge.bias.finding import Decision, Finding, Report
from robustjudge.bias.hypotheses import Hypotheses, constant
from robustjudge.bias.policy import DEFAULT, BiasPolicy
from robustjudge.bias.variants import MARK
from robustjudge.measures.bias_effects import decide
from robustjudge.measures.multiplicity import benjamini_hochberg, holm
from robustjudge.measures.statement import bounded_statement
from robustjudge.nouns import Estimate


def findings(
    table: Any,
    facts: Mapping[str, Mapping[str, Any]],
    policy: BiasPolicy = DEFAULT,
    *,
    families: Mapping[str, str] | None = None,
    population: str = "the given cases",
    run: Path | str = "",
) -> Report:
    """Read every hypothesis off a table.  ``facts`` tells of each case what the table does not
    (:func:`robustjudge.bias.design.facts_of`); ``families`` the model family of each judge."""
    out: list[Finding] = []
    by_judge = _by_judge(table)
    known = families or {}
    plain = [j for j in by_judge if MARK not in j]
    for judge in plain:
        rows = by_judge[judge]
        mine: list[Finding] = []
        varied = {k.partition(MARK)[2]: v for k, v in by_judge.items() if k.startswith(judge + MARK)}
        for protocol in sorted({r["protocol"] for r in rows}):
            cells = _under(rows, protocol)
            one = Hypotheses(judge, protocol, cells, facts, policy, known.get(judge, ""), population)
            mine += one.all(varied)
            for other in plain:
                theirs = _under(by_judge[other], protocol)
                families_of = known.get(judge, ""), known.get(other, "")
                found = None if one.degenerate or constant(theirs) else crossed(cells, theirs, facts, *families_of)
                if found is not None:
                    claim = f"an answer of the judge's own model family, beyond what {other} sees in it and in others"
                    mine.append(one.finding(NAME, "self_preference", claim, found[0], {}, found[1]))
        out += _adjusted(mine, policy, population)
    return Report(tuple(out), policy, population, str(run))


def _under(rows: Sequence[Row], protocol: str) -> list[Row]:
    return [r for r in rows if r["protocol"] == protocol]


def _by_judge(table: Any) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for row in table.rows():
        name = row["judge"] if row["defense"] in ("", "none", None) else f"{row['judge']} + {row['defense']}"
        out.setdefault(name, []).append(row)
    return dict(sorted(out.items()))


def _adjusted(found: Sequence[Finding], policy: BiasPolicy, population: str) -> list[Finding]:
    """Correct the p values, then decide and say it."""
    adjusted: dict[int, float] = {}
    for gating, correct in ((True, holm), (False, benjamini_hochberg)):
        mine = [i for i, f in enumerate(found) if f.gating == gating and f.p is not None]
        for i, p in zip(mine, correct([float(found[i].p or 0.0) for i in mine]).tolist() if mine else []):
            adjusted[i] = p
    out = []
    for i, f in enumerate(found):
        band = (-policy.band, policy.band)
        decision: Decision = f.decision
        flags, needed = f.flags, None
        if f.decision != "degenerate":
            decision = decide(f.effect, band)
            if f.effect.n < policy.minimum and decision != "inconclusive":
                decision, flags = "inconclusive", (*flags, f"fewer than {policy.minimum} cases")
            needed = cases_needed(f.effect, policy) if decision == "inconclusive" else None
        title = f"{f.name.replace('_', ' ').capitalize()} ({f.protocol})"
        told = bounded_statement(
            title,
            population,
            f.effect,
            band=band,
            p_adjusted=adjusted.get(i),
            retest=f.retest,
            coverage=f.coverage,
            adjustment="Holm" if f.gating else "exploratory, Benjamini-Hochberg",
            design="both orders" if f.protocol == "pairwise" else "scored",
        )
        if decision == "degenerate":
            told = f"{title}: the judge says the same of every text, so nothing can be measured; that is no absence of bias."
        elif flags != f.flags:
            undecided = f"Not decided, {flags[-1]}, against the band"
            for said in ("Bounded by the band", "Biased: outside the band"):
                told = told.replace(said, undecided)
        if needed is not None:
            told += f" About {needed} cases would settle it."
        out.append(
            replace(f, p_adjusted=adjusted.get(i), decision=decision, statement=told, needed=needed, flags=flags)
        )
    return out


def cases_needed(effect: Estimate, policy: BiasPolicy) -> int | None:
    """Cases at which an interval of this shape lies on one side of the band's edge; ``None`` where the effect is
    undefined or sits on the edge."""
    if effect.value is None or effect.low is None or effect.high is None or not effect.n:
        return None
    gap = abs(policy.band - abs(effect.value))
    if gap < 0.01:
        return None
    half = max(effect.high - effect.value, effect.value - effect.low)
    return max(policy.minimum, ceil(effect.n * (half / gap) ** 2))
