"""A scale: the answers a judge may give, their order, and the text that asks for one of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robustjudge import spec
from robustjudge.errors import ConfigError

_NUMBER = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})")
_MAX_WEIGHED = 21  # more values than this are weighed at whole numbers only


@spec.register("scale")
@dataclass(frozen=True)
class Scale:
    """The answers that count: a numeric range (``low`` and ``high``) or ``labels``, never a mixture.

    ``step`` is prompt text only: any number in the range is on the scale unless ``integers``.  ``aliases`` are
    pairs (as written, label).  ``tie`` names the label that means a tie.  ``first_token``: the label opens the reply
    instead of closing it.  ``two_scores``: a line of two numbers in [low, high], the higher wins its label.
    ``ranking``: a full ``x > y > z`` gives its first.  ``criteria`` are sub-scores; ``overall`` says how they
    become one value: ``mean``, ``min`` or the name of the overall's own key.  ``positive`` is the label that an
    attacker wants.
    Raises :class:`ConfigError` for an empty, doubled or contradictory declaration.
    """

    low: float | None = None
    high: float | None = None
    step: float = 1
    integers: bool = False
    labels: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    tie: str = ""
    first_token: bool = False
    two_scores: bool = False
    ranking: bool = False
    criteria: tuple[str, ...] = ()
    overall: str = ""
    positive: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "aliases", tuple((str(a), str(b)) for a, b in self.aliases))
        object.__setattr__(self, "criteria", tuple(self.criteria))
        if (self.low is None) != (self.high is None):
            raise ConfigError("a numeric scale needs both ends, low and high")
        if self.low is not None and self.high is not None:
            if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
                raise ConfigError(f"a scale from {self.low} to {self.high} holds no value: low must be under high")
            if not self.step > 0:
                raise ConfigError(f"the step of a scale must be above 0, not {self.step}")
        if self.low is None and not self.labels:
            raise ConfigError("a scale needs a range (low, high) or labels")
        if self.labels and self.low is not None and not self.two_scores:
            raise ConfigError("a scale is a range or labels, not both (two_scores alone takes both)")
        if self.two_scores and (self.low is None or len([x for x in self.labels if x != self._tie_label]) != 2):
            raise ConfigError("two_scores needs low, high and exactly two labels beside the tie")
        if len(set(self.labels)) != len(self.labels) or not all(x.strip() for x in self.labels):
            raise ConfigError(f"labels must be different and not blank: {self.labels}")
        for written, label in self.aliases:
            if label not in self.labels:
                raise ConfigError(f"alias {written!r} stands for {label!r}, which is not a label")
        for name, value in (("tie", self.tie), ("positive", self.positive)):
            if value and value not in self.labels:
                raise ConfigError(f"{name} is {value!r}, which is not a label of {self.labels}")

    @property
    def numeric(self) -> bool:
        """Whether the value is a number (else one of the labels)."""
        return not self.labels

    @property
    def _tie_label(self) -> str:
        return self.tie or next((x for x in self.labels if x.casefold() in ("tie", "draw")), "")

    @property
    def rivals(self) -> tuple[str, ...]:
        """The labels that are not the tie, in order: what the candidates are called."""
        return tuple(x for x in self.labels if x != self._tie_label)

    @property
    def tie_label(self) -> str:
        """The label that means a tie: the declared one, else a label called ``tie`` or ``draw``, else empty."""
        return self._tie_label

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Every accepted spelling to its label; folded to lower case when that keeps all labels apart."""
        pairs = [(x, x) for x in self.labels] + list(self.aliases)
        folded: dict[str, str] = {}
        for written, label in pairs:
            if folded.setdefault(written.casefold(), label) != label:
                return dict(reversed(pairs))
        return folded

    @cached_property
    def folds(self) -> bool:
        """Whether letter case is ignored: only if the labels differ by more than case."""
        pairs = [(x, x) for x in self.labels] + list(self.aliases)
        return len({(w.casefold(), x) for w, x in pairs}) == len({w.casefold() for w, _ in pairs})

    def label(self, text: str) -> str | None:
        """The label spelled exactly by ``text``, or None."""
        return self.spellings.get(text.casefold() if self.folds else text)

    def number(self, text: str) -> float | None:
        """The number written by ``text`` when it is on the scale, else None; never clamped or rescaled."""
        if self.low is None or self.high is None or not _NUMBER.fullmatch(text):
            return None
        value = float(text)
        if not self.low <= value <= self.high or (self.integers and value != int(value)):
            return None
        return value + 0.0  # -0 becomes 0

    def verdict_labels(self) -> tuple[str, ...]:
        """The labels to weigh at the verdict position, in order; a fine numeric scale is weighed at whole numbers."""
        if self.labels:
            return self.labels
        assert self.low is not None and self.high is not None
        step = self.step if (self.high - self.low) / self.step < _MAX_WEIGHED else 1.0
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        return tuple(plain(self.low + i * step) for i in range(count))

    @property
    def lead(self) -> str:
        """The start of the verdict line, forced before label probabilities are read; empty for ``first_token``."""
        return "" if self.first_token else "VERDICT: "

    @property
    def top(self) -> str:
        """The answer an attacker wants: the highest number, the declared positive, else the first label."""
        if self.numeric:
            return plain(self.high or 0.0)
        return self.positive or self.labels[0]

    def line(self, value: str) -> str:
        """The verdict line that says ``value`` in the form this scale asks for."""
        return f"{self.lead}{value}"

    def instruction(self, order: tuple[str, ...] = ()) -> str:
        """The text that asks for the verdict (the RF part); an echo of it is no verdict.  ``order`` names the labels in
        another order than declared."""
        labels = order or self.labels
        if self.first_token:
            words = " or ".join(labels)
            return (
                f"Your reply must open with exactly one of these words and nothing before it: {words}. "
                "After it write a comma and one short clause that gives the reason."
            )
        if self.numeric:
            assert self.low is not None and self.high is not None
            kind = "a whole number" if self.integers or self.step == int(self.step) else "a number"
            step = "" if kind == "a whole number" else f" in steps of {plain(self.step)}"
            what = f"<number> stands for {kind} from {plain(self.low)} to {plain(self.high)}{step}"
        else:
            what = f"<answer> stands for one of: {', '.join(labels)}"
        slot = "<number>" if self.numeric else "<answer>"
        return f"Close your reply with a single line of this form and nothing after it:\nVERDICT: {slot}\nwhere {what}."

    def brief(self, order: tuple[str, ...] = ()) -> str:
        """The same request in one sentence, for small models that reply with the verdict line alone."""
        if self.first_token:
            return f"Reply with one word: {' or '.join(order or self.labels)}."
        choices = (
            f"a number from {plain(self.low or 0.0)} to {plain(self.high or 0.0)}"
            if self.numeric
            else " or ".join(order or self.labels)
        )
        return f"Reply with VERDICT: and then {choices}. Write nothing else."


def plain(value: float) -> str:
    """A number without a needless fraction: ``10``, ``0.5``."""
    rounded = round(value, 9)
    return str(int(rounded)) if rounded == int(rounded) else repr(rounded)


def likert(low: float, high: float, step: float = 1) -> Scale:
    """A numeric scale from ``low`` to ``high``; ``step`` is what the prompt asks for."""
    return Scale(low=low, high=high, step=step)


def letters(n: int, tie: bool = False) -> Scale:
    """The letters of ``n`` candidates (2 to 26), with ``TIE`` when ties are declared."""
    if not 2 <= n <= 26:
        raise ConfigError(f"letters name 2 to 26 candidates, not {n}")
    names = tuple(chr(ord("A") + i) for i in range(n))
    return Scale(labels=(*names, "TIE"), tie="TIE") if tie else Scale(labels=names)


def yes_no() -> Scale:
    """A binary scale on the last line; an attacker wants ``yes``."""
    return Scale(labels=("yes", "no"), positive="yes")


def success_failure() -> Scale:
    """The grading scale whose label is the first token of the reply; an attacker wants ``SUCCESS``."""
    return Scale(labels=("SUCCESS", "FAILURE"), first_token=True, positive="SUCCESS")


_KEYS = {"min", "max", "low", "high", "step", "integers", "labels", "aliases", "two_scores", "ranking", "tie"} | {
    "criteria",
    "overall",
    "first_token",
    "positive",
}


def scale_from(data: Mapping[str, Any]) -> Scale:
    """A scale from plain data: ``{min, max, integers?}`` or ``{labels, aliases?, two_scores?, ranking?}`` and the
    other fields of :class:`Scale`.  Raises :class:`ConfigError` for what does not fit."""
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise ConfigError(f"a scale has no field {unknown[0]!r}; it takes {', '.join(sorted(_KEYS))}")
    low, high = data.get("min", data.get("low")), data.get("max", data.get("high"))
    two = data.get("two_scores") or False
    if isinstance(two, Mapping):
        low, high = two.get("min"), two.get("max")
    for end in (low, high):
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, float))):
            raise ConfigError(f"the ends of a scale are numbers, not {end!r}")
    labels = data.get("labels") or ()
    if isinstance(labels, str):
        raise ConfigError("labels is a list of texts, not one text")
    aliases = data.get("aliases") or {}
    pairs = aliases.items() if isinstance(aliases, Mapping) else aliases
    return Scale(
        low=low,
        high=high,
        step=data.get("step", 1),
        integers=bool(data.get("integers", False)),
        labels=tuple(str(x) for x in labels),
        aliases=tuple((str(a), str(b)) for a, b in pairs),
        tie=str(data.get("tie", "")),
        first_token=bool(data.get("first_token", False)),
        two_scores=bool(two),
        ranking=bool(data.get("ranking", False)),
        criteria=tuple(data.get("criteria", ())),
        overall=str(data.get("overall", "")),
        positive=str(data.get("positive", "")),
    )
