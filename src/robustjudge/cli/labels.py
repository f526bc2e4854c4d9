"""``robustjudge label``: plan how many labels, draw the items, and open the labelling page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible


def label(
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="file of the items: id, task, response")] = "",
    raters: Annotated[str, typer.Option(help="names of the raters, with commas; two at least")] = "",
    labels: Annotated[list[str] | None, typer.Option("--label", help="a label; repeat, in the scale's order")] = None,
    rubric: Annotated[str, typer.Option(help="one precise, testable sentence")] = "",
    number: Annotated[int | None, typer.Option("-n", "--number", min=1, help="items to draw (default: all)")] = None,
    seed: Annotated[int, typer.Option(help="seed of the draw and of each rater's order")] = 0,
    judged: Annotated[
        Path | None, typer.Option(help="long form with judge rows: its label of an item is the item's stratum")
    ] = None,
    size: Annotated[list[str] | None, typer.Option(help="STRATUM=N; repeat: how many of each stratum")] = None,
    repeats: Annotated[float, typer.Option(min=0, max=1, help="share of hidden repeats")] = 0.1,
    store: Annotated[Path, typer.Option(help="where labels are kept; an existing one is gone on with")] = Path(
        "labels.sqlite"
    ),
    export: Annotated[Path | None, typer.Option(help="write the labels (.csv or .jsonl) and leave")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port on 127.0.0.1 (0: a free one)")] = 0,
    plan: Annotated[bool, typer.Option(help="tell how many labels are needed; nothing is opened")] = False,
    half_width: Annotated[float, typer.Option(help="--plan: wanted +- of TPR, FPR and rate")] = 0.1,
    prevalence: Annotated[float, typer.Option(min=0.001, max=0.999, help="--plan: expected share of positives")] = 0.5,
    expect_tpr: Annotated[float, typer.Option(min=0, max=1, help="--plan: expected TPR")] = 0.9,
    expect_fpr: Annotated[float, typer.Option(min=0, max=1, help="--plan: expected FPR")] = 0.1,
    budget: Annotated[int | None, typer.Option(min=2, help="--plan: labels you can pay for")] = None,
    suggest: Annotated[
        bool, typer.Option(help="with --judged and the labels in --store: what to label next, and may you stop")
    ] = False,
) -> None:
    """Label items blind to each other and to the judge.  Labels are stored at once; agreement stays hidden until the end."""
    from robustjudge.errors import ConfigError
    from robustjudge.labelling import Store

    if plan:
        from robustjudge.profile.planning import planned

        for line in planned(half_width, prevalence, expect_tpr, expect_fpr, budget):
            typer.echo(line)
        return
    if suggest:
        _suggest(store, judged, labels, number or 10, half_width)
        return
    if not store.exists():
        if not items:
            raise ConfigError("give the ITEMS to label, or --store of a study that was begun")
        _create(store, items, raters, labels or [], rubric, number, seed, judged, size or [], repeats)
    study = Store(store)
    if export is not None:
        from robustjudge.profile.longform import write_labels

        rows = study.rows()
        write_labels(rows, export)
        typer.echo(f"{len(rows)} labels: {export}")
        return
    _serve(study, port)


def _create(
    store: Path,
    items: str,
    raters: str,
    labels: list[str],
    rubric: str,
    number: int | None,
    seed: int,
    judged: Path | None,
    size: list[str],
    repeats: float,
) -> None:
    from robustjudge.datasets.registry import load
    from robustjudge.errors import ConfigError
    from robustjudge.labelling import Item, Store
    from robustjudge.profile import draw

    names = [r.strip() for r in raters.split(",") if r.strip()]
    if len(names) < 2:
        raise ConfigError("two raters at least: --raters ann,bob (one person's labels are no reference)")
    found = {c.id: Item(c.id, c.task, c.response, c.reference) for c in load(items)}
    sizes: dict[str, int] = {}
    for text in size:
        name, _, count = text.rpartition("=")
        if not name or not count.isdigit():
            raise ConfigError(f"{text!r}: a stratum's size is written STRATUM=N")
        sizes[name] = int(count)
    strata = _strata(judged) if judged else None
    n = sum(sizes.values()) if sizes else number or len(found)
    drawn = draw(list(found), n, seed=seed, strata=strata, sizes=sizes or None)
    Store.create(store, found, drawn, rubric=rubric, labels=labels, raters=names, seed=seed, repeats=repeats)
    typer.echo(f"{n} of {len(found)} items drawn with seed {seed}; each keeps its inclusion probability")


def _strata(path: Path) -> dict[str, str]:
    """What the judge said of each item: the stratum by which a rare class is oversampled."""
    from robustjudge.cli.calibrating import label_rows

    return {r.item: r.label or r.status for r in label_rows(path) if r.rater_kind == "judge" and r.repeat == 0}


def _suggest(store: Path, judged: Path | None, labels: list[str] | None, n: int, half_width: float) -> None:
    from robustjudge.cli.calibrating import label_rows, shown
    from robustjudge.errors import ConfigError
    from robustjudge.labelling import Store
    from robustjudge.profile.planning import may_stop, next_items

    if judged is None or not labels:
        raise ConfigError(
            "--suggest needs --judged FILE (the judge's verdicts on all items) and --label, positive first"
        )
    human = Store(store).rows() if store.exists() else []
    if not human:
        typer.echo(f"no labels yet in {store} (--store)")
    for item, why in next_items(label_rows(judged), human, labels[0], n):
        typer.echo(visible(f"{item}: {why}"))
    for name, e, stop in may_stop(label_rows(judged), human, labels[0], half_width):
        typer.echo(
            f"{name} so far: {shown(e)}, valid at every look; {'may stop' if stop else 'go on'} for +-{half_width:g}"
        )


def _serve(study: Any, port: int) -> None:
    from robustjudge.labelling import app_of
    from robustjudge.web import new_token, serve

    tokens = {new_token(): who for who in (*study.raters, "adjudicator")}

    def ready(server: Any) -> None:
        for who in (*study.raters, "adjudicator"):
            typer.echo(visible(f"{who}: {server.link(who)}", 400))
        sys.stderr.write("each link is one person's; Ctrl-C ends, and everything labelled is kept\n")
        sys.stderr.flush()

    serve(app_of(study), tokens, port, ready)
    done = sum(a for a, _ in map(study.progress, study.raters))
    typer.echo(f"{done} labels are in {study.path}; --export FILE writes them")
