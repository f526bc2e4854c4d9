"""What people and judges are compared with: the commands ``calibrate``, ``bias``, ``label`` and ``profile``."""

from __future__ import annotations

import typer

from robustjudge.cli import biases, calibrating, labels, profiles

app = typer.Typer(add_completion=False)
app.command("calibrate")(calibrating.calibrate)
app.command("bias")(biases.bias)
app.command("label")(labels.label)
app.add_typer(profiles.app, name="profile")
