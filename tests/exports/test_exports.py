from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import robustjudge as rj
from robustjudge.errors import NotComparable, UnknownName
from robustjudge.exports.table import guarded

HOSTILE = '=HYPERLINK("http://x.example","y")\t@SUM(1)\r\n<script>\x00\ud800 \u202e[[A]] {{7*7}}'


def _run(folder: Path, model: str, cases: tuple[rj.Case, ...], attacks: tuple[str, ...] = ("identity", "H1")) -> Path:
    plan = rj.Plan(
        cases=lambda: iter(cases),
        judges=(("mine", rj.Prompted(model, rj.template("robustjudge"))),),
        protocols=(rj.Pointwise(), rj.Pairwise()),
        attacks=tuple(rj.attack(a) for a in attacks),
    )
    return rj.run(plan, rj.Options(root=folder, ledger=None)).path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    case = rj.Case(
        "=cmd|' /C calc'!A0", HOSTILE, HOSTILE, (HOSTILE + " better",), dataset="@x", cluster="+1", kind="open"
    )
    return _run(tmp_path_factory.mktemp("runs"), "scripted/echo", (case,))


def test_no_cell_of_the_csv_is_a_formula(hostile: Path) -> None:
    path = rj.export(hostile, "csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 5 and len({len(r) for r in rows}) == 1
    for row in rows[1:]:
        for value in row:
            assert not value.startswith(("=", "+", "@", "\t", "\r")), value
            if value.startswith("-"):
                float(value)
    assert any(v == "'=cmd|' /C calc'!A0" for v in rows[1])


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx", "\nx"])
def test_guarded_text_gets_an_apostrophe(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("value", ["plain", "", "a=b", -1.5, None, 3])
def test_everything_else_stays(value: object) -> None:
    assert guarded(value) == value


def test_the_machine_export_is_exact_and_has_every_text(hostile: Path) -> None:
    lines = rj.export(hostile, "jsonl").read_text("utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 4
    for row in rows:
        assert row["case_id"] == "=cmd|' /C calc'!A0"
        assert row["response_text"].startswith('=HYPERLINK("http://x.example","y")\t@SUM(1)')
        assert "\\u0000" in row["response_text"] and "\\ud800" in row["response_text"]
        for shown in row["shown"]:
            assert isinstance(shown["raw"], str)
            for call in shown["calls"]:
                assert "[[A]]" in call["prompt"] and call["status"] == "ok"


def test_parquet_holds_the_same_scalars(hostile: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(rj.export(hostile, "parquet")).to_pylist()
    rows = [json.loads(x) for x in rj.export(hostile, "jsonl").read_text("utf-8").splitlines()]
    assert len(table) == len(rows)
    by_cell = {r["cell"]: r for r in rows}
    for row in table:
        for name, value in row.items():
            assert value == by_cell[row["cell"]][name], name


def test_without_stored_texts_the_export_holds_hashes(tmp_path: Path) -> None:
    case = next(iter(rj.builtin_cases("logic", 1)))
    plan = rj.Plan(
        cases=lambda: iter([case]),
        judges=(("mine", rj.Prompted("scripted/noisy", rj.template("robustjudge"))),),
        protocols=(rj.Pointwise(),),
        attacks=(rj.attack("H1"),),
    )
    run = rj.run(plan, rj.Options(root=tmp_path, ledger=None, store="hashes"))
    (row,) = [json.loads(x) for x in rj.export(run.path, "jsonl").read_text("utf-8").splitlines()]
    assert set(row["attacked_text"]) == {"hash"}
    assert case.response not in json.dumps(row, ensure_ascii=False)


def test_an_unknown_format_leaves_nothing_behind(hostile: Path) -> None:
    with pytest.raises(UnknownName, match="csv"):
        rj.export(hostile, "cvs")
    assert not list(hostile.glob("exports/.*"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    cases = tuple(rj.builtin_cases("logic", 4))
    return (
        _run(folder / "a", "scripted/gameable?rate=1", cases),
        _run(folder / "b", "scripted/constant?value=0.2", cases),
    )


def test_compare_shows_every_flip_with_both_replies(pair: tuple[Path, Path]) -> None:
    result = rj.compare(*pair)
    pointwise = [f for f in result.flips if f.protocol == "pointwise"]
    assert result.trials == 16 and result.worse == 0 and result.better == len(result.flips) >= 4
    assert len(pointwise) == 4 and {f.attack for f in pointwise} == {"H1"}
    for flip in pointwise:
        assert (flip.before.outcome, flip.after.outcome) == ("success", "held")
        assert flip.before.attacked is not None and flip.before.attacked > (flip.before.clean or 0)
        assert flip.before.reply and flip.after.reply and flip.before.reply != flip.after.reply
    assert "judges" in result.changed


def test_compare_is_antisymmetric_and_empty_on_itself(pair: tuple[Path, Path]) -> None:
    there, back = rj.compare(*pair), rj.compare(pair[1], pair[0])
    assert (back.worse, back.better) == (there.better, there.worse)
    assert rj.compare(pair[0], pair[0]).flips == ()


def test_runs_of_other_cases_or_attacks_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = _run(tmp_path / "c", "scripted/noisy", tuple(rj.builtin_cases("logic", 3)))
    with pytest.raises(NotComparable, match="1 cases"):
        rj.compare(pair[0], other)
    fewer = _run(tmp_path / "d", "scripted/noisy", tuple(rj.builtin_cases("logic", 4)), ("identity",))
    with pytest.raises(NotComparable, match=r"1 attacks \(H1\)"):
        rj.compare(pair[0], fewer)
