"""A smaller K than was asked for is said in the report, with the number of cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core_help import cases, go, planned
from robustjudge import reports
from robustjudge.judges import Prompted
from robustjudge.models.scripted.named import open_scripted
from robustjudge.nouns import Weak
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf


def test_cases_with_too_few_distractors_are_counted(tmp_path: Path) -> None:
    model = open_scripted("perfect")
    found = [
        replace(c, distractors=tuple(Weak(f"wrong {i} {c.id}") for i in range(n)))
        for c, n in zip(cases(4), (0, 1, 1, 5))
    ]

    def told(k: int) -> str:
        judges = (("j", Prompted(model.name, template("robustjudge"))),)
        done = go(planned(found, "H1", judges=judges, protocols=(BestOf(k),)), tmp_path / str(k), model)
        reports.write(done.path)
        return (done.path / "report.md").read_text("utf-8")

    assert "best of 4 was asked for, and 3 of 4 cases hold fewer distractors" in told(
        4
    ) and "smaller K (2 to 3)" in told(4)
    assert "was asked for" not in told(2)
