"""Are two formulas equal for all values of their letters?  Tested by evaluating both at fixed points.

A closed LaTeX grammar (numbers, letters, + - * / ^, \\frac, \\sqrt, the elementary functions, brackets) is evaluated
directly over the complex numbers; nothing is handed to an interpreter, since the text comes from a model under attack.
Two formulas are called identical when they agree to 1e-9 at every one of eight fixed points where both are defined
(at least five).  For such functions chance agreement has probability about 0 (Schwartz 1980, Zippel 1979 for
polynomials), and unlike symbolic simplification the time is bounded: one pass over the text for each point.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|\.\d+|[a-zA-Z]|[-+*/^(){}\[\]|]")
_LONGEST = 600
_DEEPEST = 40

_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "\\sin": cmath.sin,
    "\\cos": cmath.cos,
    "\\tan": cmath.tan,
    "\\cot": lambda z: 1 / cmath.tan(z),
    "\\sec": lambda z: 1 / cmath.cos(z),
    "\\csc": lambda z: 1 / cmath.sin(z),
    "\\arcsin": cmath.asin,
    "\\arccos": cmath.acos,
    "\\arctan": cmath.atan,
    "\\sinh": cmath.sinh,
    "\\cosh": cmath.cosh,
    "\\tanh": cmath.tanh,
    "\\ln": cmath.log,
    "\\log": cmath.log,
    "\\exp": cmath.exp,
}
_CONSTANTS: dict[str, complex] = {"e": math.e, "i": 1j, "\\pi": math.pi, "\\infty": complex("nan")}
_GREEK = frozenset(
    "\\" + n
    for n in ("alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "phi", "omega", "sigma", "tau", "rho")
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}


class _NotAFormula(ValueError):
    """The text is outside the grammar."""


class _Reader:
    """One pass over the tokens of a formula, computing its value at one point."""

    def __init__(self, tokens: list[str], point: Mapping[str, complex]) -> None:
        self.tokens, self.point, self.at, self.depth = tokens, point, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise _NotAFormula(token)
        self.at += 1
        return token

    def sum(self) -> complex:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NotAFormula("too deep")
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        self.depth -= 1
        return total

    def product(self) -> complex:
        value = self.signed()
        while (token := self.peek()) and token not in ("+", "-", ")", "}", "]", "|"):
            if token in ("*", "\\cdot", "\\times"):
                self.take()
                value = value * self.signed()
            elif token in ("/", "\\div"):
                self.take()
                value = value / self.signed()
            else:  # juxtaposition: 2x, 3(x+1), x\sin x
                value = value * self.power()
        return value

    def signed(self) -> complex:
        sign = 1
        while self.peek() in ("+", "-"):
            if self.take() == "-":
                sign = -sign
        return sign * self.power()

    def power(self) -> complex:
        base = self.atom()
        if self.peek() == "^":
            self.take()
            base = base ** self.group()
        return base

    def group(self) -> complex:
        """A braced argument, or the single token that LaTeX would take (``\\frac12`` is split by the caller)."""
        if self.peek() == "{":
            return self.bracketed()
        if self.peek() == "-":
            self.take()
            return -self.atom()
        return self.atom()

    def bracketed(self) -> complex:
        closing = _CLOSING[self.take()]
        value = self.sum()
        self.take(closing)
        return value

    def atom(self) -> complex:
        token = self.peek()
        if token in _CLOSING:
            return self.bracketed()
        self.take()
        if token[0].isdigit() or token[0] == ".":
            return complex(float(token))
        if token == "\\frac":
            top = self.group()
            return top / self.group()
        if token == "\\sqrt":
            degree: complex = 2
            if self.peek() == "[":
                degree = self.bracketed()
            return self.group() ** (1 / degree)
        if token in _FUNCTIONS:
            return self.function(_FUNCTIONS[token])
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in self.point:
            return self.point[token]
        raise _NotAFormula(token)

    def function(self, of: Callable[[complex], complex]) -> complex:
        exponent: complex = 1
        if self.peek() == "^":  # \sin^2 x
            self.take()
            exponent = self.group()
        if self.peek() in _CLOSING:
            return of(self.bracketed()) ** exponent
        value = self.power()
        while (token := self.peek()) and (token[0].isalnum() or token in _CONSTANTS or token in self.point):
            value = value * self.power()
        return of(value) ** exponent


def _tokens(formula: str) -> list[str] | None:
    if len(formula) > _LONGEST:
        return None
    found = _TOKEN.findall(formula)
    if "".join(found) != re.sub(r"\s+", "", formula):
        return None
    return found


def _value(tokens: list[str], point: Mapping[str, complex]) -> complex | None:
    reader = _Reader(tokens, point)
    try:
        value = reader.sum()
        if reader.peek():
            return None
    except (_NotAFormula, ArithmeticError, ValueError, RecursionError):
        return None
    return value if cmath.isfinite(value) else None


def identical(a: str, b: str) -> bool:
    """Whether two LaTeX formulas are the same function; ``False`` also when either is outside the grammar."""
    left, right = _tokens(a), _tokens(b)
    if not left or not right:
        return False
    letters = sorted({t for t in left + right if (t.isalpha() and t not in _CONSTANTS) or t in _GREEK})
    agreed = 0
    for k in range(8):
        # irrational steps keep the points clear of the roots and poles of ordinary answers
        point = {name: complex(0.31 + math.sqrt(2) * (k + 1) * (j + 1) % 1.7, 0.0) for j, name in enumerate(letters)}
        x, y = _value(left, point), _value(right, point)
        if x is None or y is None:
            continue
        if abs(x - y) > 1e-9 * max(1.0, abs(x), abs(y)):
            return False
        agreed += 1
    return agreed >= 5
