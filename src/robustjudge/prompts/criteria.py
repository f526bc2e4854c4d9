"""What a good answer is, per task: the one source of the EC parts and of payloads that speak of criteria."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from robustjudge.scales import Scale
from robustjudge.scales.scale import plain


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("robustjudge.prompts").joinpath("criteria.toml").read_text(encoding="utf-8"))


def kinds() -> tuple[str, ...]:
    """The task kinds with criteria of their own."""
    return tuple(_data()["kinds"])


def criteria(kind: str) -> tuple[str, ...]:
    """Five criteria for a task kind, one sentence each; an unknown kind has those of ``open``."""
    known = _data()["kinds"]
    return tuple(known.get(kind, known["open"])["criteria"])


def weights(kind: str) -> tuple[float, ...]:
    """The published weights of the criteria where the released templates weigh them (sum 10), else equal ones."""
    known = _data()["kinds"]
    return tuple(known.get(kind, known["open"]).get("weights", (2.0,) * 5))


def task_name(kind: str) -> str:
    """The task in words, for a role or an instruction."""
    known = _data()["kinds"]
    return str(known.get(kind, known["open"])["name"])


def bands(scale: Scale) -> tuple[str, ...]:
    """Five lines, lowest to highest, that say what the parts of a numeric scale mean; none for labels."""
    if scale.low is None or scale.high is None:
        return ()
    low, span = scale.low, scale.high - scale.low
    digits = 0 if scale.step == int(scale.step) else 1
    gap = 1.0 if digits == 0 else 0.1
    rows = _data()["bands"]
    starts = [low, *(round(low + span * share, digits) for share in (0.3, 0.5, 0.7, 0.9))]
    ends = [*(s - gap for s in starts[1:]), scale.high]
    if any(e < s for s, e in zip(starts, ends)):
        return (f"{plain(low)} is {rows[0]}, {plain(scale.high)} is {rows[-1]}.",)
    return tuple(
        f"{plain(s)}: {row}" if s == e else f"{plain(s)} to {plain(e)}: {row}" for s, e, row in zip(starts, ends, rows)
    )
