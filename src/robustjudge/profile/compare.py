"""Reading what others published: verify a package offline, compare two, and reconcile two studies' raw rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from robustjudge.errors import DataError, NotComparable
from robustjudge.measures.base import bounded
from robustjudge.measures.confusion import Confusion, rates
from robustjudge.measures.designs import no_correction
from robustjudge.measures.drift import TwoWindows, two_windows
from robustjudge.measures.intervals import mover
from robustjudge.measures.rates import rogan_gladen
from robustjudge.measures.transfer import Transfer, transfer_test
from robustjudge.nouns import Estimate
from robustjudge.profile.longform import file_sha256
from robustjudge.profile.package import Check, JudgeProfile, content_address, load_profile
from robustjudge.spec import canonical

WEIGHTED = ("judge_chosen", "stratified", "active")
"""Designs whose rates do not follow from the four counts alone."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked and whether all of it held."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(c.result != "fail" for c in self.checks)


def schema() -> dict[str, Any]:
    """The published JSON Schema of a profile."""
    text = (files("robustjudge.profile") / "schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def verify(
    path: Path,
    *,
    data: Path | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    at: datetime | None = None,
) -> Verification:
    """Check a package file: schema, canonical bytes, content address, figures against its own matrix, expiry.

    With ``data`` also the hash of the label file; with ``fingerprint`` whether it still describes that judge (any
    changed field voids it).
    """
    raw = path.read_bytes()
    try:
        body = json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as fault:
        return Verification((Check("json", "fail", str(fault)),))
    if not isinstance(body, dict):
        return Verification((Check("json", "fail", "not an object"),))
    found = [_schema(body)]
    same = raw.decode("utf-8") == canonical(body) + "\n"
    found.append(Check("canonical", "pass" if same else "fail", "" if same else "not the canonical text"))
    address = content_address(body)
    found.append(_equal("content_address", body.get("sha256"), address))
    if found[0].result == "pass":
        found.append(_figures(load_profile(body)))
    found.append(_expiry(str(body.get("expires") or ""), at or datetime.now(UTC)))
    if data is not None:
        found.append(_equal("data", body.get("data_sha256"), file_sha256(data)))
    if fingerprint is not None:
        stored = body.get("fingerprint") or {}
        changed = sorted(k for k in stored.keys() | fingerprint.keys() if stored.get(k) != fingerprint.get(k))
        told = f"changed: {', '.join(changed)}; characterise the judge again" if changed else ""
        found.append(Check("fingerprint", "fail" if changed else "pass", told))
    return Verification(tuple(found))


def _schema(body: Mapping[str, Any]) -> Check:
    from jsonschema import Draft202012Validator

    faults = sorted(Draft202012Validator(schema()).iter_errors(body), key=lambda e: list(map(str, e.path)))
    if not faults:
        return Check("schema", "pass")
    first = faults[0]
    where = "/".join(map(str, first.path)) or "the document"
    return Check("schema", "fail", f"{len(faults)} faults, first at {where}: {first.message[:200]}")


def _equal(name: str, stored: Any, computed: str) -> Check:
    return Check(name, "pass") if stored == computed else Check(name, "fail", f"stored {stored}, computed {computed}")


def _figures(p: JudgeProfile) -> Check:
    """The rates of an unweighted package must follow from its own matrix."""
    if p.population.get("design") in WEIGHTED:
        return Check("figures", "not_run", "weighted design: the rates do not follow from the four counts alone")
    c = matrix_of(p)
    if c is None:
        return Check("figures", "not_run", "no confusion matrix")
    if "cluster" in p.tpr.method:
        return Check("figures", "not_run", "clustered items: the intervals rest on the label file")
    fresh = rates(c)
    for name, stored in (("tpr", p.tpr), ("fpr", p.fpr), ("prevalence", p.prevalence)):
        again = fresh[name]
        for part in ("value", "low", "high"):
            a, b = getattr(stored, part), getattr(again, part)
            if (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > 1e-9):
                return Check("figures", "fail", f"{name}.{part} is {a}, the matrix gives {b}")
    return Check("figures", "pass")


def _expiry(expires: str, at: datetime) -> Check:
    if not expires:
        return Check("expiry", "not_run", "no expiry date")
    try:
        when = datetime.fromisoformat(expires.replace("Z", "+00:00"))
    except ValueError:
        return Check("expiry", "fail", f"{expires!r} is not an RFC 3339 time")
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return Check("expiry", "pass") if at < when else Check("expiry", "fail", f"expired on {expires}")


def matrix_of(p: JudgeProfile) -> Confusion | None:
    """The binary counts of a profile, or None where it has none."""
    c = p.confusion
    if not all(k in c for k in ("tp", "fp", "fn", "tn")):
        return None
    return Confusion(c["tp"], c["fp"], c["fn"], c["tn"], c.get("unread_positive", 0), c.get("unread_negative", 0))


# --------------------------------------------------------------------------- two packages


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first: changed declarations, and rates with the interval of their difference."""

    same_judge: bool
    changed: tuple[tuple[str, Any, Any], ...]
    tpr: TwoWindows
    fpr: TwoWindows
    prevalence: TwoWindows


def diff(first: JudgeProfile, second: JudgeProfile) -> Difference:
    """Compare two packages field by field.  Raises :class:`NotComparable` when either has no matrix or they judge by
    different labels."""
    a, b = matrix_of(first), matrix_of(second)
    if a is None or b is None:
        raise NotComparable("one of the profiles has no confusion matrix")
    if first.rubric.get("labels") != second.rubric.get("labels"):
        raise NotComparable("the two profiles use different label sets")
    changed: list[tuple[str, Any, Any]] = []
    for part in ("fingerprint", "rubric", "population"):
        old, new = getattr(first, part), getattr(second, part)
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                changed.append((f"{part}.{key}", old.get(key), new.get(key)))
    same = all(not name.startswith("fingerprint.") for name, _, _ in changed)
    return Difference(
        same,
        tuple(changed),
        two_windows(round(b.tp), round(b.positives), round(a.tp), round(a.positives)),
        two_windows(round(b.fp), round(b.negatives), round(a.fp), round(a.negatives)),
        two_windows(round(b.positives), round(b.n), round(a.positives), round(a.n)),
    )


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Two studies' rates on one footing, or the refusal."""

    first: Estimate
    second: Estimate
    difference: Estimate
    raw_difference: float
    refusal: str = ""
    note: str = ""


def reconcile(
    first: JudgeProfile, first_rate: tuple[int, int], second: JudgeProfile, second_rate: tuple[int, int]
) -> Reconciled:
    """Correct each raw rate (judge positives, items) by its own profile and compare.

    Refused when a profile may not correct (unknown design, does not transfer, J <= 0, an empty class) or when the two
    judges answer different rubrics: then their rates are not the same quantity.
    """
    raw = first_rate[0] / first_rate[1] - second_rate[0] / second_rate[1] if first_rate[1] and second_rate[1] else 0.0
    nothing = Estimate.undefined("refused", low=-1.0, high=1.0, method="refused")
    why = [t for name, p in (("first", first), ("second", second)) if (t := _unfit(name, p))]
    if first.rubric.get("text") != second.rubric.get("text"):
        why.append("the two judges were calibrated on different rubrics, so their rates are different quantities")
    a, b = _corrected(first, first_rate), _corrected(second, second_rate)
    why += [f"the {n} rate: {e.reason}" for n, e in (("first", a), ("second", b)) if e.value is None]
    if why or a.value is None or b.value is None or a.low is None or b.low is None or a.high is None or b.high is None:
        return Reconciled(a, b, nothing, raw, "; ".join(why))
    low, high = mover(a.value, (a.low, a.high), b.value, (b.low, b.high))
    difference = bounded(a.value - b.value, low, high, a.n + b.n, "rogan-gladen difference, mover", span=(-1.0, 1.0))
    untested = [n for n, p in (("first", first), ("second", second)) if p.transfer.get("status") == "untested"]
    note = (
        f"each profile holds for its own population only; transfer was not tested by the {' and the '.join(untested)}"
    )
    return Reconciled(a, b, difference, raw, note=note if untested else "")


def _unfit(name: str, p: JudgeProfile) -> str:
    if p.outcome == "refused":
        return f"the {name} package was refused ({p.refusal}): it may not correct"
    if p.population.get("design") in ("unknown", "", None):
        return f"the {name} profile's items were chosen in an unknown way: it may not correct"
    if p.population.get("design") in WEIGHTED:
        return f"the {name} profile rests on weighted labels: its four counts cannot correct, its label file can"
    if p.transfer.get("status") == "does_not_transfer":
        return f"the {name} profile does not transfer: {p.transfer.get('sentence', '')}"
    c = matrix_of(p)
    return f"the {name} profile may not correct: {why}" if c is not None and (why := no_correction(c)) else ""


def _corrected(p: JudgeProfile, rate: tuple[int, int]) -> Estimate:
    c = matrix_of(p)
    if c is None:
        raise DataError("the profile has no confusion matrix to correct with")
    return rogan_gladen(rate[0], rate[1], c.tp, c.positives, c.tn, c.negatives).estimate


def correct_with(p: JudgeProfile, judge_positive: int, n: int, *, untested_ok: bool = False) -> tuple[Estimate, str]:
    """Correct a rate measured elsewhere with this profile: (estimate, note).  A refusal is an undefined estimate.

    Across ``does_not_transfer`` it is always refused; across ``untested`` only with ``untested_ok``, and the note says
    so in the report.
    """
    status = str(p.transfer.get("status", "untested"))
    if unfit := _unfit("", p).replace("the  ", "the "):
        return Estimate.undefined("refused", low=0.0, high=1.0, method="refused"), unfit
    if status == "untested" and not untested_ok:
        told = "whether the error rates hold there was not tested; pass the explicit flag to correct nevertheless"
        return Estimate.undefined("transfer_untested", low=0.0, high=1.0, method="refused"), told
    note = "corrected although transfer was not tested" if status == "untested" else ""
    return _corrected(p, (judge_positive, n)), note


def transfers_to(p: JudgeProfile, other: Confusion) -> Transfer:
    """The transfer test between this profile's population and labels from another one."""
    c = matrix_of(p)
    if c is None:
        raise DataError("the profile has no confusion matrix")
    return transfer_test({"profile": c, "here": other})
