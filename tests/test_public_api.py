from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import robustjudge as rj

HEAVY = ("numpy", "scipy", "aiohttp", "torch", "transformers", "pandas", "pydantic", "typer", "rich")


def test_the_list_is_sorted_and_every_name_is_there() -> None:
    assert list(rj.__all__) == sorted(rj.__all__)
    assert dir(rj) == list(rj.__all__)
    for name in rj.__all__:
        assert getattr(rj, name) is not None


def test_the_list_is_what_type_checkers_see() -> None:
    text = Path(rj.__file__).read_text("utf-8")
    static = text[text.index("if TYPE_CHECKING") : text.index("_PUBLIC = ")]
    for name in rj.__all__:
        assert f" as {name}" in static, name
    assert list(rj.__all__) == list(rj._PUBLIC)


def test_an_unknown_name_tells_the_public_ones() -> None:
    with pytest.raises(AttributeError, match="public names: Access"):
        rj.atack  # type: ignore[attr-defined]  # noqa: B018


def test_import_loads_nothing_heavy() -> None:
    code = "import json, sys, robustjudge; print(json.dumps(sorted(m.partition('.')[0] for m in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout)) & set(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import json, sys; from robustjudge.cli.app import run; run(['--help']);"
        "print(json.dumps(sorted(m.partition('.')[0] for m in sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout.splitlines()[-1])) & {*HEAVY, "click"}


def test_run_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    import asyncio

    plan = rj.Plan(
        cases=lambda: rj.builtin_cases("logic", 1),
        judges=(("mine", rj.Prompted("scripted/noisy", rj.template("robustjudge"))),),
        protocols=(rj.Pointwise(),),
        attacks=(rj.attack("H1"),),
    )

    async def notebook() -> int:
        return len(rj.run(plan, rj.Options(root=tmp_path, ledger=None)).table())

    assert asyncio.run(notebook()) == 1


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert rj.__version__ == version("robustjudge")
