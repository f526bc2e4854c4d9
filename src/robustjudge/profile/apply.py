"""Using a profile: an attack's success rate with the grader's error in it, and the true rate when some submit attacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustjudge.errors import DataError
from robustjudge.measures.base import bounded
from robustjudge.measures.bootstrap import cluster_bootstrap, design_effect, totals
from robustjudge.measures.confusion import Confusion
from robustjudge.measures.designs import no_correction
from robustjudge.measures.intervals import mover
from robustjudge.measures.rates import USELESS, rogan_gladen
from robustjudge.nouns import Estimate
from robustjudge.profile.compare import correct_with, matrix_of
from robustjudge.profile.package import JudgeProfile

NEEDS = ("judge", "defense", "protocol", "attack", "control", "case_id", "cluster", "attacked_status", "attacked_unit")
"""The columns of a run's table that a correction needs."""


@dataclass(frozen=True, slots=True)
class CorrectedLine:
    """One attack of a run: the graded success rate, and the rate of true successes with the grader's error carried.

    ``unread`` verdicts are counted apart.  ``basis`` says which error rates were used: those measured under this
    attack, or those on clean items.  ``note`` holds a refusal or a warning in words.
    """

    judge: str
    defense: str
    attack: str
    control: str
    n: int
    unread: int
    raw: Estimate
    corrected: Estimate
    basis: str
    note: str


def correct_run(table: Any, profile: JudgeProfile, *, untested_ok: bool = False) -> tuple[CorrectedLine, ...]:
    """Correct the success rates of a run whose verdicts come from the profile's judge on a binary scale.

    Success is the positive label.  Rates measured on clean items do not describe a judge under attack, so attack lines
    use ``profile.under_attack`` where it has that attack; else the correction is refused unless ``untested_ok``.
    Raises :class:`DataError` for verdicts on another scale.
    """
    out = []
    for (judge, defense, attack), rows in _groups(table).items():
        out.append(_line(profile, judge, defense, attack, rows, untested_ok))
    if not out:
        raise DataError("the run has no pointwise rows to correct")
    return tuple(out)


def _groups(table: Any) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    out: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    columns = {name: table[name] for name in NEEDS}
    for i in range(len(table)):
        row = {name: col[i] for name, col in columns.items()}
        if row["protocol"] == "pointwise":
            out.setdefault((row["judge"], row["defense"], row["attack"]), []).append(row)
    return dict(sorted(out.items()))


def _line(
    p: JudgeProfile, judge: str, defense: str, attack: str, rows: list[dict[str, Any]], untested_ok: bool
) -> CorrectedLine:
    read = [r for r in rows if r["attacked_status"] == "ok"]
    hits = np.asarray([float(r["attacked_unit"]) for r in read])
    if not np.all(np.isin(hits, (0.0, 1.0))):
        raise DataError(
            f"judge {judge}: the verdicts of this run are scores, and the profile speaks of the labels "
            f"{', '.join(map(str, p.rubric.get('labels') or []))}; run the attacks on the grading scale to correct them"
        )
    clusters = [r["cluster"] or r["case_id"] for r in read]
    raw = cluster_bootstrap(hits, clusters)
    control = str(rows[0]["control"] or "")
    n, x = _effective(hits, clusters)
    under = p.under_attack.get(attack) if isinstance(p.under_attack, Mapping) else None
    if under:
        basis, note = "error rates measured under this attack", ""
        corrected = _by(_confusion_of(under), x, n)
    elif control == "identity":
        basis = "error rates on clean items"
        corrected, note = correct_with(p, round(x), round(n), untested_ok=untested_ok)
    else:
        basis = "error rates on clean items, not measured under this attack"
        corrected, note = _unmeasured(p, x, n, untested_ok)
    return CorrectedLine(judge, defense, attack, control, len(read), len(rows) - len(read), raw, corrected, basis, note)


def _unmeasured(p: JudgeProfile, x: float, n: float, untested_ok: bool) -> tuple[Estimate, str]:
    if not untested_ok:
        told = "the profile has no error rates under this attack, and those on clean items do not describe it"
        return Estimate.undefined("transfer_untested", n=round(n), low=0.0, high=1.0, method="refused"), told
    corrected, note = correct_with(p, round(x), round(n), untested_ok=True)
    return corrected, note or "corrected with rates from clean items although the attack may change them"


def _effective(hits: Any, clusters: list[str]) -> tuple[float, float]:
    """(items, successes) of an unclustered sample that tells as much: repeats of a case are not independent."""
    if not hits.size:
        return 0.0, 0.0
    names = {c: i for i, c in enumerate(dict.fromkeys(clusters))}
    group = np.asarray([names[c] for c in clusters])
    num, den = totals(group, hits, len(names)), totals(group, np.ones_like(hits), len(names))
    n = hits.size / max(1.0, design_effect(num, den))
    return n, float(hits.mean()) * n


def _confusion_of(rates: Mapping[str, Any]) -> Confusion:
    tpr, fpr = (e if isinstance(e, Estimate) else Estimate.from_dict(e) for e in (rates["tpr"], rates["fpr"]))
    p, q = tpr.n, fpr.n
    tp, fp = round((tpr.value or 0.0) * p), round((fpr.value or 0.0) * q)
    return Confusion(tp, fp, p - tp, q - fp)


def _by(c: Confusion, x: float, n: float) -> Estimate:
    if no_correction(c):
        return Estimate.undefined(USELESS, n=round(n), low=0.0, high=1.0, method="rogan-gladen")
    return rogan_gladen(x, n, c.tp, c.positives, c.tn, c.negatives).estimate


@dataclass(frozen=True, slots=True)
class Range:
    """The true rate when between none and ``share`` of the submissions carry an attack.

    ``honest`` is the corrected rate if nobody attacks, ``worst`` if the whole share does; ``low`` to ``high`` holds
    both with their intervals.
    """

    share: float
    honest: Estimate
    worst: Estimate
    low: float
    high: float
    note: str = ""


def attacked_range(
    profile: JudgeProfile, judge_positive: int, n: int, share: float, success: Estimate, *, untested_ok: bool = False
) -> Range:
    """The range of the true rate behind ``judge_positive`` of ``n`` when up to ``share`` of them carry an attack that
    the judge passes with rate ``success`` though none of its carriers deserves it.

    theta(a) = (p - FPR - a (success - FPR))/J is linear in a, so the ends of the range are at a = 0 and a = share.
    """
    if not 0 <= share < 1:
        raise DataError(f"the share of submissions that attack lies in [0, 1), got {share}")
    honest, note = correct_with(profile, judge_positive, n, untested_ok=untested_ok)
    c = matrix_of(profile)
    nothing = Estimate.undefined(honest.reason or "success rate unknown", low=0.0, high=1.0, method="attacked range")
    if honest.value is None or c is None or success.value is None or success.low is None or success.high is None:
        return Range(share, honest, nothing, 0.0, 1.0, note)
    fpr, j = profile.fpr, profile.youden_j
    if fpr.value is None or j.value is None or fpr.low is None or fpr.high is None or honest.low is None:
        return Range(share, honest, nothing, 0.0, 1.0, note)
    j_low = max(j.low or 0.0, 1e-9)
    shift = share * (success.value - fpr.value) / j.value
    ends = (share * (success.low - fpr.high) / (j.high or 1.0), share * (success.high - fpr.low) / j_low)
    shift_low, shift_high = min(shift, *ends), max(shift, *ends)
    low, high = mover(honest.value, (honest.low, honest.high or 1.0), shift, (shift_low, shift_high))
    worst = bounded(honest.value - shift, low, high, n, "rogan-gladen less the attackers' share, mover")
    assert worst.low is not None and worst.high is not None and honest.high is not None
    return Range(share, honest, worst, min(honest.low, worst.low), max(honest.high, worst.high), note)
