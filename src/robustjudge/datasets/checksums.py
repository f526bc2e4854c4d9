"""Compares data files with the SHA256SUMS that stands beside them, so that a changed file fails loudly."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from robustjudge.errors import DataError

NAME = "SHA256SUMS"


def published(root: Path) -> dict[str, str]:
    """File name inside ``root`` to its hexadecimal SHA-256, from ``root/SHA256SUMS`` (``sha256sum`` format)."""
    listing = root / NAME
    try:
        text = listing.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{listing}: cannot be read ({fault})") from None
    sums: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        digest, _, name = line.partition(" ")
        if len(digest) != 64 or not name.strip():
            raise DataError(f"{listing}: line {number}: expected '<64 hexadecimal digits>  <file>'")
        sums[name.lstrip(" *").removeprefix("./")] = digest.lower()
    return sums


def check(root: Path, names: Iterable[str]) -> None:
    """Raise :class:`DataError` for the first of ``names`` (inside ``root``) that is unlisted, absent or changed."""
    sums = published(root)
    for name in names:
        if name not in sums:
            raise DataError(f"{root / NAME}: {name} is not listed, so it cannot be checked")
        try:
            with (root / name).open("rb") as stream:
                found = sha256()
                while block := stream.read(1 << 20):
                    found.update(block)
        except OSError as fault:
            raise DataError(f"{root / name}: cannot be read ({fault.strerror or fault})") from None
        if found.hexdigest() != sums[name]:
            raise DataError(
                f"{root / name}: the file differs from the one in {NAME} "
                f"(SHA-256 {found.hexdigest()[:12]}..., expected {sums[name][:12]}...)."
                " Restore it, or load without checksums."
            )
