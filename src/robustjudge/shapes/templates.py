"""Table VI: judge prompts against attacks, P-ASR as published (eq. 11), with what the paper does not print beside it."""

from __future__ import annotations

from robustjudge.nouns import Estimate
from robustjudge.shapes.base import (
    Shape,
    Source,
    agreement,
    cell,
    counted,
    doubt,
    published,
    published_rate,
    read_rate,
    truncated,
)

_MARKS = {"openchat": "OpenChat-3.5", "qwen2.5": "Qwen2.5-7B", "mistral": "Mistral-7B", "llama-3.1": "Llama-3.1-8B"}


def table6(s: Source) -> Shape:
    """Rows: prompt x judge, ours and then the paper's four; columns: the three attacks, their mean, and the denominators."""
    s = s.narrowed("translation")
    printed = published()["table6"]
    attacks = list(printed["attacks"])
    head = ("template", "judge", *attacks, "mean", "clean accuracy", "read", "cut at the limit", "verdicts")
    rows: list[tuple[str, ...]] = []
    means: dict[str, dict[str, Estimate]] = {}
    moved: list[tuple[str, list[Estimate]]] = []
    notes = []
    for template in (*printed["counts"], *sorted({j.template for j in s.judges} - set(printed["counts"]))):
        for judge in (j for j in s.judges if j.template == template):
            t = s.rows("pairwise", judge=judge.name)
            if not len(t):
                continue
            panel = s.panel(judge.name, "pairwise")
            found = [published_rate(t, s.settings, [a]) for a in attacks]
            mean = published_rate(t, s.settings, attacks)
            means.setdefault(judge.label, {})[template] = mean
            moved.append((judge.label, found))
            right = panel.clean.get("clean_accuracy") if panel else None
            size = str(sum(counted(t).values()))
            rows.append(
                (
                    template,
                    judge.label,
                    *map(cell, found),
                    cell(mean),
                    cell(right),
                    cell(read_rate(t)),
                    str(truncated(t)),
                    size,
                )
            )
        for name, counts, average in zip(
            printed["judges"], printed["counts"].get(template, ()), printed["printed"].get(template, ())
        ):
            shown = [f"{100 * c / 240:.2f} % ({c} of 240)" for c in counts]
            rows.append((template, f"published: {name}", *shown, f"{average:.2f} %", "", "", "", "240 per attack"))
    agreements = []
    for model, ours in means.items():
        mine = [j for j in s.judges if j.label == model]
        name = next((v for k, v in _MARKS.items() if k in mine[0].model.lower()), "")
        theirs = {
            t: sum(map(sum, cs)) / (720 * len(cs)) if not name else sum(cs[printed["judges"].index(name)]) / 720
            for t, cs in printed["counts"].items()
        }
        why = next(
            (d for j in mine if (d := doubt(s.rows("pairwise", judge=j.name), s.panel(j.name, "pairwise")))),
            "",
        )
        beside = name or "the mean of the four published judges"
        agreements.append(f"{model}, order of the templates, beside {beside}: {agreement(ours, theirs, why)}")
        agreements.append(
            f"{model}, the choice of template moves P-ASR by tens of points: {_spread(model, moved, why)}"
        )
    notes.append(
        "P-ASR as printed: every judged order that did not go to the reference counts, ties and unread verdicts included."
        " A judge whose replies are cut or unread scores high here without being fooled: see `read`."
    )
    notes.append(
        "Published rows: rates and means as printed [P], counts over 240 computed from them [C]; three printed means differ"
        " from the mean of their own row (Qwen2.5 under vanilla and google_vertex, Llama-3.1 under vanilla)."
    )
    if set(s.table.distinct("dataset")) == {"builtin"}:
        notes.append("Cases: built-in translation cases of our own, not the paper's data; compare orders, not values.")
    return Shape("table6", "Judge prompts under attack (Table VI)", head, tuple(rows), tuple(notes), tuple(agreements))


def _spread(model: str, moved: list[tuple[str, list[Estimate]]], why: str) -> str:
    if why:
        return f"not comparable: {why}"
    columns = list(zip(*(found for name, found in moved if name == model), strict=True))
    gaps = [max(v) - min(v) for col in columns if len(v := [e.value for e in col if e.value is not None]) > 1]
    if not gaps:
        return "not comparable: one template only"
    return f"{'agrees' if max(gaps) >= 0.1 else 'differs'} (largest move {100 * max(gaps):.0f} points)"
