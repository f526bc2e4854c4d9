"""Quirks: what a model refused so far, so that every later request leaves it out or renames it at once."""

from __future__ import annotations

import re
from typing import Any

from robustjudge.models.faults import Said

_DROPPABLE = (
    "temperature",
    "top_p",
    "seed",
    "stop",
    "top_logprobs",
    "logprobs",
    "response_format",
    "reasoning_effort",
    "stop_sequences",
    "output_config",
)
"""Parameters a request can do without, in the order in which a message is searched for them."""

_REFUSAL = re.compile(
    r"unsupported|not support|n't support|deprecated|unrecogni[sz]ed|unknown|not permitted|not allowed"
    r"|extra inputs|unexpected|only the default|cannot both be",
    re.IGNORECASE,
)
_SYSTEM = re.compile(r"system role|role\b.{0,20}\bsystem|'system'|roles must alternate", re.IGNORECASE)


class Quirks:
    """What one model takes.

    ``limit_field`` is the name under which the token limit is sent (``""``: always ``max_tokens``);
    ``merge_system`` says that there is no system role; ``version`` grows with each lesson.
    """

    def __init__(self, limit_field: str = "") -> None:
        self.limit_field = limit_field
        self.merge_system = False
        self.version = 0
        self._dropped: set[str] = set()
        self._swapped = not limit_field

    def apply(self, fields: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The fields as this model takes them, and ``<name>_not_applied`` for each that had to be left out."""
        if self.limit_field and "max_tokens" in fields:
            fields[self.limit_field] = fields.pop("max_tokens")
        if not self._dropped:
            return fields, ()
        kept = {name: value for name, value in fields.items() if name not in self._dropped}
        return kept, tuple(f"{name}_not_applied" for name in fields if name in self._dropped)

    def learn(self, error: Said, sent: dict[str, Any]) -> bool:
        """Take the lesson of a refused request; ``False`` if it teaches nothing (then the refusal stands).

        Each lesson is learned once, so that adapting always comes to an end.
        """
        text = error.message
        if not _REFUSAL.search(text) and not error.code.startswith("unsupported"):
            return False
        if self._swap(error) or self._merge(text, sent) or self._drop(error, sent):
            self.version += 1
            return True
        return False

    def _swap(self, error: Said) -> bool:
        """Rename the token limit where the model refuses the present name."""
        if self._swapped or not (error.param == self.limit_field or _named(self.limit_field, error.message)):
            return False
        self.limit_field = "max_tokens" if self.limit_field == "max_completion_tokens" else "max_completion_tokens"
        self._swapped = True
        return True

    def _merge(self, text: str, sent: dict[str, Any]) -> bool:
        if self.merge_system or not _SYSTEM.search(text) or not any(m["role"] == "system" for m in sent["messages"]):
            return False
        self.merge_system = True
        return True

    def _drop(self, error: Said, sent: dict[str, Any]) -> bool:
        param = error.param.partition(".")[0]
        if "cannot both" in error.message and "top_p" in sent:
            param = "top_p"  # the temperature is the one that was asked for in every run
        if param not in _DROPPABLE:
            param = next((p for p in _DROPPABLE if _named(p, error.message)), "")
        if param not in sent or param in self._dropped:
            return False
        # log-probabilities and their number make sense together only
        self._dropped |= {"logprobs", "top_logprobs"} if "logprobs" in param else {param}
        return True


def _named(param: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){param}(?![A-Za-z0-9_])", text) is not None
