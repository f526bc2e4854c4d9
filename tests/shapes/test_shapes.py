"""Shapes of the paper's tables on scripted judges: full shape, known values, denominators, honest comparisons."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from robustjudge.config.build import plan_of
from robustjudge.config.files import read_config
from robustjudge.execution import Options, execute
from robustjudge.nouns import Estimate
from robustjudge.shapes import Shape, agreement, built, source_of, write
from robustjudge.shapes.attacks import ranks_first
from robustjudge.shapes.base import Curve, published, sign
from robustjudge.shapes.build import BUILDERS
from robustjudge.shapes.defenses import _beside, _printed, figures
from robustjudge.shapes.page import drawing
from robustjudge.suite import config_of

pytestmark = pytest.mark.xdist_group("shapes")  # one run serves several tests

FOUR = {
    "first": {"model": "scripted/gameable?judge=perfect&rate=1"},
    "second": {"model": "scripted/noisy"},
    "third": {"model": "scripted/perfect"},
    "fourth": {"model": "scripted/first_position"},
}


def ran(folder: Path, name: str, judges: dict[str, Any], **changes: Any) -> Path:
    settings = read_config(None, {**config_of(name, {"judges": judges}), **changes})
    options = Options(root=folder / "runs", ledger=folder / "ledger.sqlite", config=settings.model_dump(mode="json"))
    return execute(plan_of(settings), options).path


def shape(path: Path, name: str = "") -> Shape:
    found = built(path)
    assert found is not None
    return next(s for s in found[2] if not name or s.name == name)


def column(s: Shape, head: str) -> list[str]:
    return [row[s.head.index(head)] for row in s.rows]


@pytest.fixture(scope="module")
def table6(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("rq2"), "paper-rq2", FOUR, controls=[])


def test_table_vi_in_full_four_templates_three_attacks_four_judges(table6: Path) -> None:
    s = shape(table6)
    assert s.head[2:5] == ("H4", "H5", "H6")
    ours = [r for r in s.rows if not r[1].startswith("published")]
    theirs = [r for r in s.rows if r[1].startswith("published")]
    templates = ("vanilla", "arena_hard", "google_vertex", "optimised_paper")
    assert [(r[0], r[1]) for r in ours] == [(t, j) for t in templates for j in FOUR]
    assert len(theirs) == 16 and theirs[0][2:6] == (
        "12.92 % (31 of 240)",
        "10.00 % (24 of 240)",
        "10.00 % (24 of 240)",
        "10.97 %",
    )
    by_judge = {j: [r for r in ours if r[1] == j] for j in FOUR}
    assert all(r[2:5].count("0 % (0 to 24 %, n = 12)") == 3 for r in by_judge["third"])  # perfect: never moved
    assert all(r[2].startswith("100 % (76 to 100 %") and r[3].startswith("0 %") for r in by_judge["first"])
    assert all(r[2:6] == (("50 % (26 to 74 %, n = 12)",) * 4) for r in by_judge["fourth"]) or all(
        x.startswith("50 %") for r in by_judge["fourth"] for x in r[2:6]
    )
    assert set(column(s, "read")) == {"100 % (76 to 100 %, n = 12)", ""}
    told = "\n".join(s.agreements)
    assert (
        "second, order of the templates, beside the mean of the four published judges: not comparable: the clean judge"
        in told
    )
    assert (
        "third, order of the templates, beside the mean of the four published judges: not comparable: our figures are all equal"
        in told
    )
    assert any("built-in translation cases" in n for n in s.notes)


def test_a_changed_plan_says_so_and_files_are_written(table6: Path) -> None:
    found = built(table6)
    assert found is not None
    files = write(table6)
    page = files["html"].read_text()
    assert "content hash" in page and "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert "| template |" in files["md"].read_text()


def test_published_counts_are_the_printed_rates() -> None:
    counts = published()["table6"]["counts"]
    assert round(sum(map(sum, counts["optimised_paper"])) / (720 * 4) * 100, 2) == 7.08
    assert round(counts["mistral" if "mistral" in counts else "arena_hard"][2][0] / 240 * 100, 2) == 96.25
    none, rows = published()["table5"]["none"], published()["table5"]
    assert all(none["bdr"][0] < r["bdr"][0] for n, r in rows.items() if n != "none")
    for r in rows.values():
        assert r["bdr"][0] == pytest.approx((r["easr"][0] + 100 - r["bur"][0]) / 2, abs=0.01)


def test_best_of_k_lies_on_the_chance_line_for_a_judge_of_slots(tmp_path: Path) -> None:
    cases = [{"source": "builtin/summarization", "limit": 1}]
    path = ran(tmp_path, "paper-rq1-best-of", {"slots": {"model": "scripted/first_position"}}, cases=cases)
    s = shape(path)
    assert column(s, "K") == [str(k) for k in range(2, 11)]
    for k, chance, clean, h5, h6 in zip(*(column(s, h) for h in ("K", "chance", "clean", "H5", "H6"))):
        share = chance.split(" ")[0]
        assert float(share) == pytest.approx(100 / int(k), abs=0.05)
        assert all(x.split(" ")[0] in (share, f"{100 / int(k):.0f}") for x in (clean, h5, h6))
    assert [(c.panel, c.label) for c in s.curves] == [("slots", x) for x in ("clean", "H5", "H6", "chance, 1/K")]
    assert "polyline" in write(path)["html"].read_text()
    assert s.agreements and all("told from chance" in a for a in s.agreements)


def test_fewer_distractors_give_a_smaller_k_and_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    row = (
        '{"id": "a", "task": "t", "response": "weak", "reference": "good",'
        ' "distractors": [{"text": "one"}, {"text": "two"}], "kind": "summarization"}'
    )
    file.write_text(row + "\n")
    path = ran(
        tmp_path, "paper-rq1-best-of", {"j": {"model": "scripted/first_position"}}, cases=[{"source": str(file)}]
    )
    s = shape(path)
    assert max(map(int, column(s, "K"))) < 10
    assert any("too few distractors" in n for n in s.notes)


def test_table_v_recovers_what_the_defense_does_by_construction(tmp_path: Path) -> None:
    """A judge that obeys pleas at the end of a text; only what changes the text or the prompt can help."""
    judges = {"j": {"model": "scripted/gameable?judge=perfect&rate=1"}}
    changes: dict[str, Any] = {"cases": [{"source": "builtin/translation", "limit": 4}], "attacks": ["H4", "H6"]}
    path = ran(tmp_path, "paper-rq1-defenses", judges, **changes, defenses={"sandwich": {}, "delimiters": {}})
    s = shape(path)
    rows = {r[1]: r for r in s.rows}
    assert rows["none"][3].startswith("+0 points") and rows["none"][4].startswith("100 %")
    assert set(rows) == {"none", "sandwich", "delimiters"}
    assert rows["sandwich"][6:] == ("63.81 +- 11.35", "-4.08 +- 3.84", "92.20 +- 5.85", "35.80 +- 6.25")
    assert any("no defense at all has a BDR" in a for a in s.agreements)


def test_every_shape_can_be_made_of_every_run(table6: Path) -> None:
    source = source_of(table6)
    for build in BUILDERS.values():
        assert build(source).head


def e(value: float, half: float = 0.05) -> Estimate:
    return Estimate(value, value - half, value + half, 10, "test")


def test_orders_agree_differ_or_cannot_be_compared() -> None:
    theirs = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert agreement({"a": e(0.1), "b": e(0.3), "c": e(0.5)}, theirs).startswith("agrees in order (3 of 3")
    assert agreement({"a": e(0.1), "b": e(0.12)}, theirs) == (
        "not comparable: no two of our figures have their intervals apart (1 of 1 pairs in the printed order)"
    )
    assert agreement({"a": e(0.5), "b": e(0.1)}, theirs).startswith("differs in order (0 of 1")
    assert agreement({"a": e(0.1)}, theirs).startswith("not comparable: fewer than two")
    assert agreement({"a": e(0.1), "b": e(0.1)}, theirs) == "not comparable: our figures are all equal"
    assert agreement({}, theirs, "nobody knows") == "not comparable: nobody knows"
    assert sign(e(-0.2), False) == "agrees in sign" and sign(e(-0.2), True) == "differs in sign"
    assert sign(e(0.01), True) == "agrees in sign (its interval holds 0)"
    assert sign(Estimate.undefined("no data"), True) == "not comparable: no data"


def test_ranking_first_needs_a_difference() -> None:
    assert ranks_first("H6", {"H6": e(0.9), "H1": e(0.2)}, "") == "agrees in order"
    assert ranks_first("H6", {"H6": e(0.9), "H1": e(0.85)}, "") == "agrees in order, intervals overlap"
    assert ranks_first("H6", {"H6": e(0.9), "H1": e(0.9), "H2": e(0.1)}, "") == "agrees in order, tied with others"
    assert ranks_first("H6", {"H6": e(0.1), "H1": e(0.9)}, "") == "differs in order"
    assert ranks_first("H6", {"H6": e(0.1), "H1": e(0.15)}, "") == "differs in order, intervals overlap"
    assert ranks_first("H6", {"H6": e(0.0), "H1": e(0.0)}, "") == "not comparable: our figures are all equal"
    assert ranks_first("H6", {"H1": e(0.0)}, "").startswith("not comparable: it was not run")


def test_figures_3_4_and_6_have_their_shape_and_the_standard_its_line(tmp_path: Path) -> None:
    judges = {"hard": {"model": "scripted/perfect"}, "soft": {"model": "scripted/gameable?judge=perfect&rate=1"}}
    small: dict[str, Any] = {"cases": [{"source": "builtin/translation", "limit": 2}], "attacks": ["H5", "H6"]}
    path = ran(tmp_path, "paper-rq1", judges, **small)
    three, four = shape(path, "fig3"), shape(path, "fig4")
    assert [r[:2] for r in three.rows] == [("H5", "hard"), ("H6", "hard"), ("H5", "soft"), ("H6", "soft")]
    assert three.rows[3][4].startswith("100 %") and three.rows[3][5:] == ("94.55 %", "51.06 %")
    assert three.rows[0][5:] == ("not printed in the paper",) * 2
    assert "soft, P-ASR: H6 ranks first: agrees in order, intervals overlap" in three.agreements
    assert four.rows[0][0] == "translation" and four.rows[0][-1] == "35.3 %"
    source = source_of(path)
    six, line = BUILDERS["fig6"](source), BUILDERS["standard"](source)
    assert [r[0] for r in six.rows[:2]] == ["hard", "soft"] and sum(r[0].startswith("published") for r in six.rows) == 7
    assert {(r[0], r[1]) for r in line.rows} == {(j, p) for j in judges for p in ("pointwise", "pairwise")}


def test_names_from_outside_are_never_markup(tmp_path: Path) -> None:
    name = '<img src=x onerror=alert(1)>|"&'
    path = ran(
        tmp_path,
        "paper-rq2",
        {name: {"model": "scripted/perfect"}},
        cases=[{"source": "builtin/translation", "limit": 1}],
    )
    files = write(path)
    assert "<img" not in files["html"].read_text() and "<img" not in files["md"].read_text()


def test_the_labels_of_a_drawing_do_not_run_into_one_another() -> None:
    lengths = (64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2000)
    drawn = str(drawing([Curve("p", "overall", tuple((float(x), 5.0, 4.0, 6.0) for x in lengths))]))
    spots = [(float(x), text) for x, text in re.findall(r'<text x="([\d.]+)" y="290" [^>]*>(\d+)</text>', drawn)]
    assert spots[0][1] == "2000" and spots[0][0] + 14 <= 640
    for (right, b), (left, a) in pairwise(spots):
        assert right - left >= 3.5 * (len(a) + len(b))


def test_a_defense_beats_none_only_where_the_paired_interval_says_so() -> None:
    def keyed(values: list[float]) -> dict[tuple[str, str, float], tuple[float, str]]:
        return {(f"c{i}", "H1", 0.0): (v, f"c{i}") for i, v in enumerate(values)}

    bare, kept = keyed([1.0] * 24), {f"c{i}": 1.0 for i in range(24)}
    found = {
        "none": figures(bare, bare, kept),
        "good": figures(keyed([0.0] * 20 + [1.0] * 4), bare, kept),
        "chance": figures(keyed([0.0] + [1.0] * 23), bare, kept),
        "dear": figures(keyed([0.9] * 24), bare, dict.fromkeys(kept, 0.2)),
    }
    said = _beside(found)
    assert "beaten by good;" in said and "better than dear;" in said and "not told apart from chance" in said
    assert "no defense of this run beats it" in _beside({n: found[n] for n in ("none", "chance")})
    assert found["good"]["gain"].value == pytest.approx(20 / 48) and found["none"]["gain"].value == 0


def test_the_printed_row_without_a_defense_is_rounded_as_the_notes_say() -> None:
    assert _printed(published()["table5"]["none"]["bdr"]) == "29.87 (implied)"
    assert _printed((27.71, 9.51)) == "27.71 +- 9.51" and _printed(None) == ""
