"""From counts to the statistics of a package: the one place where a confusion matrix becomes a profile's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from robustjudge.measures.agreement import (
    bias_index,
    gwet_ac1,
    kappa,
    kappa_max,
    pabak,
    prevalence_index,
    raw_agreement,
)
from robustjudge.measures.bias_effects import leniency
from robustjudge.measures.confusion import Confusion, coverage, rates
from robustjudge.measures.power import labels_needed
from robustjudge.nouns import Estimate

UNREAD = ("unparsed", "refused", "truncated", "blocked", "error")
ORIENTATION = "rows=reference, columns=judge"


def now() -> str:
    """The current time, RFC 3339 in UTC to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def binary_statistics(c: Confusion) -> dict[str, Any]:
    """The statistical fields of a profile from a binary confusion matrix."""
    found = rates(c)
    t = c.table
    lean = leniency(c)
    others = {k: v for k, v in found.items() if k not in ("tpr", "fpr", "prevalence", "youden_j")}
    others |= {
        "raw_agreement": raw_agreement(t),
        "kappa_max": kappa_max(t),
        "pabak": pabak(t),
        "prevalence_index": prevalence_index(t),
        "bias_index": bias_index(t),
        "leniency": lean.index,
    }
    worst = rates(c.unread_as_errors())
    return {
        "tpr": found["tpr"],
        "fpr": found["fpr"],
        "prevalence": found["prevalence"],
        "youden_j": found["youden_j"],
        "kappa": kappa(t),
        "ac1": gwet_ac1(t),
        "coverage": coverage(c),
        "rates": others,
        "rates_unread_as_error": {k: worst[k] for k in ("tpr", "fpr", "accuracy")},
    }


def confusion_section(c: Confusion, unread: Mapping[str, int], positive: str, negative: str) -> dict[str, Any]:
    """The ``confusion`` object of the schema, counts as whole numbers."""
    tp, fp, fn, tn = (round(v) for v in (c.tp, c.fp, c.fn, c.tn))
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "unread": {k: int(unread.get(k, 0)) for k in UNREAD},
        "unread_positive": round(c.unread_positive),
        "unread_negative": round(c.unread_negative),
        "labels": [positive, negative],
        "matrix": [[tp, fn], [fp, tn]],
        "orientation": ORIENTATION,
    }


def needed(c: Confusion, half_width: float) -> str:
    """What labels would bring TPR and FPR to +- ``half_width``."""
    share = c.positives / c.n if c.n else 0.0
    tpr = c.tp / c.positives if c.positives else 0.5
    fpr = c.fp / c.negatives if c.negatives else 0.5
    return "; ".join(
        (
            labels_needed(tpr, round(c.positives), share, half_width),
            labels_needed(fpr, round(c.negatives), 1 - share if c.n else 0.0, half_width, name="FPR"),
        )
    )


def too_wide(e: Estimate, half_width: float) -> bool:
    """Undefined, or an interval wider than +- ``half_width``."""
    return e.value is None or e.low is None or e.high is None or (e.high - e.low) / 2 > half_width
