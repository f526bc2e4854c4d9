"""Who vouches for a package: a detached OpenSSH signature beside it, made and checked by ``ssh-keygen -Y``.

The keys are those that people already sign commits with; nothing is stored, and the package itself does not change.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from robustjudge.errors import ConfigError
from robustjudge.profile.package import Check

NAMESPACE = "robustjudge-profile"
"""What is signed: a signature of another kind of file does not hold for a package."""


def sign(package: Path, key: Path) -> Path:
    """Sign ``package`` with an OpenSSH private key (or a public one whose agent holds the other half); returns the
    signature's path, ``package`` with ``.sig`` added.  Raises :class:`ConfigError` with what ssh-keygen said."""
    made = Path(f"{package}.sig")
    made.unlink(missing_ok=True)
    done = _ssh_keygen("sign", "-f", str(key), "-n", NAMESPACE, str(package))
    if done.returncode or not made.exists():
        raise ConfigError(f"{package.name} was not signed: {_told(done)}")
    return made


def check_signature(package: Path, signers: Path, signer: str) -> Check:
    """Whether ``package.sig`` is a signature of the package's bytes by ``signer``, whose key the OpenSSH allowed-signers
    file ``signers`` names."""
    made = Path(f"{package}.sig")
    if not made.exists():
        return Check("signature", "fail", f"{made.name} is missing")
    args = ("verify", "-f", str(signers), "-I", signer, "-n", NAMESPACE, "-s", str(made))
    done = _ssh_keygen(*args, data=package.read_bytes())
    return Check("signature", "fail" if done.returncode else "pass", _told(done))


def _ssh_keygen(*args: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ConfigError("signatures are made by ssh-keygen (OpenSSH 8.1 or later), which is not installed")
    return subprocess.run([program, "-Y", *args], input=data, capture_output=True, check=False, timeout=60)


def _told(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join((done.stdout + b" " + done.stderr).decode("utf-8", "replace").split())[:200]
