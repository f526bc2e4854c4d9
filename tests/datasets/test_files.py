"""Files: every fault has its line, and never stops the rows around it."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.datasets import BadRow, BadRowWarning, Cases, Columns, LoadResult, load
from robustjudge.datasets.files import records
from robustjudge.errors import DataError, UnknownName
from robustjudge.nouns import Case, Label, Turn

GOOD = '{"id": "%s", "task": "Name a colour.", "response": "Seven.", "reference": "Green."}\n'


def quiet(_: BadRow) -> None:
    pass


def loaded(path: Path, text: str | bytes, **options: object) -> LoadResult:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return load(path, on_bad=quiet, **options).result()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [
        ('{"id": "x", "task": "a", "response" "b"}', 37, "Expecting ':'"),
        ('{"id": "x", "task": "a", "response": "b"} {}', 43, "more text"),
        ("[1]", 1, "an array"),
        ("null", 1, "null"),
        ('{"id": "x", "id": "y", "task": "a", "response": "b"}', None, "'id' stands twice"),
        ('{"id": "x", "task": "a", "response": "b", "expected": NaN}', None, "NaN"),
        ('{"id": "x", "task": "a", "response": "b", "expected": 1e999}', None, "finite"),
        ('{"id": "x", "task": "a", "response": ""}', None, "empty"),
        ('{"id": "x", "task": "a", "response": " \\n\\t"}', None, "empty"),
        ('{"id": "x", "task": "a", "response": null}', None, "empty"),
        ('{"id": "x", "task": "a", "response": 7}', None, "int, not text"),
        ('{"id": "x", "task": "a", "respnse": "b"}', None, "did you mean 'respnse'"),
        ('{"id": "x", "task": "a", "response": "b", "kind": "sumarization"}', None, "'summarization'"),
        ('{"id": "x", "task": "a", "response": "b", "reference": [""]}', None, "reference is empty"),
        ('{"id": "x", "task": "a", "response": "b", "history": [{"role": "system", "text": "c"}]}', None, "turn"),
        ("[" * 200_000, None, ""),
        ('{"id": ' + "9" * 5000 + "}", None, ""),
    ],
)
def test_one_bad_row_is_placed_and_the_rest_goes_on(tmp_path: Path, row: str, column: int | None, says: str) -> None:
    result = loaded(tmp_path / "c.jsonl", GOOD % "a" + GOOD % "b" + row + "\n" + GOOD % "d" + GOOD % "e")
    assert [c.id for c in result.cases] == ["a", "b", "d", "e"]
    (bad,) = result.bad
    assert (bad.file, bad.line, bad.column) == (str(tmp_path / "c.jsonl"), 3, column)
    assert says in bad.message
    assert str(bad).startswith(f"{tmp_path}/c.jsonl:3")


def test_invalid_utf8_names_the_byte(tmp_path: Path) -> None:
    raw = (GOOD % "a").encode() + b'{"id": "b\xff"}\n' + (GOOD % "c").encode()
    result = loaded(tmp_path / "c.jsonl", raw)
    assert [c.id for c in result.cases] == ["a", "c"]
    assert (result.bad[0].line, result.bad[0].column) == (2, 10)
    assert "0xff" in result.bad[0].message


def test_torn_last_line_is_called_cut_off(tmp_path: Path) -> None:
    result = loaded(tmp_path / "c.jsonl", GOOD % "a" + (GOOD % "b")[:30])
    assert [c.id for c in result.cases] == ["a"]
    assert result.bad[0].line == 2 and "cut off" in result.bad[0].message


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    assert len(loaded(tmp_path / "c.jsonl", (GOOD % "a" + GOOD % "b").rstrip()).cases) == 2


def test_byte_order_mark_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    result = loaded(tmp_path / "c.jsonl", "\ufeff" + GOOD % "a" + "\r\n\n" + GOOD % "b")
    assert [c.id for c in result.cases] == ["a", "b"] and not result.bad
    result = loaded(tmp_path / "c.csv", "\ufefftask,response\nq,a\n")
    assert result.cases[0].task == "q"


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
def test_duplicate_ids_name_both_lines(tmp_path: Path, ending: str) -> None:
    rows = [{"id": i, "task": "q", "response": f"{n}"} for n, i in enumerate("abca")]
    text = {
        "jsonl": "\n" + "".join(json.dumps(r) + "\n" for r in rows),
        "json": "[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]",
        "csv": "id,task,response\n" + "".join(f"{r['id']},q,{r['response']}\n" for r in rows),
    }[ending]
    result = loaded(tmp_path / f"c.{ending}", text)
    assert [c.id for c in result.cases] == ["a", "b", "c"]
    assert result.bad[0].line == 5 and "lines 2 and 5" in result.bad[0].message


def test_duplicates_on_one_line_of_an_array_are_seen(tmp_path: Path) -> None:
    rows = [{"id": "a", "task": "q", "response": "r"}] * 2
    assert len(loaded(tmp_path / "c.json", json.dumps(rows)).bad) == 1


def test_without_an_id_column_ids_survive_reordering(tmp_path: Path) -> None:
    rows = [json.dumps({"task": f"q{i}", "response": "r"}) for i in range(5)]
    one = loaded(tmp_path / "c.jsonl", "\n".join(rows))
    two = loaded(tmp_path / "c.jsonl", "\n".join(reversed(rows)))
    assert {c.id: c.task for c in one.cases} == {c.id: c.task for c in two.cases}


def test_required_reference(tmp_path: Path) -> None:
    text = '{"task": "q", "response": "r", "reference": " "}\n{"task": "q", "response": "r", "reference": "s"}\n'
    assert len(loaded(tmp_path / "c.jsonl", text).cases) == 2
    result = loaded(tmp_path / "c.jsonl", text, require=("reference",))
    assert [c.reference for c in result.cases] == ["s"]
    assert result.bad[0].line == 1 and "reference is missing" in result.bad[0].message


def test_hostile_text_passes_the_door(tmp_path: Path) -> None:
    text = r'{"id": "a", "task": "q\u0000", "response": "ok \ud83d [[7]] <script> \u001b[31m", "reference": "r"}' + "\n"
    (case,) = loaded(tmp_path / "c.jsonl", text).cases
    assert case.text_mapped and case.task == "q\\u0000"
    assert case.response == "ok \\ud83d [[7]] <script> \x1b[31m"
    assert len(case.get("original_sha256/response")) == 64
    case.response.encode("utf-8")


def test_the_mapping_reads_every_field(tmp_path: Path) -> None:
    row = {
        "no": 7,
        "q": "question",
        "a": "answer",
        "gold": ["one", "two"],
        "history": [{"role": "user", "content": "hello"}],
        "expected": "0.5",
        "ann": 1,
        "ben": True,
        "topic": "x",
        "kind": "logic",
        "distractors": ["bad", {"text": "worse", "defect": "slip"}],
    }
    columns = Columns(task="q", response="a", reference="gold", id="no", labels=("ann", "ben"), meta=("topic",))
    (case,) = loaded(tmp_path / "c.jsonl", json.dumps(row), columns=columns).cases
    assert (case.id, case.task, case.response, case.references) == ("7", "question", "answer", ("one", "two"))
    assert case.history == (Turn("user", "hello"),) and case.expected == 0.5 and case.kind == "logic"
    assert case.labels == (Label("ann", "1"), Label("ben", "true")) and case.get("topic") == "x"
    assert [(d.text, d.defect) for d in case.distractors] == [("bad", ""), ("worse", "slip")]
    assert case.cluster == "7"


def test_lists_in_csv_cells_are_json(tmp_path: Path) -> None:
    text = (
        'id,task,response,history\na,q,r,"[{""role"": ""user"", ""text"": ""hi""}]"\nb,q,r,[broken\nc,q,r,{}\nd,q,r,\n'
    )
    result = loaded(tmp_path / "c.csv", text)
    assert [(c.id, c.history) for c in result.cases] == [("a", (Turn("user", "hi"),)), ("d", ())]
    assert [(b.line, b.field) for b in result.bad] == [(3, "history"), (4, "history")]


def test_a_renamed_column_must_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: there is no column 'answr'.*Did you mean 'answer'"):
        loaded(tmp_path / "c.csv", "task,answer\nq,a\n", columns=Columns(response="answr"))
    with pytest.raises(DataError, match="no column 'gold'"):
        loaded(tmp_path / "c.csv", "task,response\nq,a\n", columns=Columns(reference="gold"))


def test_csv_with_embedded_newlines_keeps_the_line_of_each_row(tmp_path: Path) -> None:
    text = 'id,task,response\na,"two\nlines","x, ""y"""\nb,q\nc,"q","r"\nd,q,\n'
    result = loaded(tmp_path / "c.csv", text)
    assert [(c.id, c.task, c.response) for c in result.cases] == [("a", "two\nlines", 'x, "y"'), ("c", "q", "r")]
    assert [(b.line, b.message) for b in result.bad] == [(4, "2 fields"), (6, "the text is empty")]


def test_csv_quote_that_never_closes(tmp_path: Path) -> None:
    result = loaded(tmp_path / "c.csv", 'id,task,response\na,q,r\nb,"q,r\nc,q,r\n')
    assert [c.id for c in result.cases] == ["a"]
    assert result.bad[0].line == 3 and "never closes" in result.bad[0].message


def test_csv_bad_byte_stays_in_its_row(tmp_path: Path) -> None:
    result = loaded(tmp_path / "c.csv", b"id,task,response\na,q,r\nb,q\xe9,r\nc,q,r\n")
    assert [c.id for c in result.cases] == ["a", "c"]
    assert (result.bad[0].line, result.bad[0].field) == (3, "task") and "0xe9" in result.bad[0].message


def test_csv_takes_a_field_of_a_megabyte_and_tabs(tmp_path: Path) -> None:
    big = "x" * 1_000_000
    assert loaded(tmp_path / "c.csv", f"task,response\nq,{big}\n").cases[0].response == big
    assert loaded(tmp_path / "c.tsv", "task\tresponse\nq\ta,b\n").cases[0].response == "a,b"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("c.jsonl", b"", "no rows"),
        ("c.csv", b"task,response\n", "no rows"),
        ("c.csv", b"task,task\n", "stands twice"),
        ("c.csv", b"task,\n", "no name"),
        ("c.jsonl", "é".encode("utf-16"), "UTF-16"),
        ("c.json", b'{"a": 1}', "array"),
        ("c.xml", b"<a/>", "file ending"),
        ("c.parquet", b"PAR1 no", "parquet"),
    ],
)
def test_files_that_cannot_be_used_at_all(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        loaded(tmp_path / name, content)


def test_a_missing_file_and_an_unknown_name_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "absent.jsonl").result()
    with pytest.raises(DataError, match="no such file"):
        load("absent.jsonl").result()
    with pytest.raises(UnknownName, match="summarization"):
        load("sumarization")
    with pytest.raises(DataError, match="Parquet"):
        load(tmp_path).result()


def test_json_array_after_an_error_says_that_the_rest_is_lost(tmp_path: Path) -> None:
    text = '[\n{"id": "a", "task": "q", "response": "r"},\n{"id": "b", "task": }\n]'
    result = loaded(tmp_path / "c.json", text)
    assert [c.id for c in result.cases] == ["a"]
    assert result.bad[0].line == 3 and "rest of the file" in result.bad[0].message
    result = loaded(tmp_path / "c.json", '[{"id": "a", "task": "q", "response": "r"}')
    assert len(result.cases) == 1 and "cut off" in result.bad[0].message


def test_asking_for_more_than_there_is_fails_before_anything_is_used(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(GOOD % "a" + "broken\n" + GOOD % "c")
    with pytest.raises(DataError, match=r"3 cases were asked for, but only 2 can be used \(1 bad rows"):
        load(path, limit=3, on_bad=quiet)
    assert [c.id for c in load(path, limit=2, on_bad=quiet)] == ["a", "c"]
    with pytest.raises(DataError, match="at least 1"):
        load(path, limit=0)


def test_bad_rows_warn_unless_someone_listens(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text("broken\n" + GOOD % "a")
    with pytest.warns(BadRowWarning, match=r"c\.jsonl:1:1"):
        list(load(path))
    heard: list[BadRow] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(load(path, on_bad=heard.append))
    assert len(heard) == 1


def test_streaming_is_flat_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    row = json.dumps({"task": "q" * 2000, "response": "r" * 2000})
    with path.open("w") as out:
        for i in range(5000):
            out.write(row.replace("q", f"{i} q", 1) + "\n")
    tracemalloc.start()
    seen = sum(1 for _ in load(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 5000 and peak < 3_000_000  # the file has 20 MB; ids cost about 100 bytes each


def test_parquet_and_dataset_folders_read_like_jsonl(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [
        {"id": str(i), "q": f"q{i}", "response": "r" if i != 3 else "", "reference": ["s", "t"]} for i in range(600)
    ]
    columns = Columns(task="q")
    want = loaded(tmp_path / "c.jsonl", "".join(json.dumps(r) + "\n" for r in rows), columns=columns)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "c.parquet")
    hub = tmp_path / "hub" / "data"
    hub.mkdir(parents=True)
    pq.write_table(table.slice(0, 300), hub / "test-00000-of-00002.parquet")
    pq.write_table(table.slice(300), hub / "test-00001-of-00002.parquet")
    pq.write_table(table, hub / "train-00000-of-00001.parquet")
    disk = tmp_path / "disk"
    (disk / "test").mkdir(parents=True)
    (disk / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pa.ipc.new_stream(str(disk / "test" / "data-00000-of-00001.arrow"), table.schema) as out:
        out.write_table(table)
    for path, split in ((tmp_path / "c.parquet", ""), (tmp_path / "hub", "test"), (disk, "test")):
        got = load(path, columns=columns, split=split, on_bad=quiet).result()
        assert [(c.id, c.task, c.references) for c in got.cases] == [(c.id, c.task, c.references) for c in want.cases]
        assert [(b.line, b.message) for b in got.bad] == [(4, "the text is empty")]
    for folder in (tmp_path / "hub", disk):
        with pytest.raises(DataError, match="train"):
            load(folder, columns=columns).result()
    with pytest.raises(DataError, match="no column 'task'"):
        load(tmp_path / "c.parquet").result()


@settings(max_examples=150, deadline=None)
@given(raw=st.binary(max_size=200), ending=st.sampled_from(["jsonl", "json", "csv", "tsv"]))
def test_any_bytes_give_rows_or_a_data_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes, ending: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    path.write_bytes(raw)
    try:
        for found in records(path):
            assert isinstance(found, BadRow) or (found[0] >= 1 and isinstance(found[1], dict))
    except DataError:
        pass


TEXT = st.text(min_size=1, max_size=30).filter(lambda t: bool(t.strip()))


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
def test_jsonl_and_csv_hold_the_same_cases(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    base = tmp_path_factory.getbasetemp()
    (base / "r.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "task": t, "response": r}) + "\n" for i, (t, r) in enumerate(rows)), "utf-8"
    )
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["id", "task", "response"])
    writer.writerows((i, t, r) for i, (t, r) in enumerate(rows))
    (base / "r.csv").write_bytes(buffer.getvalue().encode())
    one, two = (load(base / f"r.{e}", on_bad=quiet).result() for e in ("jsonl", "csv"))
    assert not one.bad and not two.bad
    assert [(c.id, c.task, c.response) for c in one.cases] == [(c.id, c.task, c.response) for c in two.cases]


def test_cases_keep_what_they_could_not_use() -> None:
    case = Case("a", "q", "r")
    cases = Cases([case, BadRow("f", 1, None, "m")], quiet)
    assert list(cases) == [case] and len(cases.bad) == 1
