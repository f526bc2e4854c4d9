"""``robustjudge run --fleet``: every judge of a fleet file, the status page, the alerts, and one exit code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from robustjudge.cli.terminal import visible


def run_fleet(file: Path, options: Any, changed_only: bool) -> int:
    """Run, decide, tell and write; returns the exit code."""
    from robustjudge.cli.progress import Progress
    from robustjudge.fleet import page
    from robustjudge.fleet.file import read_fleet
    from robustjudge.fleet.night import expiring, night, outcome, standings
    from robustjudge.models.base import expand
    from robustjudge.tracking.alerts import remind, sender, tell

    fleet, base = read_fleet(file), file.parent
    wanted = [expand(a) for a in fleet.alerts] + list(filter(None, [os.environ.get("ROBUSTJUDGE_ALERT", "")]))
    sends = [sender(a) for a in dict.fromkeys(wanted)]  # a wrong address is told before anything is spent
    options.root.mkdir(parents=True, exist_ok=True)
    state = options.root / "alerts.json"
    stands = night(
        fleet,
        base,
        options,
        changed_only=changed_only,
        say=lambda line: typer.echo(visible(line, 400), err=True),
        watch=Progress,
    )
    ending = expiring(fleet, base)
    faults = tell(standings(stands), sends, state) if sends else []
    faults += remind(ending, sends, state) if sends else []
    html, _ = page.write(options.root, stands, faults, [a.reasons[0] for a in ending.values()])
    for s in stands:
        why = s.fault or (s.told.reasons[0] if s.told.reasons and not s.told.passed else "")
        typer.echo(visible(f"{s.member}: {s.told.judge}: {s.told.verdict}{f': {why}' if why else ''}", 400))
    for line in (*(a.reasons[0] for a in ending.values()), *faults):
        typer.echo(visible(line, 400), err=True)
    typer.echo(f"html: {html}")
    return outcome(stands)
