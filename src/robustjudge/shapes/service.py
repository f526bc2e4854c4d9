"""Figure 7 (RQ3): a service's overall score and mean sub-score by the length of a task-irrelevant suffix."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from robustjudge.measures.base import LEVEL
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.nouns import Estimate
from robustjudge.shapes.base import Curve, Shape, Source, cell, published


def suffixes(db: sqlite3.Connection) -> tuple[dict[str, Any], ...]:
    """Every final verdict of the length sweep, of its search alone (length 0) and of the identity control, with sub-scores."""
    out = []
    sql = (
        "SELECT judge, attack, cluster, attacked_status, attacked_score, scale_low, scale_high, detail FROM trials"
        " WHERE protocol = 'pointwise' AND defense = 'none' AND"
        " (attack_id = 'E10' OR attack = 'score_vector' OR control = 'identity') ORDER BY cell"
    )
    for judge, attack, cluster, status, score, low, high, detail in db.execute(sql):
        final = [x for x in json.loads(detail)["shown"] if x["arm"] != "clean"]
        parts = [v for x in final[:1] for _, v in x.get("parts", [])]
        told = {"judge": judge, "attack": attack, "cluster": cluster, "status": status, "score": score}
        out.append({**told, "low": low, "high": high, "part": fmean(parts) if parts else None})
    return tuple(out)


def fig7(s: Source) -> Shape:
    """Rows: judge x suffix length; the whole curve, with intervals that hold for all lengths at once."""
    head = ("judge", "characters added", "overall score", "mean sub-score", "read", "planned")
    rows, curves, agreements = [], [], []
    for judge in sorted({x["judge"] for x in s.suffixes}):
        groups: dict[int, list[Mapping[str, Any]]] = {}
        for x in s.suffixes:
            if x["judge"] == judge:
                groups.setdefault(_length(str(x["attack"])), []).append(x)
        lengths = sorted(n for n in groups if n > 0)
        level = 1 - (1 - LEVEL) / max(1, len(lengths))
        overall: dict[int, Estimate] = {}
        parts: dict[int, Estimate] = {}
        for n in sorted(groups):
            read = [x for x in groups[n] if x["status"] == "ok" and x["score"] is not None]
            overall[n] = _mean(read, "score", level)
            parts[n] = _mean([x for x in read if x["part"] is not None], "part", level)
            label = {-1: "clean text again", 0: "search alone"}.get(n, str(n))
            rows.append((judge, label, cell(overall[n], ""), cell(parts[n], ""), str(len(read)), str(len(groups[n]))))
        for title, found in (("overall", overall), ("mean sub-score", parts)):
            points = [
                (float(n), float(e), e.low or 0.0, e.high or 0.0) for n in lengths if (e := found[n]).value is not None
            ]
            if len(points) > 1:
                curves.append(Curve(judge, title, tuple(points)))
        agreements.append(f"{judge}: the score is not monotone in length: {_monotone([overall[n] for n in lengths])}")
    notes = [f"Printed for {x['service']} (one instance): {x['text']}." for x in published()["fig7"]]
    notes.append(
        "Intervals hold for all lengths of a curve at once (Bonferroni). No length is picked after the fact: read the whole"
        " curve. Only services that you own or may test."
    )
    return Shape(
        "fig7",
        "A deployed judge and long suffixes (RQ3)",
        head,
        tuple(rows),
        tuple(notes),
        tuple(agreements),
        tuple(curves),
    )


def _length(attack: str) -> int:
    """Characters that the suffix adds; 0 for the search alone, -1 for the control."""
    head, _, rest = attack.partition("/")
    if head == "E10":
        return int(rest.partition("/")[0])
    return 0 if attack == "score_vector" else -1


def _mean(rows: list[Mapping[str, Any]], key: str, level: float) -> Estimate:
    if not rows:
        return Estimate.undefined("no score was read" if key == "score" else "no sub-scores")
    low, high = float(rows[0]["low"]), float(rows[0]["high"])
    return cluster_bootstrap([x[key] for x in rows], [x["cluster"] for x in rows], bounds=(low, high), level=level)


def _monotone(values: list[Estimate]) -> str:
    known = [e for e in values if e.value is not None]
    if len(known) < 3:
        return "not comparable: fewer than three lengths were read"
    y = [float(e) for e in known]
    turns = any(b > a for a, b in itertools.pairwise(y)) and any(b < a for a, b in itertools.pairwise(y))
    apart = any((a.low or 0) > (b.high or 0) for a, b in itertools.pairwise(known)) and any(
        (b.low or 0) > (a.high or 0) for a, b in itertools.pairwise(known)
    )
    return ("agrees" if turns else "differs") + (", with intervals apart" if turns and apart else "")
