"""The command line.  ``main`` is imported lazily so that ``--help`` stays fast."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of ``robustjudge``: runs the command and exits with the code of the error tree."""
    from robustjudge.cli.app import PIPE_GONE, STANDALONE, run

    STANDALONE.append(True)
    sys.path.append(
        os.getcwd()
    )  # a reader or judge of the user's own; last, so that it hides nothing that is installed
    code = run(sys.argv[1:])
    if code == PIPE_GONE:  # what is still buffered has no reader: let it go to nowhere instead of into a complaint
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
