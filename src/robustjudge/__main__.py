"""``python -m robustjudge`` is the command line."""

from robustjudge.cli import main

main()
