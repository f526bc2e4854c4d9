"""The acceptance checklist of the published tasks (counts, traps, directions, ids), on the real files and on broken copies."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from robustjudge import spec
from robustjudge.datasets import BadRow, LoadResult, load, source
from robustjudge.datasets.base import TASKS
from robustjudge.datasets.paper.cnn import plain as plain_highlights
from robustjudge.datasets.paper.code_to_text import holds, plain as plain_docstring, without_docstring
from robustjudge.datasets.paper.flores import Flores
from robustjudge.datasets.paper.webquery import parses, reformatted
from robustjudge.datasets.split import Split
from robustjudge.errors import DataError, UnknownName
from robustjudge.nouns import Case


@pytest.fixture(scope="module")
def root(shared_data: Path) -> Path:
    return shared_data / "robustjudge"


@pytest.fixture(scope="module")
def tasks(root: Path) -> dict[str, LoadResult]:
    return {t: load(t, root=root, limit=30 if t == "T1" else None).result() for t in TASKS}


def copied(root: Path, name: str, into: Path) -> Path:
    target = into / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / name, target)
    return target


def test_counts_are_those_of_the_files(tasks: dict[str, LoadResult], root: Path) -> None:
    want = {"T2": 100, "T3": 30, "T4": 20, "T5": 20, "T6": 98, "T7": 56, "T8": 154}
    assert {t: len(r.cases) for t, r in tasks.items() if t != "T1"} == want
    assert not any(r.bad for r in tasks.values())
    for part, lines in (("dev", 997), ("devtest", 1012)):
        assert sum(isinstance(r, Case) for r in Flores(str(root), part, ("zh-en",)).rows()) == lines


def test_every_case_is_complete(tasks: dict[str, LoadResult]) -> None:
    for task, result in tasks.items():
        assert len({c.id for c in result.cases}) == len(result.cases)
        for case in result.cases:
            assert case.kind == TASKS[task] and case.licence and case.source and case.cluster
            assert case.task.strip() and case.response.strip() and case.reference.strip()
            assert case.response != case.reference
            assert case.defect and case.verified and case.human_check == "not done"
            assert all(d.text.strip() and d.verified and d.defect for d in case.distractors)
            texts = [case.response, case.reference, *(d.text for d in case.distractors)]
            assert len(set(texts)) == len(texts)
            assert len({d.defect for d in case.distractors}) == len(case.distractors)


def test_distractors_reach_best_of_ten_for_most(tasks: dict[str, LoadResult]) -> None:
    for result in tasks.values():
        counts = [len(c.distractors) for c in result.cases]
        assert max(counts) == 8 and sum(n >= 6 for n in counts) >= 0.85 * len(counts)
        assert all(n >= 5 for n, c in zip(counts, result.cases) if c.get("gold") or not c.get("answer_form"))


def test_a_changed_file_fails_loudly(root: Path, tmp_path: Path) -> None:
    name = "math_task/livebench-math.json"
    path = copied(root, name, tmp_path)
    copied(root, "SHA256SUMS", tmp_path)
    assert len(load("T7", root=tmp_path).result().cases) == 56
    path.write_text(path.read_text("utf-8").replace("A>B", "B>A", 1), "utf-8")
    with pytest.raises(DataError, match="differs from the one in SHA256SUMS"):
        load("T7", root=tmp_path)
    assert len(load("T7", root=tmp_path, verify_files=False).result().cases) == 56
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        load("T7", root=tmp_path)


def test_all_published_checksums_match(root: Path) -> None:
    from robustjudge.datasets import checksums

    checksums.check(root, checksums.published(root))


def test_t1_lines_are_translations_of_each_other(root: Path) -> None:
    cases = [r for r in Flores(str(root), directions=("zh-en", "de-en", "yo-en")).rows() if isinstance(r, Case)]
    fixed = {4: {"Pattavee", "Dilokrit"}, 14: {"76", "Nadal", "88"}, 43: {"645", "1040"}}
    for case in cases:
        for shared in fixed.get(int(case.get("line")), ()):
            assert shared in case.get("original") and shared in case.reference
    dated = 0
    for case in cases[:600]:
        years = set(re.findall(r"\b(?:1[89]|20)\d\d\b", case.reference)) if case.get("direction") == "de-en" else set()
        dated += bool(years)
        assert years <= set(re.findall(r"\d{4}", case.get("original")))
    assert dated >= 20


def test_t1_goes_line_by_line_through_all_directions(root: Path) -> None:
    cases = list(load("translation", root=root, limit=12))
    assert [c.get("direction") for c in cases[:6]] == ["zh-en", "de-en", "yo-en", "en-zh", "en-de", "en-yo"]
    assert {c.get("line") for c in cases} == {"1", "2"}
    assert cases[3].language == "zh" and "from English into Chinese" in cases[3].task
    assert all(c.cluster.startswith("https://") and c.get("domain") and c.get("topic") for c in cases)
    assert next(iter(load("T1/en-de", root=root, limit=1))).get("direction") == "en-de"
    assert next(iter(load("T1/devtest", root=root, limit=1))).dataset == "flores200/devtest"
    with pytest.raises(UnknownName, match="en-de"):
        load("T1/en-dd", root=root)


def test_t1_files_of_different_length_fail_loudly(root: Path, tmp_path: Path) -> None:
    names = Flores(str(root), directions=("de-en",)).files()
    for name in names:
        copied(root, name, tmp_path)
    path = tmp_path / names[0]
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(DataError, match="996 in"):
        load(Flores(str(tmp_path), directions=("de-en",)), limit=1)


def test_t1_an_empty_or_broken_line_spoils_only_itself(root: Path, tmp_path: Path) -> None:
    names = Flores(str(root), directions=("de-en",)).files()
    for name in names:
        copied(root, name, tmp_path)
    path = tmp_path / names[0]
    lines = path.read_bytes().split(b"\n")
    lines[1], lines[2] = b"  ", b"\xff"
    path.write_bytes(b"\n".join(lines))
    rows = list(Flores(str(tmp_path), directions=("de-en",)).rows())
    bad = [r for r in rows if isinstance(r, BadRow)]
    assert [b.line for b in bad] == [2, 3] and len(rows) == 997


def test_t1_parts_share_no_sentence(root: Path) -> None:
    dev, test = (
        {c.reference for c in Flores(str(root), part, ("zh-en",)).rows() if isinstance(c, Case)}
        for part in ("dev", "devtest")
    )
    assert not dev & test


def test_t2_highlights_are_normal_text_and_kept_raw(tasks: dict[str, LoadResult]) -> None:
    for case in tasks["T2"].cases:
        assert " ." not in case.reference and "\n" not in case.reference
        assert 93 <= len(case.get("raw_reference")) <= 797 and 1002 <= int(case.get("article_length")) <= 9603
    assert plain_highlights("One point .\nTwo , three !") == "One point. Two, three!"


def test_t3_direction_comes_from_key_order(tasks: dict[str, LoadResult], root: Path, tmp_path: Path) -> None:
    by_record = {c.source.split()[-3]: c for c in tasks["T3"].cases}
    directions = Counter(c.get("direction") for c in tasks["T3"].cases)
    assert directions["Java-C"] == directions["Python-C"] == 4 and len(directions) == 16
    raw = json.loads((root / "code_task/code2code/multilingual_train.json").read_text("utf-8"))
    for record in raw:
        if list(record)[2:] in (["Java", "C"], ["C", "C++"]):
            case = by_record[str(record["id"])]
            source_language, target = list(record)[2:]
            assert case.get("source_language") == source_language and case.get("target_language") == target
            assert record[source_language].strip() in case.task and record[target].strip() == case.reference
            assert case.cluster == record["name"]
    path = tmp_path / "code_task/code2code/multilingual_train.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(raw), "utf-8")  # a save and load round trip keeps the order
    again = load("T3", root=tmp_path).result().cases
    assert [(c.id, c.get("direction")) for c in again] == [(c.id, c.get("direction")) for c in tasks["T3"].cases]
    path.write_text(json.dumps(raw, sort_keys=True), "utf-8")
    with pytest.raises(DataError, match="in this order"):
        load("T3", root=tmp_path).result()


def test_t3_programs_never_fall_on_both_sides_of_a_split(tasks: dict[str, LoadResult]) -> None:
    cases = tasks["T3"].cases
    assert len({c.cluster for c in cases}) == 27
    parts = Split(0.5, 0.0, 0.5, seed=3)(cases)
    assert not {c.cluster for c in parts.train} & {c.cluster for c in parts.test}


def test_t4_no_task_holds_its_reference(tasks: dict[str, LoadResult]) -> None:
    python = 0
    for case in tasks["T4"].cases:
        assert not holds(case.task, case.reference)
        assert not re.search(r"(?m)^\s*(?://|#|\*|/\*)", case.reference)
        if case.get("code_language") == "python":
            python += 1
            assert '"""' not in case.task and ast.parse(case.get("original"))
    assert python == 5


def test_t4_docstrings_go_wherever_they_stand() -> None:
    assert without_docstring('def f():\n    """Say\n    it."""\n\n    return "é"\n') == 'def f():\n\n    return "é"\n'
    assert without_docstring('def f(): "ü doc"; return 1') == "def f(): pass; return 1"
    assert without_docstring('def f():\n    """only"""\n') == "def f():\n    pass\n"
    assert without_docstring(
        '    def f():\n        "x"\n        def g():\n            "y"\n            return 2\n'
    ) == ("def f():\n    def g():\n        return 2\n")
    assert without_docstring("def f(:") is None


def test_t4_comment_marks_are_stripped() -> None:
    assert plain_docstring("// first returns it\n// and more") == "first returns it\nand more"
    assert plain_docstring("/**\n * A thing.\n * @return x\n */") == "A thing.\n@return x"
    assert plain_docstring("# ruby words") == "ruby words"
    assert plain_docstring("a * b stays") == "a * b stays"


def test_t5_two_raw_references_parse(tasks: dict[str, LoadResult]) -> None:
    cases = tasks["T5"].cases
    assert Counter(c.get("parses") for c in cases) == {"true": 2, "false": 18}
    assert sum(c.get("parses_formatted") == "true" for c in cases) >= 19
    for case in cases:
        assert parses(case.reference) == (case.get("parses_formatted") == "true")
    assert Counter(Counter(c.cluster for c in cases).values()) == {2: 10}


def test_t5_restores_lines_token_by_token() -> None:
    collapsed = 'def f(s):     # two  # marks     if s == \'a     b\':         return """x     y"""     return {  1: 2}'
    restored = reformatted(collapsed)
    assert parses(restored)
    assert "'a     b'" in restored and '"""x     y"""' in restored
    names: dict[str, object] = {}
    exec(restored, names)  # our own text
    function = names["f"]
    assert callable(function) and function("a     b") == "x     y" and function("z") == {1: 2}


@pytest.mark.parametrize(
    ("task", "labels", "equal"),
    [("T6", {"A>B": 55, "B>A": 43}, 11), ("T7", {"A>B": 33, "B>A": 23}, 11), ("T8", {"A>B": 82, "B>A": 72}, 0)],
)
def test_t6_to_t8_read_the_label(
    tasks: dict[str, LoadResult], root: Path, task: str, labels: dict[str, int], equal: int
) -> None:
    cases = tasks[task].cases
    assert sorted(Counter(c.get("label") for c in cases).values()) == sorted(labels.values())
    (name,) = source(task, root=str(root)).files()  # type: ignore[union-attr]
    raw = {r["pair_id"]: r for r in json.loads((root / name).read_text("utf-8"))}
    for case in cases:
        record = raw[case.source.split(", ")[-1]]
        better, worse = ("response_A", "response_B") if record["label"] == "A>B" else ("response_B", "response_A")
        assert (case.reference, case.response) == (record[better], record[worse])
        assert case.verified == "label" and case.task == record["question"]
    assert sum(c.get("answers_equal") == "true" for c in cases) == equal


def test_t7_flags_pairs_with_one_answer(tasks: dict[str, LoadResult]) -> None:
    equal = [c for c in tasks["T7"].cases if c.get("answers_equal") == "true"]
    assert any(c.get("gold") == c.get("answer") == "264.5" for c in equal)
    assert sum(c.get("answers_equal") == "unknown" for c in tasks["T7"].cases) <= 24  # the simple extractor's count


def test_t8_has_fourteen_subjects_of_eleven(tasks: dict[str, LoadResult]) -> None:
    assert set(Counter(c.get("subject") for c in tasks["T8"].cases).values()) == {11}
    assert len({c.get("subject") for c in tasks["T8"].cases}) == 14


def test_a_label_that_is_neither_is_a_bad_row_and_never_a_default(root: Path, tmp_path: Path) -> None:
    name = "math_task/livebench-math.json"
    raw = json.loads((root / name).read_text("utf-8"))
    raw[1]["label"] = "A=B"
    del raw[2]["label"]
    raw[3]["response_A"] = " "
    (tmp_path / "math_task").mkdir()
    (tmp_path / name).write_text(json.dumps(raw, indent=1), "utf-8")
    heard: list[BadRow] = []
    result = load("T7", root=tmp_path, on_bad=heard.append).result()
    assert len(result.cases) == 53 and [b.field for b in heard] == ["label", "label", "response_A"]
    assert [raw[i]["pair_id"] in (tmp_path / name).read_text().split("\n")[heard[i - 1].line] for i in (1, 2, 3)]


@pytest.mark.parametrize("task", ["T2", "T3", "T5", "T7"])
def test_ids_and_weak_candidates_survive_reordering(
    tasks: dict[str, LoadResult], root: Path, tmp_path: Path, task: str
) -> None:
    (name,) = source(task, root=str(root)).files()  # type: ignore[union-attr]
    raw = json.loads((root / name).read_text("utf-8"))
    random.Random(1).shuffle(raw)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(json.dumps(raw), "utf-8")
    again = {c.id: c for c in load(task, root=tmp_path)}
    assert again == {c.id: c for c in tasks[task].cases}


def test_asking_for_more_never_changes_what_was_there(tasks: dict[str, LoadResult], root: Path) -> None:
    assert list(load("T2", root=root, limit=5)) == list(tasks["T2"].cases[:5])
    few = list(load("T2", root=root, limit=5, distractors=3))
    for case, whole in zip(few, tasks["T2"].cases):
        assert case.response == whole.response and case.distractors == whole.distractors[:3]


def test_asking_for_more_than_exists_raises(root: Path) -> None:
    with pytest.raises(DataError, match="101 cases were asked for, but only 100"):
        load("T2", root=root, limit=101)


def test_names_and_aliases(root: Path) -> None:
    assert next(load("T6", root=root)).id == next(load("logic", root=root)).id
    assert next(load("t6", root=root)).kind == "logic"
    with pytest.raises(UnknownName, match="Known: none"):
        load("T2/x", root=root)
    with pytest.raises(DataError, match="root=FOLDER"):
        load("T2").result()
    with pytest.raises(DataError, match="no such folder"):
        load("T2", root=root / "nowhere").result()
    made = Flores(str(root), "devtest", ("en-de",))
    assert spec.load(spec.dump(made)) == made
