"""Two judges on the same answers: the self-preference that is left when quality and leniency are taken out.

(own by A less own by B) less (other by A less other by B): a good answer is good for both judges, and a lenient judge is
lenient with every author, so both cancel.  Needs no label of people.  ``other`` are texts of third families where there
are any; between the two families alone the figure holds the preferences of both judges and cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robustjudge.bias.effects import Effect, Row, mean_of, retest_rate, sign_flip, worth
from robustjudge.bias.policy import ITSELF
from robustjudge.measures.intervals import wilson
from robustjudge.models.families import UNKNOWN, family_of

NAME = "self_preference_crossed"


def crossed(
    mine: Sequence[Row], others: Sequence[Row], facts: Mapping[str, Mapping[str, Any]], family: str, rival: str
) -> tuple[Effect, tuple[str, ...]] | None:
    """The effect in [-2, 2] of the judge whose family is ``family`` against the judge of family ``rival`` under one
    protocol, with its flags; ``None`` without a task that the own family and another answered.

    ``own`` and ``other`` are averaged over the texts of one task (cluster) first; of pairs, an answer's share of the wins
    in both orders stands for its score.
    """
    if family in ("", UNKNOWN) or rival in ("", UNKNOWN) or family == rival:
        return None
    by_me, by_them = _texts(mine, facts), _texts(others, facts)
    third = any(writer not in (family, rival) for _, writer, _ in by_me.values())
    shown = [k for k in by_me if k in by_them and not (third and by_me[k][1] == rival)]
    tasks: dict[Any, tuple[list[float], list[float]]] = {}
    lost = 0
    for key in shown:
        (cluster, writer, a), (_, _, b) = by_me[key], by_them[key]
        if a is None or b is None:
            lost += 1
            continue
        own, other = tasks.setdefault(cluster, ([], []))
        (own if writer == family else other).append(a - b)
    gaps = [sum(own) / len(own) - sum(other) / len(other) for own, other in tasks.values() if own and other]
    if not gaps:
        return None
    names = [c for c, (own, other) in tasks.items() if own and other]
    effect = mean_of(gaps, names, 2.0)
    side = 2.0 if (effect.value or 0.0) >= 0 else -2.0
    lacking = len({by_me[k][0] for k in shown} - set(names)) if lost else 0
    worst = mean_of([*gaps, *[side] * lacking], [*names, *range(lacking)], 2.0)
    read = wilson(len(shown) - lost, len(shown))
    retest = retest_rate({(r["case_id"], r["seed"]): r for r in mine if r["attack"] == "identity"})
    flags = () if third else (f"no third family: the preference of {rival} for its own is in it too",)
    return Effect(effect, sign_flip(gaps, names), retest, read, worst, None, None), flags


Text = tuple[Any, str, float | None]


def _texts(rows: Sequence[Row], facts: Mapping[str, Mapping[str, Any]]) -> dict[Any, Text]:
    """(cluster, family of the author, what the judge says) of every text whose author is known."""
    return {k: v for row in rows for k, v in _of(row, facts)}


def _of(row: Row, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Any, Text]]:
    case = row["case_id"]
    told = facts.get(case, {})
    writers = [family_of(str(told[k])) if told.get(k) else "" for k in ("generator", "reference_generator")]
    if case.endswith(ITSELF) or row["attack"] not in ("identity", "bias/reference"):
        return
    if row["protocol"] == "pointwise":
        at, arm = (0, "clean") if row["attack"] == "identity" else (1, "attacked")
        if writers[at] not in ("", UNKNOWN):
            yield (case, row["seed"], at), (row["cluster"], writers[at], worth(row, arm))
    elif not {"", UNKNOWN} & set(writers) and writers[0] != writers[1]:
        share = worth(row, "clean")
        for at, writer in enumerate(writers):
            value = share if at == 0 or share is None else 1 - share
            yield (case, row["seed"], at), (row["cluster"], writer, value)
