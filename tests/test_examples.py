"""Every example runs, offline, in an empty folder; README's notebook example is the file examples/notebook.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "endpoints_and_keys": "HOUSE_GATEWAY_KEY",
    "resume_and_budgets": "the finished plan run again sends 0",
    "audit_a_reader": "4 of 4 cases as expected",
    "your_own_cases": "2 cases, 1 rows set aside",
    "read_a_report": "identity: 0.00",
}


def _marked(file: Path) -> object:
    marks = [pytest.mark.model, pytest.mark.xdist_group("model")] if file.stem == "local_models" else []
    return pytest.param(file, marks=marks, id=file.stem)


@pytest.mark.parametrize("file", [_marked(f) for f in EXAMPLES])
def test_example_runs(file: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if file.stem == "local_models" and "models pull" in done.stderr:
        pytest.skip("the embedded model is not in the cache")
    assert done.returncode == 0, done.stderr
    assert SAYS.get(file.stem, "") in done.stdout


def test_every_example_says_what_it_shows_and_is_short() -> None:
    for file in EXAMPLES:
        text = file.read_text("utf-8")
        assert text.startswith('"""') and len(text.splitlines()) <= 50, file.name


def test_the_readme_shows_the_notebook_example_as_it_is_run() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = next(b for b in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "rj.run(" in b)
    code = (ROOT / "examples/notebook.py").read_text("utf-8").partition('"""\n\n')[2]
    assert shown.strip() == code.strip()
