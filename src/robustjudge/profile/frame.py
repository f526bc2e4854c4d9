"""Drawing the items to be labelled: seeded, stratified if wanted, with each item's inclusion probability on record."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from robustjudge.errors import DataError


@dataclass(frozen=True, slots=True)
class Drawn:
    """One place in a rater's sitting.  ``repeat`` 1 is a hidden repeat of an earlier item."""

    item: str
    stratum: str
    inclusion_prob: float
    position: int
    repeat: int = 0


def draw(
    items: Sequence[str],
    n: int,
    *,
    seed: int = 0,
    strata: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> tuple[Drawn, ...]:
    """``n`` of ``items`` at random without replacement, in random order.

    With ``strata`` (item -> stratum, e.g. what the judge said, to oversample a rare class) ``sizes`` says how many of
    each; without ``sizes`` the n are shared out in proportion.  Every item's inclusion probability is n_h/N_h.
    """
    if len(set(items)) != len(items):
        raise DataError("an item is listed twice in the frame")
    if n > len(items):
        raise DataError(f"{n} items wanted of {len(items)}")
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(strata.get(item, "") if strata else "", []).append(item)
    wanted = dict(sizes) if sizes is not None else _shares(groups, n)
    if set(wanted) - set(groups):
        raise DataError(f"no item in stratum {', '.join(sorted(set(wanted) - set(groups)))}")
    if sum(wanted.values()) != n:
        raise DataError(f"the stratum sizes sum to {sum(wanted.values())}, not {n}")
    rng = random.Random(seed)
    chosen: list[tuple[str, str, float]] = []
    for name in sorted(groups):
        pool, k = sorted(groups[name]), wanted.get(name, 0)
        if k > len(pool):
            raise DataError(f"stratum {name!r} has {len(pool)} items, {k} wanted")
        chosen += [(item, name, k / len(pool)) for item in rng.sample(pool, k)]
    rng.shuffle(chosen)
    return tuple(Drawn(item, name, p, position) for position, (item, name, p) in enumerate(chosen))


def _shares(groups: Mapping[str, Sequence[str]], n: int) -> dict[str, int]:
    """Largest-remainder shares of ``n``."""
    total = sum(len(g) for g in groups.values())
    if not total:
        return {}
    exact = {name: n * len(g) / total for name, g in groups.items()}
    out = {name: int(v) for name, v in exact.items()}
    for name in sorted(exact, key=lambda k: (out[k] - exact[k], k))[: n - sum(out.values())]:
        out[name] += 1
    return out


def sitting(drawn: Sequence[Drawn], *, seed: int = 0, repeats: float = 0.1) -> tuple[Drawn, ...]:
    """One rater's order: the draw reshuffled by ``seed``, with a share of hidden repeats (at least 10 % advised) that
    come in the second half and never within ten places of the first showing where that can be kept."""
    rng = random.Random(seed)
    order = list(drawn)
    rng.shuffle(order)
    early = order[: max(1, len(order) // 2)] if order else []
    again = rng.sample(early, min(len(early), ceil(repeats * len(order)))) if repeats > 0 else []
    out: list[tuple[Drawn, int]] = [(d, 0) for d in order]
    for d in again:
        first = next(i for i, (x, r) in enumerate(out) if x.item == d.item and r == 0)
        low = min(max(first + 11, len(out) // 2), len(out))
        out.insert(rng.randint(low, len(out)), (d, 1))
    return tuple(Drawn(d.item, d.stratum, d.inclusion_prob, k, r) for k, (d, r) in enumerate(out))
