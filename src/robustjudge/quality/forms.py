"""Normal forms of short final answers, and when two of them are the same answer.

Nothing here evaluates text: numbers become fractions through a strict pattern, formulas go through the closed grammar
of :mod:`robustjudge.quality.identity`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from robustjudge.quality.identity import identical

Sameness = Literal["", "same", "value", "identity"]
"""Empty: different.  ``same``: equal normal forms; ``value``: equal numbers; ``identity``: equal as formulas."""

_DROP = re.compile(
    r"\\left(?![a-z])|\\right(?![a-z])|\\[,;!: ]|\\(?:quad|qquad|displaystyle|limits)(?![a-zA-Z])|[$~\u00a0]|\*\*"
)
_WRAP = re.compile(r"\\(?:text|textbf|mathbf|mathrm|textrm|mathit|operatorname|boldsymbol)\s*\{([^{}]*)\}")
_SHORT_FRACTION = re.compile(r"\\frac\s*([0-9a-zA-Z])\s*([0-9a-zA-Z])")
_NAMED = re.compile(r"^(?:[a-zA-Z]|[a-zA-Z]{1,2}\([a-zA-Z]\)|\\lambda|p\(\\lambda\))=(?=.)")
_THOUSANDS = re.compile(r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_PLAIN = re.compile(r"^([+-]?\d{1,40})(?:\.(\d{1,40}))?$|^([+-]?)\.(\d{1,40})$")
_RATIO = re.compile(r"^([+-]?)(?:\\frac\{([+-]?\d{1,40})\}\{(\d{1,40})\}|(\d{1,40})/(\d{1,40}))$")


def normal(text: str) -> str:
    """The normal form: spaces and LaTeX spacing gone, ``\\dfrac`` as ``\\frac``, text wrappers opened, a name before
    an equals sign, a trailing full stop, a constant of integration, thousands commas and leading zeros dropped."""
    out = text.strip()
    for _ in range(3):  # wrappers nest at most a few levels deep
        out = _WRAP.sub(r"\1", out)
    out = _DROP.sub("", out)
    out = re.sub(r"\\[dt]frac", r"\\frac", out)
    out = re.sub(r"\s+", "", out).replace("\u2212", "-").replace("\u2013", "-")
    out = re.sub(r"\^\{?\\circ\}?|°", "", out)
    out = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", out)
    out = out.rstrip(".,;:。，；").removeprefix("\\(").removeprefix("\\[").removesuffix("\\)").removesuffix("\\]")
    out = _NAMED.sub("", out)
    out = re.sub(r"\+[Cc]$", "", out)
    if _THOUSANDS.match(out):
        out = out.replace(",", "")
    return re.sub(r"^([+-]?)0+(?=\d)", r"\1", out)


def number(form: str) -> Fraction | None:
    """The exact value of a normal form that is a plain number or a ratio of integers, else ``None``."""
    if plain := _PLAIN.match(form):
        return Fraction(form)
    ratio = _RATIO.match(form)
    if not plain and ratio:
        sign, top, bottom, left, right = ratio.groups()
        low = int(bottom or right)
        if low == 0:
            return None
        value = Fraction(int(top or left), low)
        return -value if sign == "-" else value
    return None


def sameness(a: str, b: str) -> Sameness:
    """How two normal forms are the same answer (empty when they are not, or when it cannot be told)."""
    if a == b:
        return "same"
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return "value" if x == y else ""
    if a.casefold() == b.casefold() and len(a) > 1 and a.isalpha():
        return "same"
    return "identity" if identical(a, b) else ""
