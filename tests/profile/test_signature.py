"""A signature beside a package: it holds for these bytes, this signer and this kind of file, and for nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from robustjudge.errors import ConfigError
from robustjudge.profile import calibrate_judge, save_profile
from robustjudge.profile.signature import check_signature, sign

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


def key(folder: Path, name: str) -> Path:
    made = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(made)], check=True)
    return made


def test_a_signature_holds_for_bytes_and_signer(tmp_path: Path) -> None:
    package = tmp_path / "profile.json"
    save_profile(calibrate_judge(list(range(8)), [1, 0] * 4, lambda i: 1 - i % 2), package)
    ann, bob = key(tmp_path, "ann"), key(tmp_path, "bob")
    signers = tmp_path / "allowed"
    signers.write_text("".join(f"{k.name} {Path(f'{k}.pub').read_text()}" for k in (ann, bob)))
    assert check_signature(package, signers, "ann").detail.endswith("is missing")
    assert sign(package, ann) == tmp_path / "profile.json.sig"
    assert check_signature(package, signers, "ann").result == "pass"
    assert check_signature(package, signers, "bob").result == "fail"
    sign(package, bob)
    assert check_signature(package, signers, "bob").result == "pass"
    package.write_text(package.read_text().replace("0", "1", 1))
    assert check_signature(package, signers, "bob").result == "fail"
    with pytest.raises(ConfigError, match="was not signed"):
        sign(package, tmp_path / "nobody")
