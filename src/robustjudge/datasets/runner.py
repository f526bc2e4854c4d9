"""Run a short Python program of ours in a process of its own, with limits, and say how it ended.

The limits (time, memory, no files written, empty environment, isolated mode) catch endless loops and accidents in
packaged cases and their broken variants.  They are not a jail: never run a text here that a stranger wrote.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Literal

# The child limits itself before it reads the program, so that no fork hook runs in a threaded parent.
_BOOT = """
import sys
try:
    import resource
    for limit, value in (("RLIMIT_CPU", 10), ("RLIMIT_AS", 1 << 29), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, limit), (value, value))
        except (AttributeError, ValueError, OSError):
            continue
except ImportError:
    resource = None
exec(compile(sys.stdin.buffer.read().decode("utf-8"), "case", "exec"), {"__name__": "case"})
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended: ``status`` is ``ok`` (exit code 0), ``failed`` or ``timeout``.

    ``out`` is what it printed; ``reason`` the last line of its traceback (``AssertionError``), empty when ok.
    """

    status: Literal["ok", "failed", "timeout"]
    out: str = ""
    reason: str = ""


def run_python(source: str, seconds: float = 5.0) -> Ran:
    """Run ``source`` in a fresh interpreter without site packages; at most ``seconds`` (> 0) of wall time."""
    with tempfile.TemporaryDirectory(prefix="robustjudge-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT],
                input=source.encode("utf-8", "surrogatepass"),
                capture_output=True,
                timeout=seconds,
                cwd=folder,
                env={},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Ran("timeout", reason=f"no end within {seconds:g} s")
    out = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        return Ran("ok", out)
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return Ran("failed", out, lines[-1] if lines else f"exit code {done.returncode}")
