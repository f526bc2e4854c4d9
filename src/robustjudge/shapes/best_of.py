"""Figure 5: ASR@1 among K candidates, with the 1/K line and the clean baseline."""

from __future__ import annotations

import itertools
from typing import Any

from robustjudge.nouns import Estimate
from robustjudge.shapes.base import Curve, Shape, Source, attacks_of, cell, doubt, published


def fig5(s: Source) -> Shape:
    """Rows: judge x K; columns: chance, the clean pick rate, each attack."""
    attacks = attacks_of(s.rows("best_of"))
    head = ("judge", "K", "chance", "clean", *attacks, "orders of each case")
    rows, curves, agreements = [], [], []
    asked = _asked(s.manifest)
    for judge in s.judges:
        found: dict[str, dict[int, Estimate]] = {name: {} for name in ("clean", *attacks)}
        for p in (p for p in s.panels if p.judge == judge.name and p.protocol == "best_of" and p.defense == "none"):
            lines = {a: p.line(a) for a in attacks}
            clean = next(
                (x.figures["clean_asr_at_1"] for x in lines.values() if x and "clean_asr_at_1" in x.figures), None
            )
            each = [x.figures.get("paper_asr_at_1") if x else None for x in lines.values()]
            for name, e in zip(("clean", *attacks), (clean, *each)):
                if e is not None and e.value is not None:
                    found[name][p.k] = e
            orders = asked.get(p.k, 0) or p.k
            rows.append((judge.name, str(p.k), f"{100 / p.k:.1f} %", cell(clean), *map(cell, each), str(orders)))
        curves += [_curve(judge.name, name, values) for name, values in found.items() if len(values) > 1]
        known = sorted({k for values in found.values() for k in values})
        if len(known) > 1:
            line = tuple((float(k), 1 / k, 1 / k, 1 / k) for k in known)
            curves.append(Curve(judge.name, "chance, 1/K", line, True))
        for a in attacks:
            agreements += _statements(judge.name, a, found[a], doubt(s.rows("best_of", judge=judge.name), None))
    ks = sorted({p.k for p in s.panels if p.protocol == "best_of"})
    notes = [f"As printed in the paper: {x}. No values are printed." for x in published()["fig5"]["order"]]
    notes.append("Part of the fall from K = 2 to K = 3 is chance alone, which falls from 50 % to 33 %.")
    missing = sorted(set(asked) - set(ks))
    if missing and ks:
        told = ", ".join(map(str, missing))
        notes.append(
            f"K = {told} was asked for, but the cases hold too few distractors: they were judged at a smaller K."
        )
    return Shape("fig5", "Best of K (Fig. 5)", head, tuple(rows), tuple(notes), tuple(agreements), tuple(curves))


def _asked(manifest: Any) -> dict[int, int]:
    """Every K of the plan with its number of orders (0: K rotations)."""
    plans = [p for p in manifest.get("protocols", []) if p.get("kind") == "best_of"]
    return {int(p.get("k", 4)): int(p.get("orders", 0)) for p in plans}


def _curve(panel: str, label: str, values: dict[int, Estimate]) -> Curve:
    points = [(float(k), float(e), e.low or 0.0, e.high or 0.0) for k, e in sorted(values.items())]
    return Curve(panel, label, tuple(points))


def _statements(judge: str, attack: str, values: dict[int, Estimate], why: str) -> list[str]:
    name = f"{judge}, {attack}: ASR@1 falls most from K = 2 to K = 3 and stays lower"
    if why:
        return [f"{name}: not comparable: {why}"]
    ks = sorted(values)
    if ks[:2] != [2, 3] or len(ks) < 3:
        return [f"{name}: not comparable: K = 2, 3 and one more are needed"]
    y = [float(values[k]) for k in ks]
    if not any(y):
        return [f"{name}: not comparable: it is never picked"]
    if all((values[k].low or 0.0) <= 1 / k <= (values[k].high or 1.0) for k in ks):
        return [f"{name}: not comparable: at no K can it be told from chance, which falls alike"]
    drops = [a - b for a, b in itertools.pairwise(y)]
    same = drops[0] > 0 and drops[0] >= max(drops) - 1e-9 and max(y[1:]) < y[0]
    return [f"{name}: {'agrees' if same else 'differs'} in order"]
