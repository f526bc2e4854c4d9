"""The tail of a ledger: replies that are answered and not yet committed, so that kill -9 loses none of them.

One line each, handed to the operating system at once (which keeps it when the process dies; a power loss may not).  The
next start brings the tails of dead processes into the ledger; a torn last line is a miss.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from robustjudge.errors import StorageError

Reply = tuple[str, str, str, float, str]
"""Key, model, replica, time, reply as JSON text without a line break."""


class Tail:
    """The tail of one process; its lock ends with the process, however it ends."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(f"{ledger.name}.tail-{os.getpid()}-{secrets.token_hex(3)}")
        self._file: int | None = None

    def add(self, reply: Reply) -> None:
        """Keep one reply."""
        try:
            if self._file is None:
                self._file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
                fcntl.flock(self._file, fcntl.LOCK_EX)
            os.write(self._file, f"{json.dumps(reply[:4])}\t{reply[4]}\n".encode())
        except OSError as fault:
            raise StorageError(f"{self.path}: could not be written ({fault}); free disk space and --resume") from None

    def clear(self) -> None:
        """Forget what was added: the ledger has committed it."""
        if self._file is not None:
            os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Remove the tail, once the ledger has committed everything."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def left_behind(ledger: Path) -> Iterator[tuple[Path, list[Reply]]]:
    """The tails of processes that died, with the replies in them; the caller deletes a file once they are committed."""
    for path in sorted(ledger.parent.glob(f"{ledger.name}.tail-*")):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its process lives
            yield path, [reply for line in file if (reply := _read(line))]


def _read(line: bytes) -> Reply | None:
    try:
        head, _, text = line.decode("utf-8").removesuffix("\n").partition("\t")
        key, model, replica, at = json.loads(head)
        json.loads(text)
        return str(key), str(model), str(replica), float(at), text
    except (ValueError, TypeError):
        return None
