"""Audit a verdict reader on recorded replies: each case with its expected outcome, each miss shown."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError, DataError
from robustjudge.scales.reader import read
from robustjudge.scales.scale import scale_from

Reader = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Takes one case (without its expected outcome), returns ``{"status": ..., "value": ...}``."""

_HIDDEN = frozenset({"expected", "also_ok", "never", "why", "source", "kind"})
_TIMEOUT = 60.0  # seconds that an external reader may take for one reply


@dataclass(frozen=True)
class Miss:
    """One case that was not read as expected; ``forbidden`` when it returned a value that must never come back."""

    line: int
    id: str
    expected: str
    got: str
    forbidden: bool = False

    def __str__(self) -> str:
        mark = " (a forbidden value)" if self.forbidden else ""
        return f"line {self.line}: {self.id}: expected {self.expected}, got {self.got}{mark}"


@dataclass(frozen=True)
class BadCase:
    """A row that is no case; it is counted and reported and never stops the others."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class Audit:
    """The outcome: ``right`` of ``asked`` cases as expected, the misses and the rows that are no case."""

    asked: int
    right: int
    misses: tuple[Miss, ...]
    bad: tuple[BadCase, ...]

    @property
    def passed(self) -> bool:
        """Whether there was a case, every row was one and every case was read as expected."""
        return self.asked > 0 and self.right == self.asked and not self.bad

    @property
    def forbidden(self) -> int:
        """How many cases returned a value that must not come back under any status."""
        return sum(m.forbidden for m in self.misses)

    def lines(self) -> Iterator[str]:
        """What to print: every bad row and miss, the count last."""
        yield from (str(b) for b in self.bad)
        yield from (str(m) for m in self.misses)
        extra = f", {self.forbidden} forbidden values" if self.forbidden else ""
        extra += f", {len(self.bad)} rows that are no case" if self.bad else ""
        yield f"{self.right} of {self.asked} cases as expected{extra}"


def ours(case: dict[str, Any]) -> Mapping[str, Any]:
    """Our own reader on one case."""
    reading = read(
        case["raw_reply"],
        scale_from(case["scale"]),
        str(case.get("finish_reason") or "stop"),
        case.get("refusal") or "",
    )
    return {"status": reading.status, "value": reading.value}


def callable_reader(target: str) -> Reader:
    """The reader ``module:function``.  Raises :class:`ConfigError` when it cannot be found or called."""
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as fault:
        raise ConfigError(f"the reader {target!r} cannot be loaded ({fault}); write it as module:function") from None
    if not callable(found):
        raise ConfigError(f"the reader {target!r} is not callable")
    loaded: Reader = found
    return loaded


def command_reader(command: str) -> Reader:
    """A reader run as a program, once per case: the case as JSON on standard input, ``{"status", "value"}`` on
    standard output."""
    argv = shlex.split(command)
    if not argv:
        raise ConfigError("the reader command is empty")

    def ask(case: dict[str, Any]) -> Mapping[str, Any]:
        try:
            done = subprocess.run(
                argv, input=json.dumps(case), capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except OSError as fault:
            raise ConfigError(f"the reader command {argv[0]!r} cannot be run: {fault}") from None
        except subprocess.TimeoutExpired:
            return {"status": "error", "value": None, "reason": f"no answer in {_TIMEOUT:.0f} s"}
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return {"status": "error", "value": None, "reason": f"exit {done.returncode}, no JSON on standard output"}
        return answer if isinstance(answer, dict) else {"status": "error", "value": None, "reason": "no JSON object"}

    return ask


def reader_from(target: str) -> Reader:
    """``module:function`` as a callable, anything else as a command."""
    head, colon, tail = target.partition(":")
    plain = colon and all(p.isidentifier() for p in (*head.split("."), *tail.split(".")))
    return callable_reader(target) if plain else command_reader(target)


def read_cases(path: str | Path, reader: Reader | str | None = None) -> Audit:
    """Run ``reader`` (default: ours) over the JSON lines of ``path``.

    A case is ``{id, scale, raw_reply, expected: {status, value}}`` with optional ``finish_reason``, ``refusal``,
    ``also_ok`` (outcomes that are right too) and ``never`` (values that must not come back under any status).
    Raises :class:`DataError` when the file cannot be read.
    """
    ask = reader_from(reader) if isinstance(reader, str) else reader or ours
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as fault:
        raise DataError(f"{path}: {fault.strerror or fault}") from None
    except UnicodeDecodeError as fault:
        raise DataError(f"{path}: byte {fault.start} is not UTF-8") from None
    misses: list[Miss] = []
    bad: list[BadCase] = []
    seen: dict[str, int] = {}
    asked = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        case = _case(line, number, seen)
        if isinstance(case, BadCase):
            bad.append(case)
            continue
        asked += 1
        miss = _check(case, number, ask)
        if miss is not None:
            misses.append(miss)
    return Audit(asked, asked - len(misses), tuple(misses), tuple(bad))


def _case(line: str, number: int, seen: dict[str, int]) -> dict[str, Any] | BadCase:
    try:
        case = json.loads(line)
    except ValueError as fault:
        return BadCase(number, f"not JSON ({fault})")
    if not isinstance(case, dict):
        return BadCase(number, "a case is a JSON object")
    for key in ("id", "scale", "raw_reply", "expected"):
        if key not in case:
            return BadCase(number, f"the case has no {key!r}")
    if case["raw_reply"] is not None and not isinstance(case["raw_reply"], str):
        return BadCase(number, "raw_reply is a text or null")
    outcomes = [case["expected"], *(case.get("also_ok") or [])]
    if not all(isinstance(o, dict) and "status" in o for o in outcomes):
        return BadCase(number, "expected (and each of also_ok) is {status, value}")
    if not isinstance(case["scale"], dict):
        return BadCase(number, "scale is an object: {min, max} or {labels}")
    try:
        scale_from(case["scale"])
    except (ConfigError, TypeError, ValueError) as fault:
        return BadCase(number, f"scale: {fault}")
    name = str(case["id"])
    if name in seen:
        return BadCase(number, f"the id {name!r} stands on line {seen[name]} already")
    seen[name] = number
    return case


def _check(case: dict[str, Any], number: int, ask: Reader) -> Miss | None:
    shown = {k: v for k, v in case.items() if k not in _HIDDEN}
    outcomes = [case["expected"], *(case.get("also_ok") or [])]
    wanted = " or ".join(_say(o) for o in outcomes)
    try:
        got = ask(shown)
    except ConfigError:
        raise
    except Exception as fault:  # somebody else's reader: what it raises is its answer to this case
        return Miss(number, str(case["id"]), wanted, f"an exception: {type(fault).__name__}: {fault}")
    if not isinstance(got, Mapping):
        return Miss(number, str(case["id"]), wanted, f"no outcome but {type(got).__name__}")
    value = got.get("value")
    forbidden = value is not None and any(_same(value, v) for v in case.get("never") or [])
    right = any(got.get("status") == o["status"] and _same(value, o.get("value")) for o in outcomes)
    return None if right and not forbidden else Miss(number, str(case["id"]), wanted, _say(got), forbidden)


def _same(a: Any, b: Any) -> bool:
    """Equal and of one kind: the label "4" is not the number 4, true is not 1, 7 and 7.0 are one number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return float(a) == float(b)
    return type(a) is type(b) and bool(a == b)


def _say(outcome: Mapping[str, Any]) -> str:
    value = outcome.get("value")
    said = str(outcome.get("status"))
    said += f" {json.dumps(value, ensure_ascii=False, default=str)}" if value is not None else ""
    return said + (f" ({outcome['reason']})" if outcome.get("reason") else "")
