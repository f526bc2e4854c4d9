"""``robustjudge profile``: read, verify, compare and use judge packages; only ``drift`` may call a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from robustjudge.cli.calibrating import configured, label_rows, shown
from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Verify, compare and use judge packages.")

File = Annotated[Path, typer.Argument(metavar="PROFILE", help="a profile.json")]
Untested = Annotated[bool, typer.Option("--untested", help="correct although transfer was not tested; it is printed")]


@app.command("show")
def show(profile: File, page: Annotated[Path | None, typer.Option(help="write the readable page here")] = None) -> None:
    """Tell a package in a few lines; --page writes the page for people."""
    from robustjudge.profile import load_profile, page as made

    p = load_profile(profile)
    typer.echo(visible(f"{p.judge_id or 'unnamed'}: {p.outcome}{': ' + p.refusal if p.refusal else ''}"))
    typer.echo(visible(f"rubric: {p.rubric.get('text', '')}"))
    typer.echo(visible(f"population: {p.population.get('description', '')} ({p.population.get('design', '')})"))
    for name, e in (("TPR", p.tpr), ("FPR", p.fpr), ("J", p.youden_j), ("kappa", p.kappa), ("coverage", p.coverage)):
        typer.echo(f"{name}: {shown(e)}")
    typer.echo(visible(f"transfer: {p.transfer.get('status')} {p.transfer.get('sentence', '')}"))
    if page is not None:
        page.write_text(made(p), encoding="utf-8")
        typer.echo(f"page: {page}")


@app.command("verify")
def verify(
    profile: File,
    data: Annotated[Path | None, typer.Option(help="the label file it was made from")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="the judge as it runs now")] = None,
    judge_name: Annotated[str, typer.Option(help="which judge of the configuration")] = "",
    signers: Annotated[Path | None, typer.Option(help="OpenSSH allowed-signers file: check PROFILE.sig")] = None,
    signer: Annotated[str, typer.Option(help="whose signature it must be, as named in --signers")] = "",
) -> None:
    """Check a package offline: schema, canonical text, content address, figures, expiry, the judge's fingerprint, and
    its signature.

    Exit 1 when one check fails."""
    from robustjudge.profile import load_profile, verify as checked

    now = None
    if config is not None:
        from robustjudge.execution import Options
        from robustjudge.profile.grading import fingerprint

        judge, _, _ = configured(config, judge_name, Options())
        rubric = load_profile(profile).fingerprint.get("rubric_sha256")
        now = {**fingerprint(judge), "rubric_sha256": rubric}
    found = checked(profile, data=data, fingerprint=now).checks
    if signers is not None:
        from robustjudge.errors import ConfigError
        from robustjudge.profile.signature import check_signature

        if not signer:
            raise ConfigError("say whose signature it must be: --signer NAME, as in the allowed-signers file")
        found = (*found, check_signature(profile, signers, signer))
    for c in found:
        typer.echo(visible(f"{c.result}: {c.name}{' - ' + c.detail if c.detail else ''}"))
    if any(c.result == "fail" for c in found):
        raise typer.Exit(1)


@app.command("sign")
def sign(
    profile: File,
    key: Annotated[Path, typer.Option(help="OpenSSH private key, or the public key of one that your agent holds")],
) -> None:
    """Write PROFILE.sig, a detached OpenSSH signature of the package."""
    from robustjudge.profile import load_profile
    from robustjudge.profile.signature import sign as signed

    load_profile(profile)
    typer.echo(f"signature: {signed(profile, key)}")


@app.command("diff")
def diff(first: File, second: Annotated[Path, typer.Argument(help="the other profile.json")]) -> None:
    """Second minus first: what was declared differently, and TPR, FPR and prevalence with intervals."""
    from robustjudge.profile import diff as compared, load_profile

    d = compared(load_profile(first), load_profile(second))
    typer.echo("the same judge" if d.same_judge else "not the same judge: the fingerprint differs")
    for name, old, new in d.changed:
        typer.echo(visible(f"{name}: {old!r} -> {new!r}", 400))
    for name, w in (("TPR", d.tpr), ("FPR", d.fpr), ("prevalence", d.prevalence)):
        p = f", Fisher p {w.fisher_p:.3g}" if w.fisher_p is not None else ""
        typer.echo(f"{name} difference: {shown(w.difference)}{p}")


def _rate(text: str) -> tuple[int, int]:
    from robustjudge.errors import ConfigError

    x, _, n = text.partition("/")
    if not (x.isdigit() and n.isdigit() and 0 <= int(x) <= int(n) and int(n) > 0):
        raise ConfigError(f"{text!r}: a raw rate is written POSITIVES/ITEMS, as in 131/400")
    return int(x), int(n)


@app.command("reconcile")
def reconcile(
    first: File,
    first_rate: Annotated[str, typer.Argument(metavar="X/N", help="its raw rate: judge positives of items")],
    second: Annotated[Path, typer.Argument(help="the other profile.json")],
    second_rate: Annotated[str, typer.Argument(metavar="X/N")],
) -> None:
    """Two studies' raw rates on one footing: both corrected and their difference, or the refusal (exit 3)."""
    from robustjudge.profile import load_profile, reconcile as both

    r = both(load_profile(first), _rate(first_rate), load_profile(second), _rate(second_rate))
    typer.echo(f"first: {shown(r.first)}\nsecond: {shown(r.second)}\nraw difference: {r.raw_difference:+.3f}")
    if r.refusal:
        typer.echo(visible(f"refused: {r.refusal}"))
        raise typer.Exit(3)
    typer.echo(f"difference: {shown(r.difference)}")
    if r.note:
        typer.echo(f"note: {r.note}")


@app.command("correct")
def correct(
    run: Annotated[str, typer.Argument(metavar="RUN", help="a run folder, or a raw rate X/N")],
    profile: Annotated[Path, typer.Option(help="the package of the judge that gave the verdicts")],
    share: Annotated[
        float, typer.Option(min=0, max=0.99, help="with X/N: up to this share of submissions attack")
    ] = 0.0,
    attack_rate: Annotated[str, typer.Option(metavar="X/N", help="how often such an attack passes the judge")] = "",
    untested: Untested = False,
) -> None:
    """Correct a run's success rates, or one raw rate, by a package; exit 3 when nothing may be corrected."""
    from robustjudge.profile import attacked_range, correct_run, correct_with, load_profile

    p = load_profile(profile)
    if not Path(run).exists() and "/" in run:
        x, n = _rate(run)
        if share:
            from robustjudge.errors import ConfigError
            from robustjudge.measures.intervals import wilson

            if not attack_rate:
                raise ConfigError("--share needs --attack-rate X/N: how often the attack passes this judge")
            r = attacked_range(p, x, n, share, wilson(*_rate(attack_rate)), untested_ok=untested)
            typer.echo(f"nobody attacks: {shown(r.honest)}\na share of {share:g} attacks: {shown(r.worst)}")
            _end(r.honest, r.note)
            typer.echo(f"the true rate lies in [{r.low:.3f}, {r.high:.3f}]")
            return
        e, note = correct_with(p, x, n, untested_ok=untested)
        typer.echo(f"raw: {x / n:.3f}\ncorrected: {shown(e)}")
        _end(e, note)
        return
    from robustjudge.engine.folder import Folder
    from robustjudge.table import Table

    lines = correct_run(Table.load(Folder.open(Path(run)).table), p, untested_ok=untested)
    for x_ in lines:
        typer.echo(
            visible(f"{x_.judge} {x_.defense} {x_.attack}: raw {shown(x_.raw)}, corrected {shown(x_.corrected)}")
        )
        typer.echo(visible(f"  {x_.basis}{'; ' + x_.note if x_.note else ''}; {x_.unread} not read"))
    if all(x_.corrected.value is None for x_ in lines):
        raise typer.Exit(3)


@app.command("enough")
def enough(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run folder, finished or not")],
    half_width: Annotated[float, typer.Option(min=0.001, max=0.999, help="wanted +- of each success rate")] = 0.1,
) -> None:
    """May the judge calls stop?  Each attack's success rate with an interval that is valid at every look, so that a run
    may be capped, looked at and resumed until it is narrow enough.  Exit 3: go on."""
    from robustjudge.engine.folder import Folder
    from robustjudge.errors import DataError
    from robustjudge.measures.grid import COLUMNS, panels
    from robustjudge.profile.planning import enough as looked
    from robustjudge.table import Table

    found = looked(panels(Table.load(Folder.open(run).table, COLUMNS)), half_width)
    if not found:
        raise DataError(f"{run} has no attack with a readable verdict on an attackable case yet")
    for name, e, narrow in found:
        typer.echo(visible(f"{name}: {shown(e)}; {'may stop' if narrow else 'go on'} for +-{half_width:g}"))
    typer.echo("valid at every look (beta-binomial sequence over cases)")
    if not all(narrow for _, _, narrow in found):
        raise typer.Exit(3)


def _end(e: Any, note: str) -> None:
    if note:
        typer.echo(visible(note))
    if e.value is None:
        raise typer.Exit(3)


@app.command("drift")
def drift(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="anchors as first judged: long form with human and judge rows")
    ],
    new: Annotated[Path | None, typer.Argument(metavar="[NEW]", help="the same anchors judged again")] = None,
    label: Annotated[list[str] | None, typer.Option(help="the two labels, positive first")] = None,
    items: Annotated[str, typer.Option(help="texts of the anchors, to judge them again now")] = "",
    config: Annotated[Path | None, typer.Option("--config", "-c", help="robustjudge.yaml with the judge")] = None,
    judge_name: Annotated[str, typer.Option(help="which judge of the configuration")] = "",
    live_old: Annotated[str, typer.Option(metavar="X/N", help="judge-positive rate of live traffic then")] = "",
    live_new: Annotated[str, typer.Option(metavar="X/N", help="and now")] = "",
    history: Annotated[Path | None, typer.Option(help="JSONL of past error counts; this run is appended")] = None,
    run_length: Annotated[float, typer.Option(help="control chart: one false alarm in so many runs")] = 370.0,
    save: Annotated[Path | None, typer.Option(help="write the new verdicts here as CSV")] = None,
) -> None:
    """Frozen anchors judged again: flip rate, kappa old-new, who moved, and a control chart.

    Exit 1: the judge moved; 3: not comparable."""
    from robustjudge.errors import ConfigError
    from robustjudge.execution import Options
    from robustjudge.profile import drift as d
    from robustjudge.profile.longform import write_labels

    before = label_rows(old)
    labels = tuple(label or ())
    if len(labels) != 2:
        raise ConfigError("name the two labels, positive first: --label SUCCESS --label FAILURE")
    if new is not None:
        after = label_rows(new)
    elif config is not None and items:
        judge, name, options = configured(config, judge_name, Options())
        after = d.judged_again(before, items, judge, name, labels, options)
    else:
        raise ConfigError("give the second file, or --items and --config to judge the anchors again now")
    if save is not None:
        write_labels(after, save)
    live = (_rate(live_old), _rate(live_new)) if live_old and live_new else None
    report = d.drifted(before, after, labels, live=live, history=history, run_length=run_length)
    for line in report.lines():
        typer.echo(visible(line))
    if report.judge_moved:
        raise typer.Exit(1)
    if not report.same:
        raise typer.Exit(3)
