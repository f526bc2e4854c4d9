"""The command line.  ``main`` is imported lazily so that ``--help`` stays fast."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of ``robustjudge``: runs the command and exits with the code of the error tree."""
    from robustjudge.cli.app import run

    sys.exit(run(sys.argv[1:]))
