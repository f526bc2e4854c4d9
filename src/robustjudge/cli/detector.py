"""``detector``: calibrate a detector on honest texts of yours, and evaluate the frozen threshold on others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustjudge.cli.terminal import visible

if TYPE_CHECKING:
    from robustjudge.defenses.base import Thresholded
    from robustjudge.detectors import Texts
    from robustjudge.judges import Judge

app = typer.Typer(add_completion=False)
detector = typer.Typer(
    help="Calibrate a detector's threshold, and measure what it finds and costs.", no_args_is_help=True
)
app.add_typer(detector, name="detector")

Name = Annotated[
    str, typer.Argument(metavar="DETECTOR", help="perplexity (D1), llm_detector (D3), classifier (X5), ...")
]
TextsAt = Annotated[
    Path | None,
    typer.Argument(metavar="[TEXTS]", help="JSONL or CSV: text, label, group, task, kind, language, case"),
]
ModelIs = Annotated[str, typer.Option("--model", help="model of the detector, provider/model")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a setting of the detector; repeat")
]
JudgeIs = Annotated[
    str, typer.Option("--judge", help="model of the judge, for a detector that scores again (ablation)")
]
ConfigAt = Annotated[Path | None, typer.Option("--config", "-c", help="robustjudge.yaml with the models' settings")]
LedgerAt = Annotated[Path, typer.Option("--ledger", help="the project's ledger")]
LEDGER = Path(".robustjudge/ledger.sqlite")


@detector.command("calibrate")
def calibrate(
    name: Name,
    texts: TextsAt = None,
    model: ModelIs = "",
    alpha: Annotated[str, typer.Option(help="false-positive rate that the threshold may have")] = "0.05",
    settings: Settings = None,
    judge: JudgeIs = "",
    config: ConfigAt = None,
    ledger: LedgerAt = LEDGER,
    output: Annotated[Path, typer.Option("--output", "-o", help="the artefact to write")] = Path("threshold.json"),
) -> None:
    """Fit a threshold on honest texts (split conformal) and freeze it in a file.

    With rows labelled hard_benign the rate holds for either sort of honest text.  Without TEXTS: half of the built-in
    cases and hard-benign texts.  Attacked texts are refused.
    """
    from robustjudge.defenses.calibration import calibrated
    from robustjudge.errors import DataError

    made = _detector(name, model, settings)
    given = _development() if texts is None else _read(texts)
    if given.attacked:
        n = sum(map(len, given.attacked.values()))
        raise DataError(
            f"{texts}: {n} rows are labelled attacked; a threshold is fitted on honest texts alone: keep them for"
            " `robustjudge detector evaluate`"
        )
    judged = _judge(judge)
    _announced(made, given, judge)
    found = _run(
        lambda: calibrated(made, given.benign, alpha, judged, hard=given.every_hard), made, judge, config, ledger
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    found.save(output, (s.text for s in given.each()))
    low, high = found.spread()
    value = "none: it never fires" if found.value is None else f"{found.value:.6g}"
    hard = f" and {found.hard_n} hard-benign" if found.hard_n else ""
    typer.echo(visible(f"{made.name}: threshold {value}, alpha {found.alpha}, {found.n} benign{hard} texts"))
    typer.echo(f"false alarms to expect on fresh benign texts: {100 * low:.1f} to {100 * high:.1f} % (95 %)")
    for warning in found.warnings():
        typer.echo(f"warning: {warning}")
    typer.echo(f"hash: {found.hash}\nthreshold: {output}")


@detector.command("evaluate")
def evaluate(
    name: Name,
    texts: TextsAt = None,
    threshold: Annotated[str, typer.Option(help="the artefact of `calibrate`; `shipped` for a frozen one")] = "",
    model: ModelIs = "",
    settings: Settings = None,
    judge: JudgeIs = "",
    config: ConfigAt = None,
    ledger: LedgerAt = LEDGER,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="folder for report.json, report.md, report.html")
    ] = Path("detector"),
) -> None:
    """Measure a frozen threshold: false alarms on benign and hard-benign texts, detection by attack family.

    Without TEXTS: the other half of the built-in cases, and the hard-benign texts and payload families that were
    written after the shipped thresholds were frozen.  Texts that the threshold was calibrated on are left out.
    """
    from robustjudge.defenses import threshold as artefact
    from robustjudge.detectors import measured
    from robustjudge.errors import ConfigError
    from robustjudge.shapes import detector as shape
    from robustjudge.shapes.page import html, markdown, text

    if not threshold:
        raise ConfigError("give the artefact of `robustjudge detector calibrate` as --threshold FILE")
    made = _detector(name, model, settings, threshold)
    given = _held_out() if texts is None else _read(texts)
    known = artefact.seen(artefact.located(threshold, made.name))
    fresh = given.only(artefact.mark(s.text) not in known for s in given.each())
    inputs: dict[str, Any] = {
        "texts": str(texts) if texts else "built-in, held out",
        "benign_texts": len(fresh.benign),
        "hard_benign_texts": len(fresh.every_hard),
        "attacked_texts": sum(map(len, fresh.attacked.values())),
        "left_out_as_calibrated_on": len(given.each()) - len(fresh.each()),
    }
    judged = _judge(judge)
    _announced(made, fresh, judge)
    found = _run(lambda: measured(made, fresh, judged), made, judge, config, ledger)
    title, lead, shapes = f"Detector: {made.name}", shape.lead(found, inputs), shape.shapes(found)
    output.mkdir(parents=True, exist_ok=True)
    for file, body in (
        ("report.json", json.dumps(shape.told(found, inputs), indent=1, ensure_ascii=False, allow_nan=False) + "\n"),
        ("report.md", markdown(title, lead, shapes)),
        ("report.html", html(title, lead, shapes)),
    ):
        (output / file).write_text(body, "utf-8")
    typer.echo(text(title, lead, shapes))
    typer.echo(f"reports: {output}")


def _detector(name: str, model: str, settings: list[str] | None, threshold: str = "") -> Thresholded:
    """The detector of the flags; anything else than a detector is refused."""
    from robustjudge.defenses.base import Thresholded
    from robustjudge.defenses.library import defense_of
    from robustjudge.errors import ConfigError

    given: dict[str, Any] = {"model": model} if model else {}
    for one in settings or []:
        key, equals, value = one.partition("=")
        if not equals:
            raise ConfigError(f"--set {one!r}: expected KEY=VALUE")
        given[key] = _value(value)
    if {"tau", "threshold"} & set(given):
        raise ConfigError("the threshold comes from --threshold, not from --set")
    made = defense_of(name, {**given, **({"threshold": threshold} if threshold else {})})
    if not isinstance(made, Thresholded):
        raise ConfigError(f"{name} has no threshold: it is no detector")
    return made


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _judge(model: str) -> Judge | None:
    from robustjudge.judges import Prompted
    from robustjudge.prompts.library import template

    return Prompted(model, template("robustjudge")) if model else None


def _announced(made: Thresholded, given: Texts, judge: str) -> None:
    """How many texts there are and the most calls that they can take, before the first one is sent."""
    from robustjudge.nouns import Slate

    costs = [made.extra(Slate(s.task, (s.text,), (0,), kind=s.kind, language=s.language)) for s in given.each()]
    calls = {
        "".join(made.models()): sum(c.calls + c.passes for c in costs),
        judge: sum(1 + c.judges for c in costs) + max((c.once for c in costs), default=0) if judge else 0,
    }
    told = [f"at most {n:,} calls of {model}" for model, n in calls.items() if n]
    more = "; what was answered before is in the ledger and not asked again" if told else ""
    sys.stderr.write(f"{visible(', '.join([f'{len(costs):,} texts', *told]))}{more}\n")


def _read(path: Path) -> Texts:
    from robustjudge.detectors import read

    found, bad = read(path)
    for row in bad[:20]:
        sys.stderr.write(f"row set aside: {visible(str(row), 400)}\n")
    if bad:
        sys.stderr.write(f"{len(bad)} rows set aside in all; {len(found.each())} texts can be used\n")
    return found


def _development() -> Texts:
    from robustjudge.detectors.texts import development

    return development()


def _held_out() -> Texts:
    from robustjudge.detectors.texts import held_out

    return held_out()


def _run(make: Any, made: Thresholded, judge: str, config: Path | None, ledger: Path) -> Any:
    """Steps answered with ledger and limits; a progress line on stderr."""
    from robustjudge.cli.progress import Progress
    from robustjudge.config.build import settings_of
    from robustjudge.config.files import found, read_config
    from robustjudge.execution import Options, flown, in_loop

    at = found(config)
    models = settings_of(read_config(at)) if at else {}
    named = tuple(dict.fromkeys((*made.models(), *([judge] if judge else []))))
    with Progress(None) as progress:
        return in_loop(lambda: flown(make, named, Options(ledger=ledger, models=models, listener=progress)))
