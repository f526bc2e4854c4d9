"""The label file: bad rows are named and skipped, the rest goes on; types and orientations are never guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import DataError
from robustjudge.profile.longform import BadLabel, LabelRow, from_wide, read_labels
from robustjudge.profile.table import address, anchors, collect


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_csv_with_bad_rows(tmp_path: Path) -> None:
    text = (
        "item_id,rater_id,rater_kind,label,inclusion_prob\n"
        'a,h1,human,"yes\n",0.5\n'
        "b,h1,human,no\n"
        "c,h1,person,no,1\n"
        "d,h1,human,,1\n"
        "e,h1,human,no,1.5\n"
        ",h1,human,no,1\n"
    )
    got = list(read_labels(write(tmp_path, "labels.csv", text)))
    good = [r for r in got if isinstance(r, LabelRow)]
    bad = [r for r in got if isinstance(r, BadLabel)]
    assert [(r.item_id, r.label, r.inclusion_prob) for r in good] == [("a", "yes", 0.5), ("d", None, 1.0)]
    assert [(b.line, b.column) for b in bad] == [(4, "-"), (5, "rater_kind"), (7, "inclusion_prob"), (8, "item_id")]
    assert str(bad[1]) == "labels.csv, line 5, rater_kind: 'person' is none of human, judge, adjudicated"


def test_jsonl_types_are_kept(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "rater_id": "h", "rater_kind": "human", "label": 2},
        {"item_id": "b", "rater_id": "h", "rater_kind": "human", "label": "2"},
        {"item_id": "c", "rater_id": "h", "rater_kind": "human", "label": True},
        {"item_id": "d", "rater_id": "judge:x", "rater_kind": "judge", "label": "2", "status": "refused"},
    ]
    text = "\n".join([*map(json.dumps, rows), "{broken", "[1]", ""])
    got = list(read_labels(write(tmp_path, "labels.jsonl", text)))
    assert [r.label_type for r in got if isinstance(r, LabelRow)] == ["number", "text", "boolean", "text"]
    assert [r.label for r in got if isinstance(r, LabelRow)] == ["2", "2", "true", None]
    assert [b.line for b in got if isinstance(b, BadLabel)] == [5, 6]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"item_id": ["a"], "rater_id": ["h"], "rater_kind": ["human"], "label": ["yes"], "repeat": [1]})
    parquet.write_table(table, tmp_path / "labels.parquet")
    (row,) = read_labels(tmp_path / "labels.parquet")
    assert isinstance(row, LabelRow) and row.repeat == 1 and row.label == "yes"


def test_a_wide_table_is_refused_unless_stated(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="wide table"):
        list(read_labels(write(tmp_path, "wide.csv", "item,h1,h2\na,yes,no\n")))
    with pytest.raises(DataError, match="orientation"):
        list(from_wide({"a": {"h1": "yes"}}, "?"))
    rows = list(from_wide({"a": {"h1": "yes", "h2": None}}, "columns"))
    assert [(r.item_id, r.rater_id, r.label) for r in rows] == [("a", "h1", "yes"), ("a", "h2", None)]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_a_row_or_a_named_fault(tmp_path_factory: pytest.TempPathFactory, item: str, label: str) -> None:
    file = tmp_path_factory.mktemp("any") / "labels.jsonl"
    row = {"item_id": item, "rater_id": "h", "rater_kind": "human", "label": label}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (got,) = read_labels(file)
    if isinstance(got, LabelRow):
        got.item_id.encode("utf-8")
        assert got.item_id and "\x00" not in got.item_id
    else:
        assert got.column == "item_id" and not item.replace("\x1c", " ").strip()


def test_a_file_and_its_rows_make_one_table(tmp_path: Path) -> None:
    """Rows that differ only in their item are gathered while reading: nothing of them may be lost or doubled."""
    lines = ["item_id,rater_id,rater_kind,label,stratum,inclusion_prob,seconds,session,position,score,repeat,status"]
    for i in range(40):
        for rater in ("h1", "h2"):
            label = "" if i % 11 == 0 else "yes" if (i + len(rater)) % 3 else "no"
            lines.append(f"i{i},{rater},human,{label},s{i % 2},0.5,{i}.5,one,{i},,,")
        status = "refused" if i % 7 == 0 else ""
        lines.append(f"i{i},judge:x,judge,{'' if status else 'yes'},s{i % 2},0.5,,,,0.{i:02d},,{status}")
    lines += ["i1,h1,human,no,s1,0.5,3,one,40,,1,", "i2,third,adjudicated,no,s0,0.5,,,,,,"]
    file = write(tmp_path, "labels.csv", "\n".join(lines) + "\n")
    one, other = collect(file), collect(list(read_labels(file)))
    assert set(one.items) == set(other.items) and len(one.items) == 40
    for part in ("human", "repeats", "adjudicated", "verdicts", "status", "scores", "stratum", "probability", "seen"):
        assert getattr(one, part) == getattr(other, part), part
    assert one.types == other.types
    assert {r: v.rows() for r, v in one.sitting.items()} == {r: v.rows() for r, v in other.sitting.items()}
    assert address(one) == address(other) and anchors(one) == anchors(other)


def test_numbers_that_cannot_be_used_are_named_among_gathered_rows(tmp_path: Path) -> None:
    lines = ["item_id,rater_id,rater_kind,label,seconds,position,score"]
    lines += [f"i{k},h1,human,yes,{k}.5,{k}," for k in range(30)]
    bad = {4: "-1,4,", 7: "x,7,", 9: "1,2.5,", 12: "nan,1,", 15: "1,inf,", 20: "3,-2,", 22: "3,2,1.5"}
    for k, cells in bad.items():
        lines[k + 1] = f"i{k},h1,human,yes,{cells}"
    lines[26] = "i25,h1,human,yes, , ,"
    file = write(tmp_path, "labels.csv", "\n".join(lines) + "\n")
    table = collect(file)
    assert [r.line for r in table.rejected] == [k + 2 for k in bad]
    assert [r.column for r in table.rejected] == [
        "seconds",
        "seconds",
        "position",
        "seconds",
        "position",
        "position",
        "score",
    ]
    assert set(table.human["h1"]) == {f"i{k}" for k in range(30) if k not in bad}
    assert len(table.sitting["h1"].rows()) == 22 and table.sitting["h1"].rows()[0] == ("", 0, "i0", 0.5)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("a,h1,human,yes,s,0.5", "b,h1,human,yes,s,0.5", "a,h1,human,yes,s,0.5"), "a by h1 in lines 2 and 4"),
        (("a,h1,human,yes,s,0.5", "b,h1,human,yes,s,0.5", "a,h1,human,no,s,0.5"), "a by h1 in lines 2 and 4"),
        (("a,h3,adjudicated,yes,s,0.5", "a,h4,adjudicated,no,s,0.5"), "a by h4 in lines 2 and 3"),
        (("a,h1,human,yes,s,0.5", "a,h2,human,yes,t,0.5"), "stratum of a is 's' and, in line 3, 't'"),
        (("a,h1,human,yes,s,0.5", "a,h2,human,yes,s,0.2"), "inclusion_prob of a is 0.5 and, in line 3, 0.2"),
        (("a,judge:x,judge,yes,s,0.5", "a,judge:y,judge,yes,s,0.5"), "one judge, but the file holds judge:x, judge:y"),
    ],
)
def test_contradictions_are_named_with_their_lines(tmp_path: Path, rows: tuple[str, ...], words: str) -> None:
    text = "\n".join(("item_id,rater_id,rater_kind,label,stratum,inclusion_prob", *rows)) + "\n"
    file = write(tmp_path, "labels.csv", text)
    for source in (file, list(read_labels(file))):
        with pytest.raises(DataError, match=words):
            collect(source)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(("h1", "h2", "j")), st.sampled_from(("yes", "no", ""))),
        max_size=30,
    )
)
def test_gathering_finds_every_double(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    lines = [f"{i},{'judge:j' if r == 'j' else r},{'judge' if r == 'j' else 'human'},{v}" for i, r, v in rows]
    file = tmp_path_factory.mktemp("double") / "labels.csv"
    file.write_text("\n".join(("item_id,rater_id,rater_kind,label", *lines)) + "\n")
    if len({(i, r) for i, r, _ in rows}) < len(rows):
        with pytest.raises(DataError, match="labelled twice"):
            collect(file)
    else:
        assert collect(file).human == collect(list(read_labels(file))).human
