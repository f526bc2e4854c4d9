"""Figures 3 and 4, and the table of ``standard-1``: attacks, tasks, and judges at a glance."""

from __future__ import annotations

from robustjudge.nouns import Estimate
from robustjudge.shapes.base import (
    NOT_PRINTED,
    Shape,
    Source,
    agreement,
    attacks_of,
    cell,
    doubt,
    published,
    published_rate,
    read_rate,
    sign,
    truncated,
)


def fig3(s: Source) -> Shape:
    """Attacks on translation: ASR and iSDR of single responses, P-ASR of pairs, per judge."""
    s = s.narrowed("translation")
    printed = published()["fig3"]
    head = ("attack", "judge", "ASR", "iSDR", "P-ASR", "published ASR", "published P-ASR")
    rows, agreements = [], []
    for judge in s.judges:
        alone, pair = s.panel(judge.name, "pointwise"), s.panel(judge.name, "pairwise")
        measures: dict[str, dict[str, Estimate]] = {"ASR": {}, "iSDR": {}, "P-ASR": {}}
        for attack in attacks_of(s.rows(judge=judge.name)):
            one, two = (p.line(attack) if p else None for p in (alone, pair))
            asr, isdr = (one.figures.get(n) if one else None for n in ("paper_asr", "paper_isdr"))
            p_asr = two.figures.get("paper_p_asr") if two else None
            name = attack.partition("/")[0]
            for key, e in (("ASR", asr), ("iSDR", isdr), ("P-ASR", p_asr)):
                if e is not None:
                    measures[key][name] = e
            theirs = [f"{printed[k][name]:.2f} %" if name in printed[k] else NOT_PRINTED for k in ("asr", "p_asr")]
            rows.append((attack, judge.name, cell(asr), cell(isdr, ""), cell(p_asr), *theirs))
        why = doubt(s.rows("pairwise", judge=judge.name), pair) if pair else ""
        for key, found in measures.items():
            agreements.append(f"{judge.name}, {key}: H6 ranks first: {ranks_first('H6', found, why)}")
        for name in printed["negative_isdr"]:
            if name in measures["iSDR"]:
                agreements.append(
                    f"{judge.name}, {name} has a negative iSDR: {sign(measures['iSDR'][name], False, why)}"
                )
    notes = [f"As printed in the paper: {x}." for x in printed["order"]]
    return Shape("fig3", "Attacks on translation (Fig. 3)", head, tuple(rows), tuple(notes), tuple(agreements))


def ranks_first(name: str, found: dict[str, Estimate], why: str) -> str:
    """Whether an attack ranks first, and whether its interval lies above all others."""
    known = {k: e for k, e in found.items() if e.value is not None}
    if why:
        return f"not comparable: {why}"
    if name not in known or len(known) < 2:
        return "not comparable: it was not run beside others"
    values = [float(e) for e in known.values()]
    if max(values) - min(values) < 1e-9:
        return "not comparable: our figures are all equal"
    mine = known.pop(name)
    if float(mine) < max(float(e) for e in known.values()) - 1e-9:
        below = any((mine.high or 0.0) < (e.low or 0.0) for e in known.values())
        return "differs in order" if below else "differs in order, intervals overlap"
    tied = any(abs(float(e) - float(mine)) < 1e-9 for e in known.values())
    alone = all((e.high or 0.0) < (mine.low or 0.0) for e in known.values())
    return "agrees in order" + (", tied with others" if tied else "" if alone else ", intervals overlap")


def fig4(s: Source) -> Shape:
    """P-ASR per task, pooled over the run's attacks and judges."""
    printed = published()["fig4"]
    wanted = [a for a in ("H4", "H5", "H6") if a in attacks_of(s.rows("pairwise"))] or None
    head = ("task", "P-ASR, ours", *(j.name for j in s.judges), "published P-ASR")
    rows, ours = [], {}
    for task in sorted(s.table.distinct("task"), key=lambda t: -printed.get(t, 0.0)):
        pooled = published_rate(s.rows("pairwise", task), s.settings, wanted)
        if pooled.value is not None:
            ours[task] = pooled
        each = [cell(published_rate(s.rows("pairwise", task, j.name), s.settings, wanted)) for j in s.judges]
        low_high = printed["range"].get(task)
        theirs = f"{printed[task]:.1f} %" if task in printed else NOT_PRINTED
        rows.append((task, cell(pooled), *each, f"{low_high[0]} to {low_high[1]} %" if low_high else theirs))
    unread = read_rate(s.rows("pairwise"))
    why = "only part of the verdicts could be read" if unread.value is not None and unread.value < 0.8 else ""
    told = agreement(ours, {k: v for k, v in printed.items() if isinstance(v, float)}, why)
    named = ", ".join(wanted) if wanted else "all attacks of the run"
    notes = (f"Mean of {named}; the paper's is a mean of three attacks and four judges.",)
    return Shape("fig4", "Tasks (Fig. 4)", head, tuple(rows), notes, (f"order of the tasks: {told}",))


def standard(s: Source) -> Shape:
    """One line per judge and protocol: what is quoted."""
    head = (
        *(
            "judge",
            "protocol",
            "some attack succeeds",
            "noise alone",
            "robust accuracy",
            "clean accuracy or mean score",
        ),
        *("read", "cut at the limit"),
    )
    rows = []
    for p in s.panels:
        t = s.rows(p.protocol, judge=p.judge, defense=p.defense)
        clean = p.clean.get("clean_accuracy")
        mean = p.clean.get("mean_unit")
        shield = "" if p.defense == "none" else f" behind {p.defense}"
        rows.append(
            (
                f"{p.judge}{shield}",
                p.protocol if p.protocol != "best_of" else f"best of {p.k}",
                cell(p.worst.get("any_attack")),
                cell(p.worst.get("null")),
                cell(p.worst.get("robust_accuracy")) if "robust_accuracy" in p.worst else "",
                cell(clean) if clean is not None else cell(mean, ""),
                cell(read_rate(t)),
                str(truncated(t)),
            )
        )
    note = "Shares of attackable cases, corrected for content; 95 % intervals over cases. Quote them with the suite's name."
    return Shape("standard", "At a glance", head, tuple(rows), (note,))


def fig6(s: Source) -> Shape:
    """Judges: mean ASR and mean iSDR over the run's attacks, one response at a time."""
    s = s.narrowed("translation")
    head = ("judge", "mean ASR", "mean iSDR", "read", "cut at the limit")
    rows, asr, isdr = [], {}, {}
    for judge in s.judges:
        panel = s.panel(judge.name, "pointwise")
        if panel is None:
            continue
        t = s.rows("pointwise", judge=judge.name)
        asr[judge.name] = published_rate(t, s.settings)
        isdr[judge.name] = _isdr(t)
        rows.append(
            (judge.name, cell(asr[judge.name]), cell(isdr[judge.name], ""), cell(read_rate(t)), str(truncated(t)))
        )
    for x in published()["fig6"]:
        shown = f"{x['isdr']:.4f}" if "isdr" in x else NOT_PRINTED
        rows.append((f"published: {x['judge']}", f"{x['asr']:.2f} %", shown, "", ""))
    known = {k: float(e) for k, e in isdr.items() if e.value is not None}
    told = agreement(asr, known)
    if told.startswith("agrees"):
        told = "differs: ours are ranked alike by both"
    elif told.startswith("differs"):
        told = "agrees: ours are ranked differently too"
    note = "ASR counts how often a score moved, iSDR by how much: a judge of little noise can be high on one, low on the other."
    statement = f"ASR and iSDR rank judges differently: {told}"
    return Shape("fig6", "Judges (Fig. 6)", head, tuple(rows), (note,), (statement,))


def _isdr(t: object) -> Estimate:
    from robustjudge.measures import paper

    rows = t.where(t["control"].equals("") | (t["control"].codes < 0))  # type: ignore[attr-defined, index]
    m = paper.movement(rows["clean_score"], rows["attacked_score"], rows["quality_clean"], rows["quality_attacked"])
    return paper.paper_isdr(m, rows["cluster"].codes)
