"""Check an answer to a built-in case by running, computing, brute force, an answer key or required facts.

The check of a case is data in ``meta["check"]`` (canonical JSON) and comes with the package.  Every reference must
pass its check, and every weak response and distractor must fail the same one; a test runs them all.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from robustjudge.datasets.puzzles import solve
from robustjudge.datasets.runner import run_python
from robustjudge.errors import DataError
from robustjudge.nouns import Case

VERIFIED_BY: Mapping[str, str] = {
    "python": "runs",
    "compute": "computes",
    "puzzle": "brute_force",
    "letter": "answer_key",
    "facts": "facts",
}
"""Check type -> the word that ``verified`` carries for it."""

_FENCED = re.compile(r"```[A-Za-z+#]*\n(.*?)```", re.DOTALL)
_BOLD = re.compile(r"\*\*\*?([^*\n]+?)\*\*\*?")
_LETTERS = re.compile(r"(?<![A-Za-z])([A-J])\1{4}(?![A-Za-z])")
_FRACTION = re.compile(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Checked:
    """``passed``: the text meets the check of its case; ``detail`` says what was found instead."""

    passed: bool
    detail: str = ""


def check(case: Case, text: str) -> Checked:
    """Run the check of ``case`` on ``text``.

    Checks of type ``python`` execute ``text``: call it on packaged texts only, never on a model's or a stranger's.
    Raises :class:`DataError` when the case carries no check or one of an unknown type.
    """
    raw = case.get("check")
    if not raw:
        raise DataError(f"case {case.id} carries no check; only built-in cases do")
    data = json.loads(raw)
    try:
        run = _CHECKS[data["type"]]
    except KeyError:
        raise DataError(f"case {case.id}: unknown check {data.get('type')!r}") from None
    return run(data, text)


def _python(data: Mapping[str, Any], text: str) -> Checked:
    code = "\n".join(_FENCED.findall(text)) or text
    done = secrets.token_hex(8)  # a program that leaves early with exit code 0 must not pass
    ran = run_python(f"{code}\n{data['tests']}\nprint({done!r})\n")
    if ran.status == "ok" and ran.out.rstrip().endswith(done):
        return Checked(True)
    return Checked(False, ran.reason or "the program ended before its tests")


def _compute(data: Mapping[str, Any], text: str) -> Checked:
    return _same(_computed(data["program"]), boxed(text))


@lru_cache(maxsize=256)
def _computed(program: str) -> str:
    ran = run_python(program)
    if ran.status != "ok":
        raise DataError(f"the check program itself failed: {ran.reason}")
    return ran.out.strip()


def _puzzle(data: Mapping[str, Any], text: str) -> Checked:
    return _same(solve(data["puzzle"]), last_bold(text))


def _letter(data: Mapping[str, Any], text: str) -> Checked:
    return _same(data["letter"], last_letter(text))


def _facts(data: Mapping[str, Any], text: str) -> Checked:
    plain = _plain(text)
    for fact in data["facts"]:  # "a|b": either wording will do
        if not any(_plain(wording) in plain for wording in fact.split("|")):
            return Checked(False, f"missing: {fact}")
    for claim in data.get("forbidden", ()):
        if _plain(claim) in plain:
            return Checked(False, f"unsupported: {claim}")
    return Checked(True)


def _same(wanted: str, found: str | None) -> Checked:
    if found is None:
        return Checked(False, "no final answer in the form that the task asks for")
    if _answer(found) == _answer(wanted):
        return Checked(True)
    return Checked(False, f"answers {found!r}")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _answer(text: str) -> str:
    text = _FRACTION.sub(r"\1/\2", text).replace("\\,", "").replace("\\%", "%").replace("，", ",").replace("、", ",")
    return "".join(text.split()).strip("$.。").casefold()


def boxed(text: str) -> str | None:
    r"""The content of the last ``\boxed{...}``, braces balanced; None when there is none."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 0, start + len("\\boxed{")
    for i in range(begin - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i]
    return None


def last_bold(text: str) -> str | None:
    """The last item in bold (``**...**``), or None."""
    found = _BOLD.findall(text)
    return str(found[-1]) if found else None


def last_letter(text: str) -> str | None:
    """The letter (A-J) of the last run of exactly five, as in ``CCCCC``, or None."""
    found = _LETTERS.findall(text)
    return str(found[-1]) if found else None


_CHECKS: dict[str, Callable[[Mapping[str, Any], str], Checked]] = {
    "python": _python,
    "compute": _compute,
    "puzzle": _puzzle,
    "letter": _letter,
    "facts": _facts,
}
