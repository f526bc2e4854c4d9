"""Finds the final answer of a worked response: a boxed expression, a letter five times, a bold item, three digits.

Only what loaders and degraders need (is the worse answer really different?); grading belongs to the quality evaluators.
"""

from __future__ import annotations

import re

_FIVE = re.compile(r"(?<![A-Za-z])([A-Z])\1{4}(?![A-Za-z])")
_FIVE_LOOSE = re.compile(r"([A-Z])\1{4}")
_BOLD = re.compile(r"\*\*\*?([^*\n]+?)\*?\*\*")
_DIGITS = re.compile(r"(\d{3})\W*\Z")
_OPTION = re.compile(r"\(([A-Z])\)")


def form(question: str) -> str:
    """How ``question`` wants its answer: ``letters``, ``boxed``, ``bold``, ``digits`` or empty when it does not say."""
    tail = question[-600:].lower()
    if "five times" in tail:
        return "letters"
    if "boxed" in tail:
        return "boxed"
    if "three digits as the last part" in tail:
        return "digits"
    if "**bold**" in tail or "following format: ***" in tail:
        return "bold"
    return ""


def last(response: str, form: str) -> str:
    """The last final answer that ``response`` states in ``form``; empty when it states none."""
    if form == "letters":
        found = _FIVE.findall(response) or _FIVE_LOOSE.findall(response)
        return found[-1] if found else ""
    if form == "boxed":
        return boxed(response)
    if form == "digits":
        match = _DIGITS.search(response.rstrip())
        return match[1] if match else boxed(response)
    if form == "bold":
        bold = _BOLD.findall(response)
        return bold[-1].strip() if bold else ""
    return ""


def boxed(response: str) -> str:
    """The content of the last ``\\boxed{...}`` with balanced braces, else empty."""
    at = response.rfind("\\boxed{")
    if at < 0:
        return ""
    depth, start = 0, at + len("\\boxed{")
    for i in range(start - 1, len(response)):
        depth += {"{": 1, "}": -1}.get(response[i], 0)
        if depth == 0:
            return response[start:i].strip()
    return ""


def normal(answer: str) -> str:
    """``answer`` to compare: no case, spaces, LaTeX spacing, end mark or leading zeros; ``\\dfrac`` is ``\\frac``."""
    text = re.sub(r"\\[,;:! ]|\\left|\\right|\\quad|\$|\s", "", answer).replace("\\dfrac", "\\frac")
    text = text.strip(" .,;:!").casefold()
    return (text.lstrip("0") or "0") if text.isdecimal() else text


def same(first: str, second: str) -> bool:
    """Are two *found* answers equal as written?  (Equality up to algebra is not decided here.)"""
    return bool(first and second) and normal(first) == normal(second)


def options(question: str) -> tuple[str, ...]:
    """The option letters that a multiple-choice question offers, each once, in order."""
    return tuple(dict.fromkeys(_OPTION.findall(question)))


def stated(answer: str, form: str) -> str:
    """``answer`` written as ``form`` demands."""
    if form == "letters":
        return answer * 5
    if form == "boxed":
        return f"\\boxed{{{answer}}}"
    return f"**{answer}**" if form == "bold" else answer
