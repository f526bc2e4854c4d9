"""The tree of errors: each says what happened, why it matters and what to do next."""

from __future__ import annotations


class RobustJudgeError(Exception):
    """Root of every error that this package raises on purpose.

    ``exit_code`` is what the command line returns for it (0 pass, 1 gate failed, 2 usage or configuration,
    3 inconclusive, 4 incomplete, 130 interrupted).
    """

    exit_code = 2


class ConfigError(RobustJudgeError):
    """A file, option or name is wrong; nothing was sent."""


SHOWN = 40
"""Known names that a refused name is answered with."""


class UnknownName(ConfigError):
    """A name that nothing is registered under; carries the nearest known names."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=3, cutoff=0.5)
        shown, more = sorted(known)[:SHOWN], len(known) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        hint = f" Did you mean {' or '.join(near)}?" if near else f" Known: {', '.join(shown)}{rest}."
        super().__init__(f"unknown {kind} {name!r}.{hint}")
        self.kind, self.name, self.near = kind, name, tuple(near)


class DataError(ConfigError):
    """An input row or file cannot be used; the message names file, line and column."""


class NoReference(DataError):
    """A case is to be judged against its reference and has none."""

    reason = "no_reference"
    """What the row of such a trial says."""


class TemplateError(ConfigError):
    """A judge prompt is malformed: a slot missing, doubled or unknown; the message names the line."""


class PlanError(ConfigError):
    """The plan asks for something that cannot be done (access a model lacks, a budget too small)."""


class NotComparable(ConfigError):
    """Two runs, profiles or tables that do not measure the same thing."""


class Inconclusive(RobustJudgeError):
    """The data cannot carry the decision; more are needed."""

    exit_code = 3


class Incomplete(RobustJudgeError):
    """A provider or the infrastructure failed, or a cap was reached; what was paid for is kept."""

    exit_code = 4


class BudgetSpent(Incomplete):
    """``--max-calls`` or ``--max-cost`` was reached."""


class QuotaExhausted(Incomplete):
    """The provider says that the account has no quota left: retrying cannot help."""


class StorageError(Incomplete):
    """The ledger or the table cannot be written (disk full, locked, damaged)."""


class UndefinedEstimate(RobustJudgeError, ValueError):
    """``float()`` was asked of an Estimate that has no value."""
