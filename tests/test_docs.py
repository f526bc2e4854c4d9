"""The documentation runs, links to what exists, names every command, and is what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from robustjudge.cli.app import there

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
WRITTEN = [p for p in PAGES if "reference" not in p.parts]


def _blocks(language: str) -> list[tuple[str, str]]:
    out = []
    for page in WRITTEN:
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            out.append((str(page.relative_to(ROOT)), block))
    return out


def test_the_reference_is_what_the_code_says() -> None:
    """In a process of its own: other tests register attacks and payload packs in theirs."""
    script = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    done = subprocess.run(script, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", there())
def test_every_command_is_documented(name: str) -> None:
    assert f"\n## {name}\n" in (ROOT / "docs/reference/cli.md").read_text("utf-8")


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_command_line_in_the_docs_is_one() -> None:
    from robustjudge.cli.app import command

    for page, block in _blocks("bash"):
        for line in block.splitlines():
            words = line.partition("#")[0].split()
            if not words or words[0] != "robustjudge":
                continue
            found = command(words[1])
            inside = getattr(found, "commands", None)
            if inside:  # `gate RUN` is short for `gate check RUN`
                found = inside[words[2]] if words[2] in inside or words[1] != "gate" else inside["check"]
            known = {o for p in found.params for o in (*p.opts, *p.secondary_opts)}
            for word in words[2:]:
                if word.startswith("-"):
                    assert word in known, f"{page}: {line.strip()!r}: {word}"


def test_every_configuration_in_the_docs_is_valid() -> None:
    import yaml

    from robustjudge.config.files import validated
    from robustjudge.config.schema import Config
    from robustjudge.fleet.file import Fleet

    blocks = _blocks("yaml")
    assert len(blocks) > 5
    for page, block in blocks:
        data = yaml.safe_load(block)
        validated(Fleet if isinstance(data.get("judges"), list) else Config, data, page)


def test_every_python_block_compiles() -> None:
    import ast

    for page, block in _blocks("python"):
        compile(block, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_json_block_of_the_docs_is_json() -> None:
    import json

    for _, block in _blocks("json"):
        for line in block.splitlines():
            json.loads(line)


def test_the_attack_of_the_contributing_page_works(tmp_path: Path) -> None:
    import robustjudge as rj

    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class TwoTries" in b)
    space: dict[str, object] = {"__name__": "contributed"}
    exec(compile(block, "CONTRIBUTING.md", "exec", dont_inherit=True), space)
    plan = rj.Plan(
        cases=lambda: rj.builtin_cases("logic", 1),
        judges=(("mine", rj.Prompted("scripted/length_biased", rj.template("robustjudge"))),),
        protocols=(rj.Pointwise(),),
        attacks=(space["TwoTries"](),),  # type: ignore[operator]
    )
    table = rj.run(plan, rj.Options(root=tmp_path / "runs", ledger=None)).table()
    assert table["attack_status"][0] == "ok" and table["queries"][0] == 2


def test_the_changelog_names_the_version() -> None:
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_prose_names_no_path_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root)/", page.read_text("utf-8")), page
