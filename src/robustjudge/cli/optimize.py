"""``robustjudge optimize``: search for a judge prompt that attacks move less, at no cost in clean accuracy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustjudge.cli.terminal import visible

if TYPE_CHECKING:
    from robustjudge.nouns import Case
    from robustjudge.protocols import Protocol

app = typer.Typer(add_completion=False)


@app.command("optimize")
def optimize(
    prompt: Annotated[str, typer.Argument(help="a shipped template, or your own prompt: in parts (.toml) or one text")],
    judge: Annotated[str, typer.Option(help="model of the judge, provider/model")],
    cases: Annotated[
        list[str] | None, typer.Option(help="builtin, builtin/logic, T1..T8 or a file; repeat for several")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="folder of the published data files, for T1..T8")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="cases per task (per file for your own)")] = None,
    attack: Annotated[list[str] | None, typer.Option(help="attacks to train on; default H4, H5, H6")] = None,
    held_out: Annotated[
        list[str] | None, typer.Option(help="attacks that only the test meets; default forged_rubric, authority")
    ] = None,
    protocol: Annotated[str, typer.Option(help="pairwise, pointwise or best_of:K")] = "pairwise",
    tau: Annotated[float, typer.Option(help="pointwise: a rise by so many scale points is a success")] = 1.0,
    budget: Annotated[int, typer.Option(min=1, help="judge calls, never exceeded")] = 4000,
    size: Annotated[str, typer.Option(help="quick (96 prompts) or reference (8,640)")] = "quick",
    options: Annotated[Path | None, typer.Option(help="your own options for components (.toml)")] = None,
    objective: Annotated[str, typer.Option(help="worst: worst family; cvar: mean of the worse half")] = "worst",
    rounds: Annotated[int, typer.Option(min=0, help="rounds of co-training with the attack grammar")] = 1,
    alpha: Annotated[float, typer.Option(help="chance of calling an equal prompt an improvement")] = 0.05,
    tokens: Annotated[int | None, typer.Option(min=1, help="longest prompt text, in tokens by count of words")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="run Algorithm 1 of the paper too, on a budget of the same size")
    ] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="longest reply of the judge")] = 512,
    constrained: Annotated[
        bool, typer.Option(help="hold replies to the verdict line: the likeliest label (local models)")
    ] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    max_cost: Annotated[float | None, typer.Option(help="USD, a hard cap")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="folder for prompt, diff and evidence")] = Path(
        "optimised"
    ),
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
) -> None:
    """Race the prompts of a grid on paired cases, confirm the winner, test it once; "no improvement" is an answer."""
    from robustjudge.attacks import library
    from robustjudge.cli.progress import Progress
    from robustjudge.errors import DataError, UnknownName
    from robustjudge.execution import Options
    from robustjudge.judges import Prompted
    from robustjudge.nouns import Sampling
    from robustjudge.optimise import Task, optimise, write
    from robustjudge.optimise_evidence import evidence, verdict
    from robustjudge.prompts.library import source
    from robustjudge.search import CoordinateAscent, Grid, Race

    if objective not in ("worst", "cvar"):
        raise UnknownName("objective", objective, ("worst", "cvar"))
    if Path(prompt).suffix and not Path(prompt).is_file():
        raise DataError(f"{prompt}: no such file")
    more = _file(options) if options else ""
    if Path(prompt).is_file() and not prompt.endswith(".toml"):
        grid = Grid.whole(_file(Path(prompt)), prompt, _protocol(protocol).kind, size, more)  # type: ignore[arg-type]
    else:
        text = _file(Path(prompt)) if prompt.endswith(".toml") else source(prompt)
        grid = Grid.of(text, prompt, size, more)  # type: ignore[arg-type]

    def named(names: list[str]) -> dict[str, Any]:
        made = [library.attack(n, seed=seed, quick=True) for n in library.expand(tuple(names))]
        return {a.name: a for a in made}

    families = named(attack or ["H4", "H5", "H6"])
    later = {n: a for n, a in named(held_out or ["forged_rubric", "authority"]).items() if n not in families}
    spare = {n: a for n, a in named(["grammar"]).items() if n not in families and n not in later} if rounds else {}
    task = Task(
        Prompted(judge, grid.template(grid.start), Sampling(max_tokens=max_tokens), constrained=constrained),
        grid,
        _cases(cases or ["builtin"], root, limit),
        families,
        later,
        spare,
        tokens=tokens,
        protocol=_protocol(protocol),
        tau=tau,
    )
    race = Race(budget, alpha, objective=objective, rounds=rounds, seed=seed)  # type: ignore[arg-type]
    sys.stderr.write(f"{len(task.cases)} cases, {grid.size:,} prompts, at most {budget:,} judge calls\n")
    with Progress(None) as progress:
        found = optimise(
            task,
            race,
            Options(ledger=ledger, max_cost=max_cost, listener=progress),
            CoordinateAscent() if compare else None,
        )
    header = {"judge": judge, "prompt": prompt, "cases": len(task.cases), "seed": seed}
    paths = write(found, output, header)
    typer.echo(visible(verdict(evidence(found))))
    for name, path in paths.items():
        typer.echo(f"{name}: {path}")
    sys.stderr.write(f"{progress.words()}\n")


def _protocol(text: str) -> Protocol:
    from robustjudge.config.build import protocol_of
    from robustjudge.errors import ConfigError
    from robustjudge.protocols import BestOf, Pairwise, Pointwise

    found = protocol_of(text)
    if found not in (Pairwise(), Pointwise()) and not isinstance(found, BestOf):
        raise ConfigError(f"--protocol {text}: a prompt is optimised for pairwise, pointwise or best_of:K")
    return found


def _file(path: Path) -> str:
    from robustjudge.errors import DataError

    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path}: cannot be read ({fault})") from None


def _cases(names: list[str], root: Path | None, limit: int | None) -> tuple[Case, ...]:
    """Every case that can be judged in pairs; bad rows are told on stderr."""
    from robustjudge.config.build import cases_of
    from robustjudge.config.schema import CasesConfig

    told = [CasesConfig(source=n, root=str(root.absolute()) if root else "", limit=limit) for n in names]
    intake = cases_of(told, Path()).read_through()
    for row in intake.bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    return tuple(intake())
