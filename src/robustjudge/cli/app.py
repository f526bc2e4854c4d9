"""The table of commands and how one is run: its module is imported when it is called; exit codes come from the error
tree.  ``--help`` prints the table without importing any command, so it stays fast."""

from __future__ import annotations

import os
import sys
from typing import Any

from robustjudge.errors import RobustJudgeError, StorageError, UnknownName

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("robustjudge.cli.demo", "offline, no key: embedded model and planted judges, a report at the end"),
    "init": ("robustjudge.cli.project", "scaffold a project: judge prompt, cases, configuration"),
    "doctor": ("robustjudge.cli.doctor", "check configuration, data, endpoints and versions; --live sends one call"),
    "run": ("robustjudge.cli.execute", "plan and execute; --dry-run tells calls, cost and precision first"),
    "report": ("robustjudge.cli.outputs", "rebuild the reports of a run, no call"),
    "export": ("robustjudge.cli.outputs", "write the table as CSV, JSONL or Parquet"),
    "compare": ("robustjudge.cli.outputs", "two runs: flipped trials by case, with both replies"),
    "leaderboard": ("robustjudge.cli.board", "several runs of one suite on one page"),
    "gate": ("robustjudge.cli.gate", "decide by a policy whether the judge may ship"),
    "lint": ("robustjudge.cli.prompts", "check a judge prompt and its reader without any call"),
    "read": ("robustjudge.cli.prompts", "audit a verdict reader on recorded replies"),
    "detector": ("robustjudge.cli.detector", "calibrate and evaluate a detector of attacked texts"),
    "import": ("robustjudge.cli.importing", "cases from results of promptfoo, DeepEval or Inspect"),
    "calibrate": ("robustjudge.cli.people", "judge package from human labels"),
    "bias": ("robustjudge.cli.people", "bias probes on a judge"),
    "label": ("robustjudge.cli.people", "blind labelling page for several raters"),
    "profile": ("robustjudge.cli.people", "verify and compare judge packages"),
    "optimize": ("robustjudge.cli.optimize", "search for a more robust judge prompt"),
    "redteam": ("robustjudge.cli.redteam", "generate reviewed adversarial variants"),
    "review": ("robustjudge.cli.web", "local page: review queue"),
    "view": ("robustjudge.cli.web", "local page: browse runs"),
    "list": ("robustjudge.cli.lists", "attacks, defenses, judges, datasets, evaluators, templates, suites, models"),
    "models": ("robustjudge.cli.stores", "pull and show local models"),
    "cache": ("robustjudge.cli.stores", "the ledger: ls, prune, clear"),
    "quality": ("robustjudge.cli.stores", "check and install content-quality evaluators"),
    "shrink": ("robustjudge.cli.shrink", "reduce successful attacks to the shortest text that still succeeds"),
    "trace": ("robustjudge.cli.debug", "the dialogue of asks and answers of one cell"),
    "replay": ("robustjudge.cli.debug", "run one cell again from the ledger, no network"),
    "selftest": ("robustjudge.cli.selftest", "planted judges with known flaws: does the instrument recover them?"),
}

ABOUT = """\
Usage: robustjudge [--version] [--help] COMMAND [OPTIONS]

  Attack an LLM judge, defend it, calibrate it against people, and decide whether its prompt may ship.

Commands:
{commands}

  robustjudge COMMAND --help tells a command's options; each can also be set by ROBUSTJUDGE_<OPTION>.

Exit codes: 0 pass; 1 gate failed; 2 usage or configuration; 3 inconclusive; 4 incomplete; 130 interrupted.
"""


PIPE_GONE = 141
"""What a shell reports of a program whose reader left (128 + SIGPIPE)."""


def run(argv: list[str]) -> int:
    """Run one command and return its exit code; errors are told on stderr without a traceback.

    ``ROBUSTJUDGE_DEBUG=1`` shows the traceback.
    """
    try:
        if not argv or argv[0] in ("-h", "--help"):
            print(about(), end="")
            return 0
        if argv[0] == "--version":
            from robustjudge import __version__

            print(f"robustjudge {__version__}")
            return 0
        return call(argv[0], argv[1:])
    except KeyboardInterrupt:
        leave_in_peace()
        sys.stderr.write("interrupted; a run keeps what was answered, `robustjudge run --resume runs` goes on\n")
        return 130
    except RobustJudgeError as fault:
        if os.environ.get("ROBUSTJUDGE_DEBUG"):
            raise
        leave_in_peace()
        from robustjudge.cli.terminal import visible

        sys.stderr.write(f"{fault.__class__.__name__}: {visible(str(fault))}\n")
        return fault.exit_code
    except (
        BrokenPipeError
    ):  # the reader of our output has left; `main` keeps the interpreter from complaining at its end
        return PIPE_GONE
    except OSError as fault:
        if os.environ.get("ROBUSTJUDGE_DEBUG"):
            raise
        leave_in_peace()
        sys.stderr.write(f"StorageError: {_place(fault)}\n")
        return StorageError.exit_code


def _place(fault: OSError) -> str:
    """What the system refused, where, and what to do."""
    from robustjudge.cli.terminal import visible

    where = f"{fault.filename}: " if fault.filename is not None else ""
    told = fault.strerror or str(fault)
    return visible(f"{where}{told}; check the path, its permissions and the free disk space")


def leave_in_peace() -> None:
    """From here on only words and an exit code are left: one more Ctrl-C must not turn them into a traceback."""
    import signal
    import threading

    if threading.current_thread() is threading.main_thread() and not sys.flags.interactive and STANDALONE:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


STANDALONE: list[bool] = []
"""Filled by :func:`robustjudge.cli.main`: the process is ours, and its signals too."""


def about() -> str:
    """The text of ``--help``."""
    names = there()
    width = max(map(len, names))
    return ABOUT.format(commands="\n".join(f"  {n:<{width}}  {COMMANDS[n][1]}" for n in names))


def there() -> list[str]:
    """The commands whose module is installed."""
    from importlib.util import find_spec

    return [name for name, (module, _) in COMMANDS.items() if find_spec(module) is not None]


def command(name: str) -> Any:
    """The click command behind a name; :class:`UnknownName` with the nearest names."""
    from importlib import import_module

    if name not in there():
        raise UnknownName("command", name, tuple(there()))
    import typer

    app = import_module(COMMANDS[name][0]).app
    app.rich_markup_mode = None  # plain help: boxes cut the names of options and variables to a narrow column
    found = typer.main.get_command(app)
    return getattr(found, "commands", {}).get(name, found)


def call(name: str, args: list[str]) -> int:
    """Run one command; usage errors are shown with the command's usage and give 2."""
    found = command(name)
    import typer

    from robustjudge.cli.environment import read_env

    read_env()
    usage: Any = typer.BadParameter.__mro__[2]  # click's ClickException, from whichever click typer brings
    try:
        result = found.main(
            args=args, prog_name=f"robustjudge {name}", standalone_mode=False, auto_envvar_prefix="ROBUSTJUDGE"
        )
        if result == 130:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        sys.stderr.write("aborted\n")
        return 130
    except usage as fault:
        fault.show()
        return 2
