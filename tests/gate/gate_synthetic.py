"""Evidence made up in memory, for decisions over many cases without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robustjudge.gate.evidence import Evidence, Observed, Reply


def ok(score: float) -> Reply:
    return Reply("ok", score, (), "")


def trial(
    i: int,
    attack: str,
    clean: Sequence[float],
    attacked: Sequence[Reply],
    category: str = "injection",
    severity: str = "high",
    control: str = "",
) -> Observed:
    """One trial of case ``i`` on the scale 1 to 10."""
    return Observed(
        f"{attack}{i}", "planted", "none", "pointwise", "victim", 0, f"c{i}", f"c{i}", "open", attack, attack,
        "control" if control else category, severity, control, "replace" if control == "identity" else "append", 1.0, 10.0,
        False, "ok", tuple(ok(c) for c in clean), tuple(attacked), None, "", "", f"h{i}", 4, "1", "",
    )  # fmt: skip


def evidence_of(trials: Sequence[Observed], state: str = "complete") -> Evidence:
    manifest = {"state": state, "judges": {"planted": {"kind": "prompted", "template": {"name": "t"}}}}
    return Evidence("planted", "none", tuple(trials), manifest, Path("."), {})
