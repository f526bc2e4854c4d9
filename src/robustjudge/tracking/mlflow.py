"""MLflow: the gated run as a run of its own, nested in a run that is open already, which is never closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.tracking.base import record


def log(e: Evidence, d: Decision, experiment: str = "robustjudge", store: Path | str = "") -> str:
    """Log parameters, metrics, tags and reports; returns the run's id.

    ``store`` is a folder (file store), a database or a server address; empty takes MLflow's own setting.  An error
    closes our run as failed and is raised.  Needs the extra ``mlflow``.
    """
    mlflow = _library()
    if store:
        mlflow.set_tracking_uri(store.absolute().as_uri() if isinstance(store, Path) else store)
    outer = mlflow.active_run()
    if outer is None:
        mlflow.set_experiment(experiment)
    what = record(e, d)
    with mlflow.start_run(run_name=what.name, nested=outer is not None) as run:
        mlflow.log_params(dict(what.params))
        mlflow.log_metrics(dict(what.metrics))
        mlflow.set_tags(dict(what.tags))
        for file in what.files:
            mlflow.log_artifact(str(file))
    found: str = run.info.run_id
    return found


def _library() -> Any:
    try:
        import mlflow
    except ImportError:
        raise ConfigError("MLflow is not installed: pip install 'robustjudge[mlflow]'") from None
    return mlflow
