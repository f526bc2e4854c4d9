"""Run folders: mode, latest, one writer at a time, manifests whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from robustjudge.engine.folder import Folder
from robustjudge.errors import ConfigError, DataError, StorageError


def test_a_new_folder_is_private_and_latest_points_to_it(tmp_path: Path) -> None:
    first = Folder.create(tmp_path / "runs", "../../Evil Näme!!")
    assert first.path.parent == tmp_path / "runs"
    assert first.path.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "runs" / "latest").resolve() == first.path.resolve()
    second = Folder.create(tmp_path / "runs", "b")
    assert second.path != first.path
    assert (tmp_path / "runs" / "latest").resolve() == second.path.resolve()


def test_runs_means_its_latest_run_and_nothing_is_a_clear_error(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "runs", "a")
    with pytest.raises(DataError, match="no run here"):
        Folder.open(folder.path)
    folder.table.touch()
    assert Folder.open(tmp_path / "runs").path == folder.path.resolve()
    assert Folder.open(folder.path).path == folder.path.resolve()


def test_a_second_run_in_one_folder_is_refused_until_the_first_ends_however_it_ends(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "runs", "a")
    hold = (
        "import sys, time; from pathlib import Path; from robustjudge.engine.folder import Folder;"
        "f = Folder(Path(sys.argv[1])); f.lock(); print('held', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", hold, str(folder.path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="another run is writing here"):
            folder.lock()
    finally:
        other.kill()
        other.wait()
    folder.lock()
    with pytest.raises(ConfigError):
        Folder(folder.path).lock()
    folder.unlock()
    Folder(folder.path).lock()


def test_files_are_written_whole_and_hostile_text_is_valid_utf8(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "runs", "a")
    folder.write_manifest({"note": "half \ud83d and NUL \x00"})
    assert json.loads((folder.path / "manifest.json").read_text("utf-8")) == folder.manifest()
    assert [p.name for p in folder.path.iterdir()] == ["manifest.json"]


def test_a_file_that_cannot_be_written_is_a_storage_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder.create(tmp_path / "runs", "a")
    folder.write("report.md", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StorageError, match="No space left"):
        folder.write("report.md", "new")
    assert [p.name for p in folder.path.iterdir()] == ["report.md"]
    assert (folder.path / "report.md").read_text() == "old"


def test_a_damaged_manifest_says_what_to_do(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "runs", "a")
    assert folder.manifest() == {}
    (folder.path / "manifest.json").write_text('{"half": ')
    with pytest.raises(DataError, match="delete the manifest"):
        folder.manifest()
