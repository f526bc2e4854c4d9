"""A leaderboard compares runs of one frozen plan, ranks within intervals, and refuses everything else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from robustjudge.cli.app import run as command
from robustjudge.config.build import plan_of
from robustjudge.config.files import read_config
from robustjudge.errors import DataError, NotComparable
from robustjudge.execution import Options, execute
from robustjudge.leaderboard import Entry, entries, page, ranks
from robustjudge.nouns import Estimate
from robustjudge.suite import config_of


def ran(folder: Path, judge: str, model: str, suite: str = "paper-rq2-judges", tag: str = "") -> Path:
    settings = read_config(None, config_of(suite, {"judges": {judge: {"model": model}}}))
    settings = settings.model_copy(update={"suite": settings.suite + tag})
    kept = {**settings.model_dump(mode="json")}
    fast = settings.model_copy(update={"attacks": ["H4"], "cases": [settings.cases[0].model_copy(update={"limit": 3})]})
    return execute(plan_of(fast), Options(root=folder, ledger=None, config=kept)).path


def test_runs_of_one_suite_meet_on_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        ran(tmp_path, "<b>soft</b>", "scripted/gameable?judge=perfect&rate=1"),
        ran(tmp_path, "hard", "scripted/perfect"),
    ]
    suite, found = entries(runs)
    assert suite.startswith("paper-rq2-judges@") and len(found) == 2
    html = page(suite, found)
    assert "<b>" not in html and html.index("hard") < html.index("&lt;b&gt;soft") and "<script" not in html
    target = tmp_path / "out" / "board.html"
    assert command(["leaderboard", *map(str, runs), "-o", str(target)]) == 0
    assert target.read_text() == html and "hard" in capsys.readouterr().out


def test_different_suites_changed_plans_and_doubles_are_refused(tmp_path: Path) -> None:
    one = ran(tmp_path, "a", "scripted/perfect")
    with pytest.raises(NotComparable, match="different things"):
        entries([one, ran(tmp_path, "b", "scripted/perfect", "paper-rq1-defenses")])
    with pytest.raises(NotComparable, match="cases were changed"):
        entries([one, ran(tmp_path, "b", "scripted/perfect", tag="+cases")])
    with pytest.raises(DataError, match="leave one out"):
        entries([one, ran(tmp_path, "a", "scripted/perfect")])
    with pytest.raises(DataError):
        entries([])
    manifest = one / "manifest.json"
    told: dict[str, Any] = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "state": "incomplete"}))
    with pytest.raises(NotComparable, match="incomplete"):
        entries([one])
    told["config"]["suite"] = ""
    manifest.write_text(json.dumps(told))
    with pytest.raises(NotComparable, match="belongs to no suite"):
        entries([one])


def entry(judge: str, low: float, high: float) -> Entry:
    middle = Estimate((low + high) / 2, low, high, 10, "test")
    return Entry(judge, "pairwise", "r", "", middle, None, None, middle, 0)


def test_a_rank_is_a_range_where_intervals_overlap() -> None:
    assert ranks([entry("a", 0.0, 0.2), entry("b", 0.1, 0.3), entry("c", 0.5, 0.9)]) == {
        "a": (1, 2),
        "b": (1, 2),
        "c": (3, 3),
    }


def test_a_judge_that_does_not_judge_has_no_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No attack moves a constant judge, one that always picks a slot, or one that is not read: none of them is first."""
    doubted = [replace(entry("deaf", 0.0, 0.1), doubt="only 10 % of the verdicts could be read"), entry("a", 0.5, 0.9)]
    assert ranks(doubted) == {"a": (1, 1)}
    html = page("s", doubted)
    assert html.index("<td>a<") < html.index("<td>deaf<") and "not ranked: only 10 %" in html
    models = {"soft": "scripted/gameable?judge=perfect&rate=1", "left": "scripted/first_position"}
    runs = [ran(tmp_path, name, model, "standard-1") for name, model in models.items()]
    _, found = entries(runs)
    assert {(e.judge, e.protocol): bool(e.doubt) for e in found} == {
        ("soft", "pointwise"): False,
        ("soft", "pairwise"): False,
        ("left", "pointwise"): True,
        ("left", "pairwise"): True,
    }
    assert command(["leaderboard", *map(str, runs), "-o", str(tmp_path / "b.html")]) == 0
    said = capsys.readouterr().out
    assert "pairwise: soft: 100 %" in said and "not ranked: the clean judge prefers the reference" in said
