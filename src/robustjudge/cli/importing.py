"""``robustjudge import``: a result file of another evaluation tool becomes a case file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)


@app.command("import")
def import_results(
    file: Annotated[
        Path, typer.Argument(help="result file of promptfoo (JSON), DeepEval (JSON) or Inspect (JSON, .eval)")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="case file to write")] = Path("cases.jsonl"),
    form: Annotated[str, typer.Option("--format", help="promptfoo, deepeval or inspect (default: by the file)")] = "",
    failed: Annotated[bool, typer.Option("--failed", help="only answers that their grader did not pass")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite the case file")] = False,
) -> None:
    """Turn another tool's results into cases: question, answer, reference, and their verdict kept beside.  No call."""
    from robustjudge.datasets.imports import imported
    from robustjudge.errors import ConfigError, Inconclusive

    if output.exists() and not force:
        raise ConfigError(f"{output} exists; --force overwrites it, -o names another file")
    found = imported(file, form)
    for row in found.bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    rows = [r for r in found.rows if not failed or r.get("their_verdict") in ("fail", "I")]
    if not rows:
        raise Inconclusive(f"{file}: no item with a question and an answer, so no case was written")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    aside = f", {len(found.bad)} set aside" if found.bad else ""
    typer.echo(f"{len(rows)} cases from {found.tool}{aside}: {output}")
    without = sum("reference" not in r for r in rows)
    if without:
        typer.echo(f"{without} of them have no reference: pairwise judging and best-of-K leave those out")
