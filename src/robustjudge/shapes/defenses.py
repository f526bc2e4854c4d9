"""Table V: what each defense leaves of the attacks (eASR), what it costs on clean text (BUR), and both in one (BDR)."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from robustjudge.measures.bootstrap import cluster_bootstrap, paired_bootstrap
from robustjudge.measures.paper import ZETA
from robustjudge.measures.views import scores
from robustjudge.nouns import Estimate
from robustjudge.shapes.base import Shape, Source, agreement, cell, doubt, published


def table5(s: Source) -> Shape:
    """Rows: judge x defense, ``none`` always among them; the printed row beside each."""
    s = s.narrowed("translation")
    printed = published()["table5"]
    head = ("judge", "defense", "eASR", "delta-ASR", "BUR", "BDR", "printed eASR", "delta-ASR", "BUR", "BDR")
    rows, agreements = [], []
    kinds = {name: (spec or {}).get("kind", name) for name, spec in s.manifest.get("defenses", {}).items()}
    for judge in s.judges:
        bare = _attacked(s, judge.name, "none")
        found: dict[str, dict[str, Estimate]] = {}
        for defense in sorted(
            s.rows("pointwise", judge=judge.name, defense="").distinct("defense"), key=lambda d: d != "none"
        ):
            mine = _attacked(s, judge.name, defense)
            benign = _benign(s, judge.name, defense)
            name = str(kinds.get(defense, defense)) if defense != "none" else "none"
            found[name] = figures(mine, bare, benign)
            f = found[name]
            shown = [_printed(printed.get(name, {}).get(k)) for k in ("easr", "delta", "bur", "bdr")]
            rows.append(
                (
                    judge.name,
                    defense,
                    cell(f["easr"]),
                    cell(f["delta"], "points"),
                    cell(f["bur"]),
                    cell(f["bdr"]),
                    *shown,
                )
            )
        why = doubt(s.rows("pointwise", judge=judge.name), None)
        for key, title in (("easr", "eASR"), ("bur", "BUR"), ("bdr", "BDR")):
            ours = {n: f[key] for n, f in found.items()}
            theirs = {n: r[key][0] for n, r in printed.items()}
            agreements.append(f"{judge.name}, order of the defenses by {title}: {agreement(ours, theirs, why)}")
        none = found.get("none", {}).get("bdr")
        if none is not None and none.value is not None:
            agreements.append(f"{judge.name}: no defense at all has a BDR of {cell(none)}; {_beside(found)}")
    notes = (
        "Printed: mean and sample standard deviation over six directions. The row `none` follows from the printed ones"
        " (eASR + delta-ASR = 59.73 %, BUR 100 %): its BDR of 29.87 % is below that of every printed defense.",
        "The printed row of StruQ implies another baseline (66.30 %): with the common one its reduction is -0.08 points.",
        "Ours: delta-ASR is paired with the same cases and attacks without the defense; BUR is the share of clean texts"
        " accepted (detectors), or 1 minus a tenth of the mean score change (others).",
    )
    return Shape("table5", "Defenses (Table V)", head, tuple(rows), notes, tuple(agreements))


def _beside(found: dict[str, dict[str, Estimate]]) -> str:
    """Which defenses are better or worse than none, where the paired interval of the difference leaves 0 out."""
    gains = {n: f["gain"] for n, f in found.items() if n != "none" and f["gain"].value is not None}
    better = [n for n, g in gains.items() if g.low is not None and g.low > 0]
    worse = [n for n, g in gains.items() if g.high is not None and g.high < 0]
    same = [n for n in gains if n not in better and n not in worse]
    told = [f"beaten by {', '.join(better)}" if better else "no defense of this run beats it"]
    told += [f"better than {', '.join(worse)}"] if worse else []
    told += [f"not told apart from {', '.join(same)}"] if same else []
    return "; ".join(told) + " (95 %, paired by case)"


Keyed = dict[tuple[str, str, float], tuple[float, str]]


def _attacked(s: Source, judge: str, defense: str) -> Keyed:
    """Published success of every attacked trial by (case, attack, seed), with its cluster; a blocked one failed."""
    t = s.rows("pointwise", judge=judge, defense=defense)
    t = t.where(t["control"].equals("") | (t["control"].codes < 0))
    if not len(t):
        return {}
    view = scores(t, s.settings)
    return {
        (t["case_id"][i], t["attack"][i], float(t["seed"][i])): (float(view.published[i]), t["cluster"][i])
        for i in range(len(t))
    }


def _benign(s: Source, judge: str, defense: str) -> dict[str, float]:
    """Per case: 0 if the defense blocked the clean text, else what is left of its score's usefulness."""
    clean = {d: _clean(s, judge, d) for d in ("none", defense)}
    out = {}
    for case, (status, score) in clean[defense].items():
        if status == "blocked":
            out[case] = 0.0
        elif status == "ok" and case in clean["none"] and clean["none"][case][0] == "ok":
            out[case] = max(0.0, 1.0 - ZETA * abs(score - clean["none"][case][1]))
    return out


def _clean(s: Source, judge: str, defense: str) -> dict[str, tuple[str, float]]:
    t = s.rows("pointwise", judge=judge, defense=defense)
    return {t["case_id"][i]: (t["clean_status"][i] or "", float(t["clean_score"][i])) for i in range(len(t))}


def figures(mine: Keyed, bare: Keyed, benign: dict[str, float]) -> dict[str, Estimate]:
    """eASR, paired delta-ASR, BUR and BDR with intervals over clusters, and by how much the BDR is lower than without
    the defense, paired by case."""
    nothing = Estimate.undefined("not run", low=0.0, high=1.0)
    if not mine:
        return dict.fromkeys(("easr", "delta", "bur", "bdr", "gain"), nothing)
    easr = cluster_bootstrap([v for v, _ in mine.values()], [c for _, c in mine.values()])
    both = [k for k in mine if k in bare]
    delta = (
        paired_bootstrap([bare[k][0] for k in both], [mine[k][0] for k in both], [mine[k][1] for k in both])
        if both
        else Estimate.undefined("no matched baseline", low=-1.0, high=1.0)
    )
    clusters = {case: cluster for (case, _, _), (_, cluster) in mine.items()}
    known = [c for c in benign if c in clusters]
    if not known:
        return {"easr": easr, "delta": delta, "bur": nothing, "bdr": nothing, "gain": nothing}
    bur = cluster_bootstrap([benign[c] for c in known], [clusters[c] for c in known])
    after, before = _by_case(mine), _by_case({k: bare[k] for k in both})
    risk = {c: (after[c] + 1.0 - benign[c]) / 2 for c in known}
    bdr = cluster_bootstrap(list(risk.values()), [clusters[c] for c in known])
    paired = [c for c in known if c in before]
    gain = (
        paired_bootstrap([before[c] / 2 for c in paired], [risk[c] for c in paired], [clusters[c] for c in paired])
        if paired
        else nothing
    )
    return {"easr": easr, "delta": delta, "bur": bur, "bdr": bdr, "gain": gain}


def _by_case(found: Keyed) -> dict[str, float]:
    """Mean success over the attacks and seeds of each case."""
    each: dict[str, list[float]] = {}
    for (case, _, _), (value, _) in found.items():
        each.setdefault(case, []).append(value)
    return {case: float(np.mean(values)) for case, values in each.items()}


def _printed(value: Any) -> str:
    if not value:
        return ""
    shown = Decimal(str(value[0])).quantize(Decimal("0.01"), ROUND_HALF_UP)  # 29.865 is 29.87, as the notes say
    return f"{shown}" + (f" +- {value[1]:.2f}" if len(value) > 1 else " (implied)")
