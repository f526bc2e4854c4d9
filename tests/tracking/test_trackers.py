"""MLflow (file store) and Weights & Biases (offline) hold the run; an undefined figure is never logged as 0."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))

from gate_runs import run

from robustjudge.errors import Incomplete
from robustjudge.gate import contracts
from robustjudge.gate.check import check
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.policy import Policy
from robustjudge.models.scripted import Copycat, Down, Table
from robustjudge.tracking.base import record


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Decision]:
    folder = run(tmp_path_factory.mktemp("tracked"), Copycat(judge=Table()), 20, ("H1", "json_injection"))
    e, d = check(folder, Policy(minimum_n=10))
    contracts.write(e, d)
    return e, d


def test_the_record_holds_rates_bounds_and_the_gate(gated: tuple[Evidence, Decision]) -> None:
    r = record(*gated)
    assert r.tags["gate"] == "fail"
    assert (
        0
        < r.metrics["asr/format_hacking_low"]
        <= r.metrics["asr/format_hacking"]
        <= r.metrics["asr/format_hacking_high"]
    )
    assert r.metrics["asr/injection"] == 0.0
    assert r.params["prompt_version"].startswith("robustjudge@")
    assert {f.name for f in r.files} >= {"robustness_report.json", "manifest.json"}


def test_an_undefined_figure_is_left_out(tmp_path: Path) -> None:
    r = record(*check(run(tmp_path, Down(), 3, ("H1",)), Policy(minimum_n=2)))
    assert "asr/injection" not in r.metrics and r.metrics["asr/injection_n"] == 0.0
    assert "false_alarm/gate" not in r.metrics


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    library = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    library.set_tracking_uri((tmp_path / "mlruns").as_uri())
    return library


def test_mlflow_holds_the_run_and_leaves_an_open_one_open(
    mlflow: Any, gated: tuple[Evidence, Decision], tmp_path: Path
) -> None:
    from robustjudge.tracking.mlflow import log

    client = mlflow.MlflowClient()
    alone = client.get_run(log(*gated, store=tmp_path / "mlruns"))
    assert alone.data.tags["gate"] == "fail" and alone.info.status == "FINISHED"
    assert alone.data.metrics["asr/format_hacking"] > 0.5
    assert "robustness_report.json" in {a.path for a in client.list_artifacts(alone.info.run_id)}
    assert mlflow.active_run() is None
    with mlflow.start_run() as outer:
        inner = client.get_run(log(*gated))
        assert mlflow.active_run().info.run_id == outer.info.run_id
        assert inner.data.tags["mlflow.parentRunId"] == outer.info.run_id
        gone = replace(gated[0], path=gated[0].path)
        broken = replace(gated[1], judge="x" * 10)
        with pytest.raises(Exception, match="not a metric"), pytest.MonkeyPatch.context() as patch:
            patch.setattr(mlflow, "log_metrics", _boom)
            log(gone, broken)
        assert mlflow.active_run().info.run_id == outer.info.run_id
    runs = client.search_runs([outer.info.experiment_id])
    assert {r.info.status for r in runs} == {"FINISHED", "FAILED"}


def _boom(metrics: object) -> None:
    raise ValueError("not a metric")


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    library = pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    return library


def test_wandb_holds_the_run_offline(wandb: Any, gated: tuple[Evidence, Decision], tmp_path: Path) -> None:
    from robustjudge.tracking.wandb import log
    from robustjudge.tracking.wandb_log import records

    folder = log(*gated, folder=tmp_path)
    (file,) = folder.glob("run-*.wandb")
    held = b"".join(records(file.read_bytes()))
    assert b"asr/format_hacking" in held and b"robustness_report.json" in held


def test_wandb_is_waited_for_while_its_service_is_slow_to_write(
    wandb: Any, gated: tuple[Evidence, Decision], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service closes its file on a message after ``finish``: here that message comes late, as on a busy machine."""
    from robustjudge.tracking.wandb import log
    from robustjudge.tracking.wandb_log import ended

    connection = pytest.importorskip("wandb.sdk.lib.service.service_connection").ServiceConnection
    at_once, late = connection.inform_finish, list[threading.Timer]()

    def inform_later(self: Any, run_id: str) -> None:
        (folder,) = tmp_path.glob("wandb/offline-run-*")
        assert not ended(folder / f"run-{run_id}.wandb")
        late.append(threading.Timer(0.5, at_once, (self, run_id)))
        late[0].start()

    monkeypatch.setattr(connection, "inform_finish", inform_later)
    (file,) = log(*gated, folder=tmp_path).glob("run-*.wandb")
    assert late and ended(file)
    late[0].join()


def test_a_wandb_log_that_never_ends_is_told(wandb: Any, gated: tuple[Evidence, Decision], tmp_path: Path) -> None:
    from robustjudge.tracking.wandb import log
    from robustjudge.tracking.wandb_log import await_exit, ended, records

    (file,) = log(*gated, folder=tmp_path).glob("run-*.wandb")
    whole = file.read_bytes()
    for cut in (0, 3, 7, 20, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert not ended(file)
        assert all(a == b for a, b in zip(records(whole[:cut]), records(whole), strict=False))
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(Incomplete, match="has not written"):
        await_exit(file, 0.05)
    file.unlink()
    with pytest.raises(Incomplete, match="the run's result stands"):
        await_exit(file, 0.05)


def test_wandb_records_longer_than_a_block_are_read_whole(wandb: Any, tmp_path: Path) -> None:
    from robustjudge.tracking.wandb_log import await_exit, records

    run = wandb.init(dir=str(tmp_path), mode="offline", settings=wandb.Settings(silent=True, console="off"))
    run.log({"long": "x" * 100_000, "short": 1})
    run.finish()
    file = Path(run.dir).parent / f"run-{run.id}.wandb"
    await_exit(file)
    assert b"x" * 100_000 in b"".join(records(file.read_bytes()))
