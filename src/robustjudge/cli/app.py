"""The commands: parse, hand over, print; exit codes come from the error tree."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click
import typer

from robustjudge.errors import RobustJudgeError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("robustjudge.cli.demo", "offline, no key: embedded model and planted judges, a report at the end"),
    "init": ("robustjudge.cli.project", "scaffold a project: judge prompt, cases, configuration, workflow"),
    "doctor": ("robustjudge.cli.doctor", "check configuration, data, endpoints and versions; --live sends one call"),
    "run": ("robustjudge.cli.execute", "plan and execute; --dry-run tells calls, cost and precision first"),
    "report": ("robustjudge.cli.outputs", "rebuild the reports of a run, no call"),
    "export": ("robustjudge.cli.outputs", "write the table as CSV, JSONL or Parquet"),
    "compare": ("robustjudge.cli.outputs", "two runs: flipped trials by case, with both replies"),
    "gate": ("robustjudge.cli.gate", "decide by a policy whether the judge may ship"),
    "lint": ("robustjudge.cli.prompts", "check a judge prompt and its reader without any call"),
    "read": ("robustjudge.cli.prompts", "audit a verdict reader on recorded replies"),
    "calibrate": ("robustjudge.cli.people", "judge package from human labels"),
    "bias": ("robustjudge.cli.people", "bias probes on a judge"),
    "label": ("robustjudge.cli.people", "blind labelling page for several raters"),
    "profile": ("robustjudge.cli.people", "verify and compare judge packages"),
    "optimize": ("robustjudge.cli.prompts", "search for a more robust judge prompt"),
    "redteam": ("robustjudge.cli.redteam", "generate reviewed adversarial variants"),
    "review": ("robustjudge.cli.web", "local page: review queue"),
    "view": ("robustjudge.cli.web", "local page: browse runs"),
    "list": ("robustjudge.cli.lists", "attacks, defenses, judges, datasets, evaluators, templates"),
    "models": ("robustjudge.cli.stores", "pull and show local models"),
    "cache": ("robustjudge.cli.stores", "the ledger: ls, prune, clear"),
    "quality": ("robustjudge.cli.stores", "check and install content-quality evaluators"),
    "trace": ("robustjudge.cli.debug", "the dialogue of asks and answers of one cell"),
    "replay": ("robustjudge.cli.debug", "run one cell again from the ledger, no network"),
    "selftest": ("robustjudge.cli.selftest", "planted judges with known flaws: does the instrument recover them?"),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called, so that ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (module, _) in COMMANDS.items() if _there(module)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        found = COMMANDS.get(name)
        if found is None or not _there(found[0]):
            return None
        if ctx.resilient_parsing:
            return click.Command(name)
        command: click.Command = typer.main.get_command(import_module(found[0]).app)
        if isinstance(command, click.Group) and name in command.commands:
            return command.commands[name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            from robustjudge.errors import UnknownName

            raise UnknownName("command", args[0], tuple(self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def _there(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="robustjudge")
def robustjudge() -> None:
    """Attack an LLM judge, defend it, calibrate it against people, and decide whether its prompt may ship.

    Exit codes: 0 pass; 1 gate failed; 2 usage or configuration; 3 inconclusive; 4 incomplete; 130 interrupted.
    """


def run(argv: list[str]) -> int:
    """Run one command and return its exit code; errors are told on stderr without a traceback.

    ``ROBUSTJUDGE_DEBUG=1`` shows the traceback.
    """
    try:
        result = robustjudge.main(args=argv, prog_name="robustjudge", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as fault:
        fault.show()
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        return 130
    except RobustJudgeError as fault:
        if os.environ.get("ROBUSTJUDGE_DEBUG"):
            raise
        from robustjudge.cli.terminal import visible

        sys.stderr.write(f"{fault.__class__.__name__}: {visible(str(fault))}\n")
        return fault.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return 0
