"""What each defense buys, as a reader sees it: columns by what the attacker saw, costs, and a plot with legible labels."""

from __future__ import annotations

import re
from pathlib import Path

from core_help import cases, go, planned
from robustjudge.defenses.library import defense_of
from robustjudge.judges import Prompted
from robustjudge.models.scripted.named import open_scripted
from robustjudge.prompts.library import template
from robustjudge.reports.svg import pareto
from robustjudge.threat import ThreatModel


def test_static_transfer_and_defense_aware_stand_side_by_side_with_costs(tmp_path: Path) -> None:
    model = open_scripted("fenced")
    plan = planned(
        cases(6),
        *("identity", "H1", "O2/rules"),
        judges=(("judge", Prompted(model.name, template("vanilla").plain())),),
        defenses=(("none", None), ("delimiters", defense_of("delimiters", {}))),
        threats=(ThreatModel(), ThreatModel("undefended")),
    )
    from robustjudge import reports

    done = go(plan, tmp_path, model)
    reports.write(done.path)
    told, page = ((done.path / f"report.{x}").read_text("utf-8") for x in ("md", "html"))
    head = next(line for line in told.split("\n") if line.startswith("| success left |"))
    assert [h.strip() for h in head.strip("|").split("|")] == [
        *("success left", "static", "transfer", "defense-aware", "defense-aware minus static"),
        *("extra calls", "extra tokens", "extra seconds"),
    ]
    rows = {r.split("|")[1].strip(" `"): r for r in told[told.index(head) :].split("\n\n")[0].split("\n")[2:]}
    assert set(rows) == {"none", "delimiters"} and " 0 %" in rows["delimiters"]
    assert "the defended judge (defense-aware)" in page and "extra seconds" in page


def test_labels_of_the_plot_share_a_place_or_move_apart() -> None:
    points = [("none", 0.0, 0.84, False), ("a", 0.0, 0.84, False), ("<b>", 0.0, 0.82, True), ("far", 0.9, 0.83, True)]
    drawn = str(pareto(points))
    placed = re.findall(r'<text x="(\d+)" y="([\d.]+)">([^<]*)</text>', drawn)
    labels = {name: (float(x), float(y)) for x, y, name in placed}
    assert {"none, a", "&lt;b&gt;", "far"} <= set(labels)
    assert abs(labels["none, a"][1] - labels["&lt;b&gt;"][1]) >= 12
    assert drawn.count("<circle") == 3 and drawn.count('class="dot"') == 2
    assert drawn.count("50 %") == 2 and drawn.count("100 %") == 2
