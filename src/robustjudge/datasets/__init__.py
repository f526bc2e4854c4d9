"""Data sets: built-in cases, the published tasks T1-T8, the user's files, weak candidates, and seeded splits."""

from __future__ import annotations

from robustjudge.datasets.base import (
    KINDS,
    TASKS,
    BadRow,
    BadRowWarning,
    Cases,
    LoadResult,
    Quality,
    SetAside,
    Source,
)
from robustjudge.datasets.columns import Columns
from robustjudge.datasets.registry import Builtin, CaseFile, load, names, register, source
from robustjudge.datasets.split import Parts, Split
from robustjudge.datasets.weaken import Pool, weaken
from robustjudge.datasets.written import WriteWeak, WrittenWeak

__all__ = [
    "KINDS",
    "TASKS",
    "BadRow",
    "BadRowWarning",
    "Builtin",
    "CaseFile",
    "Cases",
    "Columns",
    "LoadResult",
    "Parts",
    "Pool",
    "Quality",
    "SetAside",
    "Source",
    "Split",
    "WriteWeak",
    "WrittenWeak",
    "load",
    "names",
    "register",
    "source",
    "weaken",
]
