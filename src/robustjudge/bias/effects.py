"""From the rows of one probe to an effect: edit minus neutral twin, by case, with what was dropped counted apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustjudge.measures.bias_effects import Calm, calm_rates
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.compare import mcnemar
from robustjudge.measures.intervals import wilson
from robustjudge.nouns import Estimate

Row = dict[str, Any]
DRAWS = 9999


@dataclass(frozen=True)
class Effect:
    """Mean difference in [-1, 1] with its interval, sign-flip p, worst case, coverage and unequal dropping."""

    effect: Estimate
    p: float | None
    retest: Estimate
    coverage: Estimate
    worst: Estimate
    drop_p: float | None
    calm: Calm | None


def worth(row: Row, arm: str) -> float | None:
    """What an arm of a row says: the unit score, or the mean over both orders of won (1), tied (.5), lost (0)."""
    if row.get(f"{arm}_status") != "ok":
        return None
    if row["protocol"] == "pointwise":
        unit = row[f"{arm}_unit"]
        return None if unit is None else float(unit)
    letters = row[f"{arm}_outcomes"] or ""
    values = {"W": 1.0, "T": 0.5, "L": 0.0}
    if not letters or any(x not in values for x in letters):
        return None
    return sum(values[x] for x in letters) / len(letters)


def edit_effect(edits: dict[Any, Row], twins: dict[Any, Row], identity: dict[Any, Row]) -> Effect:
    """Edit minus twin over the cases that have both; ``identity`` rows give the retest noise."""
    keys = [k for k in edits if k in twins]
    clusters = [edits[k]["cluster"] for k in keys]
    new = [worth(edits[k], "attacked") for k in keys]
    old = [worth(twins[k], "attacked") for k in keys]
    kept = [i for i, (a, b) in enumerate(zip(new, old)) if a is not None and b is not None]
    gaps = [(new[i] or 0.0) - (old[i] or 0.0) for i in kept]
    mine = [clusters[i] for i in kept]
    effect = mean_of(gaps, mine)
    lost_new = sum(a is None and b is not None for a, b in zip(new, old))
    lost_old = sum(b is None and a is not None for a, b in zip(new, old))
    side = 1.0 if (effect.value or 0.0) >= 0 else -1.0
    worst = [side if a is None or b is None else a - b for a, b in zip(new, old)]
    return Effect(
        effect,
        sign_flip(gaps, mine),
        retest_rate(identity),
        wilson(len(kept), len(keys)),
        mean_of(worst, clusters),
        mcnemar(lost_new, lost_old).exact_p if keys else None,
        _calm(keys, edits, new, identity),
    )


def _calm(
    keys: Sequence[Any], edits: dict[Any, Row], new: Sequence[float | None], identity: dict[Any, Row]
) -> Calm | None:
    """Robustness and consistency rate of scores: unchanged under the edit, unchanged on repeating."""
    rows = [(worth(edits[k], "clean"), v, worth(identity[k], "attacked")) for k, v in zip(keys, new) if k in identity]
    read = [(a, b, c) for a, b, c in rows if a is not None and b is not None and c is not None]
    if not read or edits[keys[0]]["protocol"] != "pointwise":
        return None
    return calm_rates([a for a, _, _ in read], [b for _, b, _ in read], [c for _, _, c in read])


def mean_of(gaps: Sequence[float], clusters: Sequence[Any], limit: float = 1.0) -> Estimate:
    """Mean of differences in +- ``limit``; undefined without one."""
    if not len(gaps):
        return Estimate.undefined("no pair with both verdicts read", low=-limit, high=limit, method="cluster bootstrap")
    return cluster_bootstrap(np.asarray(gaps, dtype=np.float64), list(clusters), bounds=(-limit, limit))


def sign_flip(gaps: Sequence[float], clusters: Sequence[Any], seed: int = 0) -> float | None:
    """Two-sided p of a mean of zero: edit and twin are exchangeable within a case (seeded sign flips of whole
    clusters).  1 when nothing differs; ``None`` without a pair."""
    if not len(gaps):
        return None
    names = {c: i for i, c in enumerate(dict.fromkeys(clusters))}
    total = np.zeros(len(names))
    np.add.at(total, [names[c] for c in clusters], gaps)
    moved = total[total != 0]
    if not moved.size:
        return 1.0
    if moved.size <= 13:  # all flips can be listed
        signs = 1 - 2 * ((np.arange(2**moved.size)[:, None] >> np.arange(moved.size)) & 1)
        return float(np.mean(np.abs(signs @ moved) >= abs(moved.sum()) - 1e-12))
    rng = np.random.default_rng(seed)
    hits, left = 0, DRAWS
    while left:
        block = min(left, max(1, 2_000_000 // moved.size))
        signs = 1 - 2 * rng.integers(0, 2, (block, moved.size), dtype=np.int8)
        hits += int(np.sum(np.abs(signs @ moved) >= abs(moved.sum()) - 1e-12))
        left -= block
    return (1 + hits) / (1 + DRAWS)


def retest_rate(identity: dict[Any, Row]) -> Estimate:
    """How often the unchanged input gets another verdict (baseline ``clean/0`` against ``identity/0``)."""
    moved, clusters = [], []
    for row in identity.values():
        if row["protocol"] == "pointwise":
            a, b = worth(row, "clean"), worth(row, "attacked")
            if a is None or b is None:
                continue
            flips = [float(a != b)]
        else:
            first, again = row["clean_outcomes"] or "", row["attacked_outcomes"] or ""
            flips = [float(x != y) for x, y in zip(first, again) if x in "WLT" and y in "WLT"]
        moved += flips
        clusters += [row["cluster"]] * len(flips)
    if not moved:
        return Estimate.undefined("no repeat was read", low=0.0, high=1.0, method="cluster wilson")
    return cluster_bootstrap(moved, clusters)


def slots(row: Row) -> tuple[int | None, int | None]:
    """The slot that won in each order: +1 first, -1 second, 0 tie, ``None`` not read."""
    letters = row["clean_outcomes"] or ""
    picked = [int(x) for x in (row["clean_slots"] or "").split(",") if x]
    out: list[int | None] = []
    for letter, slot in zip(letters, picked):
        out.append(0 if letter == "T" else None if letter not in "WL" else 1 if slot == 0 else -1)
    first, second = (*out, None, None)[:2]
    return first, second
