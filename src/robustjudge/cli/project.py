"""``robustjudge init``: a project to start from; nothing is ever overwritten unless asked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

FILES = {
    "robustjudge.yaml": "robustjudge.yaml",
    "prompts/judge.txt": "judge.txt",
    "cases.jsonl": "cases.jsonl",
    "policy.yaml": "policy.yaml",
    "README.robustjudge.md": "readme.md",
}
"""Path in the project -> packaged file it is copied from."""


@app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="where (default: here)")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="overwrite files that exist")] = False,
) -> None:
    """Scaffold a project: a judge prompt, three cases, a configuration that runs without a key, and what to do next."""
    from robustjudge.errors import ConfigError

    contents = {**packaged(), **workflows()}
    taken = [name for name in contents if (folder / name).exists()]
    if taken and not force:
        raise ConfigError(f"{', '.join(taken)} in {folder.absolute()} exist already; --force overwrites them")
    for name, text in contents.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        typer.echo(f"wrote {target}")
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(".robustjudge/\nruns/\n.env\n", "utf-8")
        typer.echo(f"wrote {ignore}")
    typer.echo("next: robustjudge doctor, then robustjudge run; prompts/judge.txt and cases.jsonl are yours to change")


def packaged() -> Mapping[str, str]:
    """The scaffold's files: path in the project -> text."""
    home = files("robustjudge.cli").joinpath("scaffold")
    return {name: home.joinpath(source).read_text("utf-8") for name, source in FILES.items()}


def workflows() -> Mapping[str, str]:
    """Continuous-integration files that the release gate ships (none without it)."""
    home = files("robustjudge.cli").joinpath("scaffold", "workflows")
    if not home.is_dir():
        return {}
    return {f".github/workflows/{f.name}": f.read_text("utf-8") for f in home.iterdir() if f.name.endswith(".yml")}
