"""``robustjudge gate``: decide by a policy whether the judge may ship; ``selftest`` and ``preview`` test the gate itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from robustjudge.cli.terminal import visible


class _RunFirst(TyperGroup):
    """``gate RUN`` is short for ``gate check RUN``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["check", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(add_completion=False, cls=_RunFirst, no_args_is_help=True, help="Decide whether a judge may ship.")

RunArg = Annotated[Path, typer.Argument(help="run folder, or `runs` for the latest")]
PolicyOption = Annotated[Path | None, typer.Option(help="policy file (YAML); default: strict with the shipped limits")]
JudgeOption = Annotated[str, typer.Option(help="the judge to decide on, where the run has several")]


@app.command("check")
def check_run(
    run: RunArg,
    policy: PolicyOption = None,
    baseline: Annotated[Path | None, typer.Option(help="run folder of the release to compare with")] = None,
    waivers: Annotated[Path | None, typer.Option(help="file of accepted risks (YAML)")] = None,
    judge: JudgeOption = "",
    junit: Annotated[bool, typer.Option("--junit", help="write junit.xml into the run folder")] = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="write results.sarif into the run folder")] = False,
    prompt: Annotated[str, typer.Option(help="file of the judge prompt, the location in SARIF")] = "",
    reviews: Annotated[
        str, typer.Option(help="where reviewers' decisions lie: file or postgresql:// address")
    ] = ".robustjudge/review.sqlite",
    remedy: Annotated[bool, typer.Option(help="re-try defenses on the failing cases (makes calls)")] = False,
    auditor: Annotated[
        str, typer.Option(help="model of another family that reads the rationales for rule (b) (makes calls)")
    ] = "",
    max_calls: Annotated[int | None, typer.Option(min=1, help="cap on the auditor's calls")] = None,
    ledger: Annotated[Path, typer.Option(help="the project's ledger, for the auditor")] = Path(
        ".robustjudge/ledger.sqlite"
    ),
    exit_code_on_fail: Annotated[int, typer.Option(min=0, max=255, help="maps exit code 1 only")] = 1,
    summary: Annotated[bool, typer.Option(help="append to the CI's step summary, where it has one")] = True,
    comment: Annotated[Path | None, typer.Option(help="write the body of a pull-request comment")] = None,
    alert: Annotated[list[str] | None, typer.Option(help="webhook or Apprise address; repeat for several")] = None,
    alert_state: Annotated[Path, typer.Option(help="what was told before")] = Path(".robustjudge/alerts.json"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print the verdict line only")] = False,
) -> None:
    """Decide on confidence bounds: 0 pass, 1 fail, 2 usage, 3 inconclusive, 4 incomplete.  No call is made but by
    ``--remedy`` and ``--auditor``."""
    from robustjudge.engine.folder import Folder
    from robustjudge.gate import contracts
    from robustjudge.gate.check import check
    from robustjudge.gate.decide import combined
    from robustjudge.gate.evidence import subjects
    from robustjudge.gate.junit import junit as junit_xml
    from robustjudge.gate.people import reviewed
    from robustjudge.gate.policy import read_policy
    from robustjudge.gate.sarif import sarif as sarif_log
    from robustjudge.gate.summary import (
        annotate,
        append_step_summary,
        comment as comment_body,
        risk_line,
        summary as text,
    )
    from robustjudge.gate.waivers import read_waivers

    rules, accepted = read_policy(policy or _declared(run)), read_waivers(waivers)
    names = [judge] if judge else sorted({j for j, d in subjects(run) if d == rules.defense}) or [""]
    asked = _auditor(run, auditor, ledger, max_calls) if auditor else None
    decided, said = [], _said(reviews)
    for name in names:
        e, d = check(run, rules, judge=name, baseline=baseline, waivers=accepted, auditor=asked)
        d = reviewed(e, d, said)
        fixes = _remedies(e, d) if remedy else []
        place = e.path if len(names) == 1 else contracts.folder_of(e)
        contracts.write(e, d, fixes, place)
        if junit:
            Folder(place).write("junit.xml", junit_xml(e, d))
        if sarif:
            hits = _lint(e)
            file, line = _prompt_file(e, prompt)
            Folder(place).write("results.sarif", sarif_log(d, hits, prompt=file, line=line))
        if summary:
            append_step_summary(text(e, d, fixes))
        if comment is not None:
            comment.write_text(comment_body(e, d, fixes), "utf-8")
        if os.environ.get("GITHUB_ACTIONS") == "true":
            for command in annotate(d, *_prompt_file(e, prompt)):
                typer.echo(command)
        decided.append((e, d))
        typer.echo(visible(f"{d.judge}: {d.words}"))
        if not quiet:
            _tell(d, fixes, risk_line(d.false_alarm), place / contracts.REPORT)
    _alert(decided, alert or [], alert_state)
    word = combined([d for _, d in decided])
    codes = {"pass": 0, "fail": exit_code_on_fail, "inconclusive": 3, "incomplete": 4}
    raise typer.Exit(codes[word])


def _auditor(run: Path, model: str, ledger: Path, max_calls: int | None) -> Any:
    """What asks the auditor about the rationales of a judge, with the settings of the run's own configuration."""
    from functools import partial

    from robustjudge.cli.execute import stored
    from robustjudge.config.build import settings_of
    from robustjudge.engine.folder import Folder
    from robustjudge.execution import Options, in_loop
    from robustjudge.gate.auditing import audited

    config = stored(run)[0] if Folder.open(run).manifest().get("config") else None
    models = settings_of(config) if config else {}
    family = config.models[model].family if config and model in config.models else ""
    options = Options(ledger=ledger, slug="audit", max_calls=max_calls, models=models)

    def ask(e: Any) -> Any:
        found = in_loop(partial(audited, e, model, options, family))
        if found.warning:
            sys.stderr.write(f"warning: {visible(found.warning, 300)}\n")
        return found

    return ask


def _declared(run: Path) -> Path | None:
    """The policy file that the run's configuration names."""
    from robustjudge.engine.folder import Folder

    config = dict(Folder.open(run).manifest().get("config", {}))
    return Path(str(config.get("base", "."))) / str(config["policy"]) if config.get("policy") else None


def _alert(decided: list[Any], addresses: list[str], state: Path) -> None:
    """Tell the addresses what changed; a failure of delivery is told and changes no exit code."""
    wanted = [*addresses, *filter(None, [os.environ.get("ROBUSTJUDGE_ALERT", "")])]
    if not wanted:
        return
    from robustjudge.tracking.alerts import notify, sender

    for fault in notify(decided, [sender(a) for a in dict.fromkeys(wanted)], state):
        sys.stderr.write(f"{visible(fault)}\n")


def _said(reviews: str) -> Any:
    """What reviewers decided, by content hash; without a store nobody has decided anything."""
    from robustjudge.review.store import decisions

    return decisions(reviews)


def _tell(d: Any, fixes: list[dict[str, Any]], risk: str, report: Path) -> None:
    from robustjudge.gate.reasons import words

    for line in (*d.reasons, *d.notes, *words(d.rationale)):
        typer.echo(f"  {visible(line, 300)}")
    for w in d.waivers:
        if w["findings"]:
            told = f"accepted by {w['approver']} until {w['expires']}: {w['reason']} ({len(w['findings'])} findings)"
            typer.echo(f"  {visible(told, 300)}")
    for r in fixes:
        after = _measured(r) if r["measured"] and r["kind"] != "none" else "" if r["measured"] else "untested"
        place = f" at {visible(r['where'], 120)}" if r["where"] else ""
        told = f" ({after})" if after else ""
        typer.echo(f"  change {visible(r['attack_category'], 60)}: {visible(r['change'], 200)}{place}{told}")
    typer.echo(f"  {risk}\n  {report}")


def _measured(r: dict[str, Any]) -> str:
    utility = r["benign_utility"].get("value")
    kept = "unknown" if utility is None else f"{100 * utility:.0f} %"
    return (
        f"{r['failures_before']} failures before, {r['failures_after']} after, clean verdicts kept {kept},"
        f" {r['extra_calls_per_item']:+.1f} calls per trial"
    )


def _lint(e: Any) -> list[Any]:
    from robustjudge.plan import prompted
    from robustjudge.prompts.lint import lint

    judge = _loaded(e.judge_spec)
    return [f for p in prompted(judge) for f in lint(p.template)] if judge is not None else []


def _loaded(spec: Any) -> Any:
    """The judge of a manifest, built again; ``None`` where a plugin it used is not installed here."""
    import robustjudge.judges  # noqa: F401  registers what a manifest may name
    from robustjudge.errors import ConfigError
    from robustjudge.spec import load

    try:
        return load(spec) if spec else None
    except ConfigError as fault:
        sys.stderr.write(
            f"the judge cannot be built from the manifest, so its prompt is not checked: {visible(str(fault))}\n"
        )
        return None


def _prompt_file(e: Any, given: str) -> tuple[str, int]:
    """The judge prompt's file and the line of its candidate slot."""
    from robustjudge.plan import prompted
    from robustjudge.prompts.slots import CANDIDATES

    judge = _loaded(e.judge_spec)
    for p in prompted(judge) if judge is not None else ():
        for form in p.template.forms:
            line = next((s.line for m in form.segments for s in m if s.slot in CANDIDATES), 1)
            return given or form.source, line
    return given, 1


def _remedies(e: Any, d: Any) -> list[dict[str, Any]]:
    """Measured changes for the failing categories, from the run's own configuration."""
    from robustjudge.cli.execute import stored
    from robustjudge.config.build import plan_of, services_of, settings_of
    from robustjudge.execution import Options
    from robustjudge.gate.remediation import remedy

    config, base = stored(e.path)
    options = Options(models=settings_of(config), services=services_of(config, base), max_calls=config.max_calls)
    return remedy(e, d, plan_of(config, base), options)


@app.command("selftest")
def selftest(
    run: RunArg,
    policy: PolicyOption = None,
    judge: JudgeOption = "",
    json_out: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """A/A: how often would the gate have blocked the same judge, judged twice?  Exit 1 above the policy's cap."""
    from robustjudge.gate.evidence import evidence
    from robustjudge.gate.policy import read_policy
    from robustjudge.gate.selftest import false_alarm
    from robustjudge.gate.summary import risk_line

    rules = read_policy(policy)
    found = false_alarm(evidence(run, judge, rules.defense), rules).as_dict()
    typer.echo(json.dumps(found, indent=2) if json_out else risk_line(found))
    gate = found["gate"]["value"]
    if gate is None:
        typer.echo("inconclusive: without an identity control nothing was judged twice")
        raise typer.Exit(3)
    if gate > rules.false_alarm_cap + 1e-9:
        typer.echo(f"above the policy's cap of {100 * rules.false_alarm_cap:g} %: do not let this gate block")
        raise typer.Exit(1)


@app.command("preview")
def preview_gate(
    policy: PolicyOption = None,
    base: Annotated[float, typer.Option(min=0.0, max=1.0, help="true pass share of the present release")] = 0.9,
    n: Annotated[list[int] | None, typer.Option(help="cases; repeat for several")] = None,
) -> None:
    """The risk of the baseline rule before adopting it: how often releases with a true drop would be blocked."""
    from robustjudge.gate.policy import read_policy
    from robustjudge.gate.selftest import preview

    rules = read_policy(policy)
    b = rules.baseline
    typer.echo(
        f"rule {b.rule}, tolerance {100 * b.tolerance:g}, margin {100 * b.margin:g} points, sensitivity {b.sensitivity:g},"
        f" specificity {b.specificity:g}, true pass share {base:g}"
    )
    typer.echo("cases  blocked or not passed at a true drop of 0 / 5 / 10 / 20 points   drop seen with 80 % power")
    for row in preview(rules, tuple(n or (60, 200, 500)), base):
        shares = " / ".join(f"{100 * v:.1f} %" for v in row["blocked"].values())
        drop = row["detectable_drop"]
        typer.echo(f"{row['n']:>5}  {shares:<60} {'none' if drop is None else f'{100 * drop:.1f} points'}")


@app.command("comment")
def put_comment(body: Annotated[Path, typer.Argument(help="the file that `gate --comment` wrote")]) -> None:
    """Put the gate's comment on the pull request of this workflow, or update it."""
    from robustjudge.errors import DataError
    from robustjudge.tracking.github import put_comment as put

    try:
        text = body.read_text("utf-8")
    except OSError as fault:
        raise DataError(
            f"{body}: cannot be read ({fault}); `robustjudge gate RUN --comment {body}` writes it"
        ) from None
    typer.echo(put(text))
