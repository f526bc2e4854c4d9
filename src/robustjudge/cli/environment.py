"""A ``.env`` file is read for keys that the environment lacks; it is never written and never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*\Z")


def read_env(path: Path = Path(".env")) -> tuple[str, ...]:
    """Set the variables of a ``.env`` file that are not set yet; returns their names.

    One ``NAME=value`` per line; quotes around the value are taken off; nothing is expanded or evaluated.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    added = []
    for line in lines:
        found = _LINE.match(line)
        if found is None or found[1] in os.environ:
            continue
        value = found[2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        os.environ[found[1]] = value
        added.append(found[1])
    return tuple(added)
