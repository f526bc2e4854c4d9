"""Run folders: ``runs/<UTC>-<slug>-<id>/`` with a manifest, one writer at a time, and ``runs/latest``."""

from __future__ import annotations

import json
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from robustjudge import door
from robustjudge.errors import ConfigError, DataError, StorageError

TABLE = "run.sqlite"
MANIFEST = "manifest.json"


class Folder:
    """One run's folder.  ``lock`` keeps a second process out; the lock ends with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @classmethod
    def create(cls, root: Path, slug: str) -> Folder:
        """A new folder under ``root``, mode 0700, with ``root/latest`` pointing to it."""
        name = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-")[:40] or "run"
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = root / f"{stamp}-{name}-{secrets.token_hex(3)}"
        try:
            path.mkdir(parents=True, mode=0o700)
        except OSError as fault:
            raise StorageError(
                f"{root}: no run folder can be made there ({fault.strerror or fault}); name another with --output"
            ) from None
        latest = root / "latest"
        spare = root / f".latest-{secrets.token_hex(3)}"
        spare.symlink_to(path.name, target_is_directory=True)
        if latest.exists() and not latest.is_symlink():
            spare.unlink()
        else:
            os.replace(spare, latest)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> Folder:
        """An existing run folder; ``runs`` itself means its latest run."""
        for found in (path, path / "latest"):
            if (found / TABLE).is_file():
                return cls(found.resolve())
        raise DataError(f"{path}: no run here (no {TABLE}); `robustjudge run` makes one, `runs/latest` is the last")

    @property
    def table(self) -> Path:
        return self.path / TABLE

    def lock(self) -> None:
        """Take the folder for writing; a second run in it is refused."""
        import fcntl

        self._lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"{self.path}: another run is writing here; wait for it, or start one of its own"
            ) from None

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def manifest(self) -> dict[str, Any]:
        """The manifest, or an empty one."""
        file = self.path / MANIFEST
        if not file.is_file():
            return {}
        try:
            data: dict[str, Any] = json.loads(file.read_text("utf-8"))
            return data
        except ValueError as fault:
            raise DataError(
                f"{file}: damaged ({fault}); the rows in {TABLE} stand, delete the manifest to go on"
            ) from None

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder whole or not at all."""
        target = self.path / name
        spare = target.with_name(f".{target.name}.{secrets.token_hex(3)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            spare.write_text(door.safe(text), "utf-8")
            os.replace(spare, target)
        except OSError as fault:
            spare.unlink(missing_ok=True)
            raise StorageError(f"{target}: could not be written ({fault}); the rows committed so far stand") from None
        return target

    def write_manifest(self, data: dict[str, Any]) -> None:
        """Keys sorted at the top only: the order inside the configuration decides cell keys when a run is resumed."""
        ordered = {k: data[k] for k in sorted(data)}
        self.write(MANIFEST, json.dumps(ordered, indent=2, ensure_ascii=False) + "\n")
