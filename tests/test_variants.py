"""The review file of generated inputs: ids are hashes of what was seen, the last line stands, a torn line heals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import DataError
from robustjudge.variants import Variant, append_variants, read_variants, variant_id


@settings(max_examples=50)
@given(st.text(), st.text(), st.text())
def test_what_is_written_comes_back(case: str, text: str, reason: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "review" / "a.jsonl"
        v = Variant.of(case, text, "style_manipulation", expected=3.0, attack="a")
        append_variants(path, [v])
        assert read_variants(path) == {v.id: v}
        append_variants(path, v.decided("rejected", "ann", "2026-01-01T00:00:00+00:00", reason.replace("\ud800", "")))
        assert read_variants(path)[v.id].status == "rejected"


def test_an_edit_becomes_a_new_approved_variant(tmp_path: Path) -> None:
    v = Variant.of("c1", "old", "format_hacking", severity="critical")
    path = tmp_path / "a.jsonl"
    append_variants(path, [v])
    append_variants(path, v.decided("edited", "ann", "now", "clearer", "new"))
    held = read_variants(path)
    new = held[variant_id("c1", "new", "format_hacking")]
    assert held[v.id].status == "edited" and held[v.id].becomes == new.id
    assert (new.status, new.text, new.severity, new.who) == ("approved", "new", "critical", "ann")
    (same,) = v.decided("edited", "ann", "now", "", "old")
    assert same.status == "approved"


def test_a_torn_line_is_left_out_and_closed_off(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    a, b = (Variant.of("c", t, "injection") for t in ("one", "two"))
    append_variants(path, [a])
    with path.open("ab") as file:
        file.write(b'{"id": "ab", "te')
    assert list(read_variants(path)) == [a.id]
    append_variants(path, [b])
    assert list(read_variants(path)) == [a.id, b.id]


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "nonsense",
        '{"id": "x", "case": "c", "text": "t", "category": "k"}',
        json.dumps({"id": variant_id("c", "t", "k"), "case": "c", "text": "t", "category": "k", "status": "sent"}),
        json.dumps({"id": variant_id("c", "t", "k"), "case": "c", "text": "t", "category": "k", "more": 1}),
        json.dumps({"id": variant_id("c", "t", "k"), "case": "c", "text": "t", "category": "k", "expected": "3"}),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n", "utf-8")
    with pytest.raises(DataError, match="line 1"):
        read_variants(path)


def test_an_absent_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none"):
        read_variants(tmp_path / "none.jsonl")
