"""The door to data sets: names, third parties, and specs of files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from robustjudge import spec
from robustjudge.datasets import CaseFile, Columns, load, names, register
from robustjudge.datasets.base import Row
from robustjudge.errors import ConfigError
from robustjudge.nouns import Case


@dataclass(frozen=True)
class Two:
    root: str

    def rows(self) -> Iterator[Row]:
        yield Case("a", "q", "r", source=self.root)
        yield Case("b", "q", "r")


def test_a_registered_source_loads_by_name() -> None:
    register("two-cases", lambda root, option: Two(root + option), "my_package")
    assert [c.id for c in load("two-cases")] == ["a", "b"]
    assert next(load("two-cases/x", root="r")).source == "rx"
    assert "two-cases" in names() and {"T1", "knowledge", "builtin"} <= set(names())
    with pytest.raises(ConfigError, match="my_package and other_package"):
        register("two-cases", lambda root, option: Two(root), "other_package")
    with pytest.raises(ConfigError, match="robustjudge and other_package"):
        register("T1", lambda root, option: Two(root), "other_package")


def test_a_source_loads_as_it_is() -> None:
    assert [c.id for c in load(Two(""), limit=2)] == ["a", "b"]


def test_file_specs_round_trip(tmp_path: Path) -> None:
    made = CaseFile(str(tmp_path / "c.jsonl"), Columns(task="q", meta=("x",)), require=("reference",))
    assert spec.load(json.loads(json.dumps(spec.dump(made)))) == made


def test_a_file_without_responses_gets_verified_ones(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    rows = [
        {"id": f"{i}", "task": "q", "reference": f"The {w} ran down hill {i} before the bell rang twice."}
        for i, w in enumerate(("fox", "cart", "child", "river"))
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    result = load(path, make_weak=True, kind="summarization").result()
    assert len(result.cases) == 4 and all(c.response and c.verified and c.distractors for c in result.cases)
    assert result.aside and sum(result.aside_by_reason.values()) == len(result.aside)
    with pytest.warns(UserWarning, match="response"):
        assert not list(load(path))


def test_import_is_light() -> None:
    code = (
        "import sys, robustjudge.datasets; "
        "bad = {'numpy','scipy','pyarrow','torch','pandas','asyncio','pydantic','importlib.metadata'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_builtin_cases_load_by_name() -> None:
    assert {c.kind for c in load("builtin/T6", limit=4)} == {"logic"}
    assert len({c.kind for c in load("builtin")}) == 8
    assert all(c.verified for c in load("builtin"))
