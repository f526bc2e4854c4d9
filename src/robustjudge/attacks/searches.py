"""The optimisation attacks by name: O1-O7 of the paper, and the searches among the extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robustjudge.attacks.base import Attack

SEARCHES: Mapping[str, Callable[..., Attack]] = {}
ALIASES: Mapping[str, str] = {}
OPTIMISATION: tuple[str, ...] = ()
EXTENSIONS: tuple[str, ...] = ()
