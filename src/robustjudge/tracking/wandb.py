"""Weights & Biases: the gated run as a run of its own; with ``mode="offline"`` nothing leaves the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.tracking.base import record
from robustjudge.tracking.wandb_log import await_exit


def log(
    e: Evidence, d: Decision, project: str = "robustjudge", mode: str = "offline", folder: Path | None = None
) -> Path:
    """Log configuration, summary, tags and reports; returns the run's folder.

    A run that is open already stays open and current: ours is opened beside it (``reinit="create_new"``) and closed
    whatever happens.  An offline run is on disk, whole, when this returns; otherwise
    :class:`~robustjudge.errors.Incomplete` is raised.  Needs the extra ``wandb``.
    """
    wandb = _library()
    what = record(e, d)
    run = wandb.init(
        project=project,
        name=what.name,
        mode=mode,
        dir=str(folder) if folder is not None else None,
        config={**what.params, **{f"tag.{k}": v for k, v in what.tags.items()}},
        reinit="create_new",
        settings=wandb.Settings(silent=True, console="off"),
    )
    failed, offline = 1, bool(run.offline)
    try:
        run.log(dict(what.metrics))
        for name, value in what.tags.items():
            run.summary[name] = value
        artifact = wandb.Artifact(f"robustjudge-{run.id}", type="report")
        for file in what.files:
            artifact.add_file(str(file), name=file.name)
        run.log_artifact(artifact)
        failed = 0
    finally:
        run.finish(exit_code=failed)
    home = Path(run.dir).parent
    if offline:
        await_exit(home / f"run-{run.id}.wandb")
    return home


def _library() -> Any:
    try:
        import wandb
    except ImportError:
        raise ConfigError("Weights & Biases is not installed: pip install 'robustjudge[wandb]'") from None
    return wandb
