"""``read`` and ``lint``: check a verdict reader and a judge prompt without any call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)


@app.command("read")
def read(
    cases: Annotated[
        Path, typer.Argument(metavar="CASES.jsonl", help="recorded replies with what they should read as")
    ],
    reader: Annotated[str, typer.Option(help="module:function to audit instead of ours")] = "",
    command: Annotated[str, typer.Option(help="program to audit: case as JSON in, {status, value} out")] = "",
) -> None:
    """Audit a verdict reader: each miss is printed, the count last; exit 0 only if every case is as expected."""
    from robustjudge.errors import ConfigError
    from robustjudge.scales.audit import callable_reader, command_reader, read_cases

    if reader and command:
        raise ConfigError("give --reader or --command, not both")
    chosen = callable_reader(reader) if reader else command_reader(command) if command else None
    audit = read_cases(cases, chosen)
    for line in audit.lines():
        typer.echo(visible(line))
    if not audit.passed:
        raise typer.Exit(1)


@app.command("lint")
def lint(
    prompt: Annotated[str, typer.Argument(help="robustjudge.yaml, a shipped template, a template .toml or reader .py")],
    strict: Annotated[bool, typer.Option(help="warnings fail too")] = False,
    sarif: Annotated[Path | None, typer.Option(help="write the findings as SARIF 2.1.0")] = None,
) -> None:
    """Check judge prompts and their readers; no call is made.  Exit 1 when there is an error."""
    found = list(findings(prompt))
    for owner, f in found:
        typer.echo(visible(f"{f.severity}: {owner}{f.where}:{f.line}: {f.message} [{f.rule}]"))
    if sarif is not None:
        from robustjudge.gate.sarif import sarif as log

        sarif.write_text(log(None, [f for _, f in found], prompt=prompt), "utf-8")
    counts = {level: sum(f.severity == level for _, f in found) for level in ("error", "warning", "note")}
    typer.echo(", ".join(f"{n} {level}s" for level, n in counts.items()))
    if counts["error"] or (strict and counts["warning"]):
        raise typer.Exit(1)


def findings(name: str) -> list[tuple[str, Any]]:
    """Every finding as (judge name and a space, or nothing; finding)."""
    from robustjudge.errors import DataError
    from robustjudge.prompts.library import from_toml, template
    from robustjudge.prompts.lint import lint as check, lint_source

    path = Path(name)
    if not path.exists() and path.suffix in (".yaml", ".yml", ".toml", ".py"):
        raise DataError(f"{path}: no such file")
    if not path.exists():
        return [("", f) for f in check(template(name))]
    if path.suffix == ".py":
        return [("", f) for f in lint_source(path.read_text("utf-8"), str(path))]
    if path.suffix == ".toml" and path.name != "pyproject.toml":
        return [("", f) for f in check(from_toml(path.read_text("utf-8"), str(path)))]
    if path.suffix not in (".yaml", ".yml", ".toml"):
        raise DataError(
            f"{path}: a prompt's text does not say which of its words are slots; name it in robustjudge.yaml"
            " (`robustjudge init` writes one) and lint that"
        )
    return _of_config(path)


def _of_config(path: Path) -> list[tuple[str, Any]]:
    from robustjudge.config.build import judge_of
    from robustjudge.config.files import read_config
    from robustjudge.plan import prompted
    from robustjudge.prompts.lint import lint as check

    out: list[tuple[str, Any]] = []
    for name, judge in read_config(path).judges.items():
        for one in prompted(judge_of(judge, path.parent)):
            out += [(f"{name}: ", f) for f in check(one.template)]
    return out
