"""The transaction log of an offline W&B run: wait until its last record is on disk.

``run.finish()`` returns once the exit record was *handled*; the service writes its buffer (blocks of 32 KiB) and closes
the file afterwards, on a message that nobody answers, so that right after ``finish`` the file usually holds nothing but
its header.  For an offline run the file is all there is, so we wait for it.  The layout is that of LevelDB's log
(https://github.com/google/leveldb/blob/main/doc/log_format.md) behind a header of seven bytes, with CRC-32 checksums.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from robustjudge.errors import Incomplete

HEADER = b":W&B"
START = 7
BLOCK = 32 * 1024
FRAME = struct.Struct("<IHB")
FULL, LAST = 1, 4
PAUSE = 0.01


def await_exit(file: Path, timeout: float = 60.0) -> None:
    """Return once ``file`` holds its exit record whole.

    Raises :class:`~robustjudge.errors.Incomplete` after ``timeout`` seconds without it.
    """
    until = time.monotonic() + timeout
    while not ended(file):
        if time.monotonic() > until:
            raise Incomplete(
                f"Weights & Biases has not written {file} to its end within {timeout:g} s; the run's result stands,"
                " but its W&B record is not complete: look at logs/debug-internal.log beside it, and log again"
            )
        time.sleep(PAUSE)


def ended(file: Path) -> bool:
    """Is the exit record, the last that an offline run writes, in the file?"""
    from wandb.proto.wandb_internal_pb2 import Record

    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return False
    last = deque(records(data), maxlen=1)
    return bool(last) and Record.FromString(last[0]).WhichOneof("record_type") == "exit"


def records(data: bytes) -> Iterator[bytes]:
    """The whole records of a log, in order; what is cut or not yet written ends the sequence."""
    if not data.startswith(HEADER):
        return
    at, parts = START, list[bytes]()
    while at + FRAME.size <= len(data):
        rest = BLOCK - at % BLOCK
        if rest < FRAME.size:  # a frame's head never straddles two blocks
            at += rest
            continue
        checksum, size, kind = FRAME.unpack_from(data, at)
        body = data[at + FRAME.size : at + FRAME.size + size]
        if len(body) < size or zlib.crc32(body, zlib.crc32(bytes([kind]))) != checksum:
            return
        parts.append(body)
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts.clear()
        at += FRAME.size + size
