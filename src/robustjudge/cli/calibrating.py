"""``robustjudge calibrate``: from human labels to a judge package, or to the refusal of the step that failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustjudge.cli.terminal import visible

if TYPE_CHECKING:
    from robustjudge.profile import Calibration, LabelRow


def calibrate(
    labels_file: Annotated[
        Path, typer.Argument(metavar="LABELS", help="long form: item_id, rater_id, rater_kind, label")
    ],
    rubric: Annotated[str, typer.Option(help="one precise, testable sentence: what the positive label means")] = "",
    label: Annotated[list[str] | None, typer.Option(help="a declared label; repeat, in the scale's order")] = None,
    positive: Annotated[str, typer.Option(help="the label whose rates are reported (default: the first)")] = "",
    ordinal: Annotated[bool, typer.Option(help="labels are numbers with an order")] = False,
    design: Annotated[
        str, typer.Option(help="how items were drawn: srs, class_balanced, judge_chosen, stratified, active, unknown")
    ] = "",
    population: Annotated[str, typer.Option(help="what the items stand for, in words")] = "",
    items: Annotated[str, typer.Option(help="file of the items (id, task, response), for a judge that we run")] = "",
    judge: Annotated[str, typer.Option(help="model to run on the items, provider/model")] = "",
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="robustjudge.yaml with the judge to run")
    ] = None,
    judge_name: Annotated[str, typer.Option(help="which judge of the configuration (default: its only one)")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="times each item is judged; the first counts")] = 1,
    expect: Annotated[bool, typer.Option(help="ask label probabilities too, for score calibration")] = False,
    constrained: Annotated[
        bool, typer.Option(help="hold replies to the two labels: the likelier one (local models)")
    ] = False,
    tuned_on: Annotated[Path | None, typer.Option(help="file of item ids the judge prompt was tuned on")] = None,
    human_kappa: Annotated[float, typer.Option(help="floor on the lower bound of human agreement")] = 0.4,
    coverage: Annotated[float, typer.Option(help="floor on the share of readable verdicts")] = 0.95,
    half_width: Annotated[float, typer.Option(help="widest +- that TPR and FPR may have")] = 0.1,
    tpr: Annotated[float | None, typer.Option(help="floor on the true positive rate")] = None,
    fpr: Annotated[float | None, typer.Option(help="ceiling on the false positive rate")] = None,
    seed: Annotated[int, typer.Option(help="seed of the draw, for the record")] = 0,
    expires: Annotated[str, typer.Option(help="RFC 3339 time after which the package is void")] = "",
    raters_in: Annotated[
        str, typer.Option(help="LABELS is a wide CSV of people's labels: raters in rows or columns")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="folder of profile.json and page.html")] = Path(
        "profile"
    ),
    ledger: Annotated[Path, typer.Option(help="the project's ledger")] = Path(".robustjudge/ledger.sqlite"),
    max_calls: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Run the protocol.  Exit 0: certified; 1: refused; 3: inconclusive; the package is written in each case."""
    from robustjudge.errors import ConfigError
    from robustjudge.profile import CalibrationPolicy, Study, calibrate as protocol, read_labels
    from robustjudge.profile.longform import from_wide, read_wide

    if not label:
        raise ConfigError("declare the labels: --label SUCCESS --label FAILURE, in the scale's order")
    study = Study(
        rubric=rubric,
        labels=tuple(label),
        positive=positive,
        ordinal=ordinal,
        design=design,
        population=population,
        seed=seed,
        tuned_on=tuple(tuned_on.read_text("utf-8").split()) if tuned_on else (),
        policy=CalibrationPolicy(human_kappa, coverage, half_width, tpr, fpr),
        expires=expires,
    )
    wide = list(from_wide(read_wide(labels_file), raters_in)) if raters_in else None
    if judge or config:
        from robustjudge.execution import Options

        people: list[Any] = wide if wide is not None else list(read_labels(labels_file))
        options = Options(ledger=ledger, max_calls=max_calls)
        source, study = judged(people, study, items, judge, config, judge_name, repeats, (expect, constrained), options)
        done = protocol(source, study)
    else:
        done = protocol(wide if wide is not None else labels_file, study)
    write(done, output)
    raise typer.Exit(done.exit_code)


def judged(
    rows: list[Any],
    study: Any,
    items: str,
    model: str,
    config: Path | None,
    name: str,
    repeats: int,
    ours: tuple[bool, bool],
    options: Any,
) -> tuple[list[Any], Any]:
    """The rows of the file with those of a judge that we run on the labelled items, and the study that names it;
    ``ours``: whether our own
    grading prompt asks label probabilities too, and whether its replies are held to the labels."""
    from dataclasses import replace

    from robustjudge.datasets.registry import load
    from robustjudge.errors import ConfigError, DataError
    from robustjudge.profile import BadLabel
    from robustjudge.profile.grading import fingerprint, grader, judge_rows

    expect, constrained = ours
    if not items:
        raise ConfigError("--items FILE is needed to run the judge: the texts of the labelled items, by their id")
    good = [r for r in rows if not isinstance(r, BadLabel)]
    if any(r.rater_kind == "judge" for r in good):
        raise ConfigError("the file holds judge labels already; calibrate those without --judge, or take them out")
    wanted = {r.item_id: r.stratum for r in good if r.rater_kind == "human"}
    cases = [c for c in load(items) if c.id in wanted]
    if lacking := sorted(set(wanted) - {c.id for c in cases}):
        raise DataError(f"{items} lacks {len(lacking)} labelled items, among them {', '.join(lacking[:5])}")
    positive = study.positive or study.labels[0]
    if config is not None:
        judge, name, options = configured(config, name, options)
    else:
        judge, name = (
            grader(model, study.rubric, study.labels, ordinal=study.ordinal, expect=expect, constrained=constrained),
            model,
        )
    stopped = _stop_early(rows, study)
    if stopped is not None:
        return rows, study  # the protocol refuses before any judge call: none is paid for
    said = judge_rows(
        judge, cases, study.labels, positive, judge_id=name, options=options, repeats=repeats, known=wanted
    )
    return [*rows, *said], replace(study, judge_id=name, fingerprint=fingerprint(judge))


def _stop_early(rows: list[Any], study: Any) -> Calibration | None:
    """The refusal that the people's labels alone lead to, if they do."""
    from robustjudge.profile import calibrate as protocol

    dry = protocol(rows, study)
    return dry if dry.step not in (0, 6) else None


def configured(path: Path, name: str, options: Any) -> tuple[Any, str, Any]:
    """A judge of a configuration with its name, and options that can reach its models and services."""
    from dataclasses import replace

    from robustjudge.config.build import judge_of, services_of, settings_of
    from robustjudge.config.files import read_config
    from robustjudge.errors import ConfigError, UnknownName

    settings = read_config(path)
    known = tuple(settings.judges)
    if not known:
        raise ConfigError(f"{path}: no judge in the configuration")
    if not name and len(known) > 1:
        raise ConfigError(f"{path} has several judges; choose one with --judge-name: {', '.join(known)}")
    chosen = name or known[0]
    if chosen not in settings.judges:
        raise UnknownName("judge of this configuration", chosen, known)
    judge = judge_of(settings.judges[chosen], path.parent)
    reach = replace(options, models=settings_of(settings), services=services_of(settings, path.parent))
    return judge, chosen, reach


def write(done: Calibration, output: Path) -> None:
    """Write package and page, and tell the outcome."""
    from robustjudge.profile import page, save_profile

    output.mkdir(parents=True, exist_ok=True)
    address = save_profile(done.profile, output / "profile.json")
    (output / "page.html").write_text(page(done.profile), encoding="utf-8")
    told = [{"item": d.item, "labels": dict(d.labels), "stratum": d.stratum} for d in done.disagreements]
    (output / "disagreements.jsonl").write_text(
        "".join(json.dumps(t, ensure_ascii=False) + "\n" for t in told), encoding="utf-8"
    )
    for row in done.rejected[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    if done.rejected:
        sys.stderr.write(f"{len(done.rejected)} rows set aside in all\n")
    step = f" at step {done.step}" if done.step else ""
    typer.echo(visible(f"{done.outcome}{step}{': ' + done.reason if done.reason else ''}"))
    for line in _figures(done):
        typer.echo(visible(line))
    typer.echo(f"package: {output / 'profile.json'} ({address[:12]})\npage: {output / 'page.html'}")


FLAGS = ("fatigue", "intra_rater", "reconciled_labels", "leak", "constant_labels")
"""Checks whose failing stops nothing, and which a reader must still know."""


def _figures(done: Calibration) -> list[str]:
    p = done.profile
    people = p.humans.get("agreement", {})
    rows = [("human kappa", people.get("kappa") or people.get("fleiss_pooled"))]
    rows += [("TPR", p.tpr), ("FPR", p.fpr), ("J", p.youden_j), ("kappa", p.kappa), ("prevalence", p.prevalence)]
    out = [f"{name}: {shown(e)}" for name, e in rows if e is not None and e.method != "none"]
    if done.disagreements and done.step == 4:
        disputed = p.humans.get("disputed", {})
        out += [f"taken for each other: {k} ({n} items)" for k, n in disputed.get("by_label", {}).items()]
        for name, s in disputed.get("by_stratum", {}).items():
            out.append(f"in {name}: {s['disputed']} of {s['items']} items disputed")
        for d in done.disagreements[:10]:
            out.append(f"raters differ on {d.item}: " + ", ".join(f"{r} {v}" for r, v in d.labels))
    out += [
        f"flagged, {c.name.replace('_', ' ')}: {c.detail}" for c in p.checks if c.name in FLAGS and c.result == "fail"
    ]
    if done.corrected is not None:
        c = done.corrected
        how = f" ({c.estimator})" if c.estimator else ""
        out.append(f"rate: raw {shown(c.raw)}, labels only {shown(c.labels_only)}, corrected{how} {shown(c.corrected)}")
        out += [f"rate, {name}: {shown(e)}" for name, e in c.others]
        out += [f"rate: {told}" for told in (c.refusal, *c.notes) if told]
    return [*out, f"labels: {p.labels_needed}"] if p.labels_needed else out


def shown(e: Any) -> str:
    """An estimate in one line."""
    if e.value is None:
        return f"undefined ({e.reason})"
    ends = f" [{e.low:.3f}, {e.high:.3f}]" if e.low is not None and e.high is not None else ""
    return f"{e.value:.3f}{ends} (n {e.n})"


def label_rows(path: Path) -> list[LabelRow]:
    """The usable rows of a label file; the others are told on stderr."""
    from robustjudge.profile import BadLabel, read_labels

    out: list[LabelRow] = []
    for row in read_labels(path):
        if isinstance(row, BadLabel):
            sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
        else:
            out.append(row)
    return out
