"""A detector's evaluation as a table: what it finds, what it costs honest authors, and the hash of what was frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustjudge.detectors import Evaluation
from robustjudge.nouns import Estimate
from robustjudge.shapes.base import Shape, cell

SCHEMA = "robustjudge.detector/1"


def told(e: Evaluation, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluation as the content of ``detector.json``; ``inputs`` says which texts there were."""
    return {"schema": SCHEMA, **e.as_dict(), "inputs": dict(inputs)}


def lead(e: Evaluation, inputs: Mapping[str, Any]) -> list[str]:
    """What was frozen, and on how many texts it was tried."""
    t = e.threshold
    value = "never fires" if t.value is None else f"{t.value:.6g}"
    low, high = t.spread()
    hard = f" and {t.hard_n} hard-benign" if t.hard_n else ""
    out = [
        f"detector {e.detector}" + (f" on {e.model}" if e.model else ""),
        f"threshold {value} at alpha = {t.alpha}, from {t.n} benign{hard} texts in {', '.join(t.languages)};"
        f" false alarms to expect on fresh benign texts: {100 * low:.1f} to {100 * high:.1f} % (95 %)",
        f"hash of the frozen artefact: {t.hash}",
        *t.warnings(),
    ]
    out += [f"{name.replace('_', ' ')}: {value}" for name, value in inputs.items() if value not in ("", 0, None)]
    if e.other_language:
        out.append(f"left out for their language: {e.other_language}")
    unread = {k: n for k, n in e.unread.items() if n}
    if unread:
        out.append("unread texts, counted as flagged: " + ", ".join(f"{k} {n}" for k, n in unread.items()))
    return out


def shapes(e: Evaluation) -> list[Shape]:
    """False alarms by sort of honest text, and detection by attack family."""
    false = [(_words(name), cell(rate)) for name, rate in e.false_positive_rate.items()]
    names = ("tpr_at_1_percent_fpr", "tpr_at_5_percent_fpr", "true_positive_rate", "auroc", "auroc_hard_benign")
    rows = [(family, *(_figure(n, row[n]) for n in names)) for family, row in e.families.items()]
    head = (
        "attack family",
        "TPR at 1 % FPR",
        "TPR at 5 % FPR",
        "flagged by this threshold",
        "AUROC",
        "AUROC to hard-benign",
    )
    out = [Shape("false_alarms", "False alarms", ("honest texts", "flagged"), tuple(false), (FALSE,))]
    if rows:
        out.append(Shape("detection", "Detection", head, tuple(rows), (FOUND,)))
    return out


FALSE = "Intervals are over whole cases. A text that the detector could not read counts as flagged."
FOUND = (
    "TPR at 1 % and 5 % FPR: the share found by the lowest threshold with at most so many false alarms on these benign"
    " texts, chosen anew in every resample. AUROC lies between 0 and 1; 0.5 is chance."
)


def _words(name: str) -> str:
    return name.replace("_", "-").replace("/", ": ")


def _figure(name: str, e: Estimate) -> str:
    return cell(e, "") if name.startswith("auroc") else cell(e)
