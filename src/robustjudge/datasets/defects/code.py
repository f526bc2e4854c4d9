"""Defects of programs; texts only, nothing is ever run."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from robustjudge.datasets.defects.base import NUMBER, Defect, Material, other_number, share

_COMPARE = re.compile(r"(?<= )(<=|>=|==|!=|<|>)(?= )")
_FLIP = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_ARITHMETIC = re.compile(r"(?<= )([-+*/])(?= )")
_SWAP = {"+": "-", "-": "+", "*": "/", "/": "*"}
_RETURN = re.compile(r"(?m)^([ \t]*)return\b[^\n;]*(;?)")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_RESERVED = re.compile(
    "if|else|for|while|return|def|class|import|from|in|not|and|or|is|None|True|False|int|char|void|float|double|string|"
    "bool|public|private|static|final|new|include|using|namespace|package|func|var|const|struct|print|self|this|len"
)

_NOTHING = {
    "C": "int main(void) {\n    return 0;\n}\n",
    "C++": "int main() {\n    return 0;\n}\n",
    "C#": "class Program {\n    static void Main() {\n    }\n}\n",
    "Go": "package main\n\nfunc main() {\n}\n",
    "Java": "class Main {\n    public static void main(String[] args) {\n    }\n}\n",
    "Python": "def main():\n    pass\n",
}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def comparison_flip(m: Material, rng: Random) -> str | None:
    return _COMPARE.sub(lambda match: _FLIP[match[1]], m.good) if _COMPARE.search(m.good) else None


def arithmetic_swap(m: Material, rng: Random) -> str | None:
    return _ARITHMETIC.sub(lambda match: _SWAP[match[1]], m.good) if _ARITHMETIC.search(m.good) else None


def return_removed(m: Material, rng: Random) -> str | None:
    gone = r"\1pass" if m.code_language == "Python" else r"\1\2"
    return _RETURN.sub(gone, m.good) if _RETURN.search(m.good) else None


def number_change(m: Material, rng: Random) -> str | None:
    return NUMBER.sub(lambda match: other_number(match[0], rng), m.good) if NUMBER.search(m.good) else None


def broken_code(m: Material, rng: Random) -> str | None:
    """Loses every closing bracket and every colon or semicolon at a line's end."""
    spoilt = re.sub(r"(?m)[)\]}]|[:;]$", "", m.good)
    return spoilt if spoilt != m.good else None


def wrong_variable(m: Material, rng: Random) -> str | None:
    """Exchanges frequent identifiers in a circle within each line but the first, so that uses no longer fit."""
    head, *rest = _lines(m.good) or [""]
    body = "".join(rest) or head
    common = [n for n, _ in Counter(_IDENTIFIER.findall(body)).most_common(40) if not _RESERVED.fullmatch(n)][:8]
    if len(common) < 2:
        return None
    turn = dict(zip(common, common[1:] + common[:1], strict=True))
    spoilt = _IDENTIFIER.sub(lambda match: turn.get(match[0], match[0]), body)
    return head + spoilt if rest else spoilt


def truncation(m: Material, rng: Random) -> str | None:
    lines = _lines(m.good)
    if len(lines) > 2:
        return "".join(share(lines, 0, 0.4)).rstrip()
    return m.good[: int(len(m.good) * 0.4)].rstrip() or None


def beginning_lost(m: Material, rng: Random) -> str | None:
    lines = _lines(m.good)
    return "".join(share(lines, 0.6, 1)) if len(lines) > 2 else m.good[int(len(m.good) * 0.6) :].lstrip()


def shuffled(m: Material, rng: Random) -> str | None:
    lines = [line.rstrip("\r\n") for line in _lines(m.good)]
    if len(lines) < 3:
        return None
    rng.shuffle(lines)
    return "\n".join(lines)


def omission(m: Material, rng: Random) -> str | None:
    lines = _lines(m.good)
    return "".join(line for i, line in enumerate(lines) if i % 2 == 0) if len(lines) > 2 else None


def stub(m: Material, rng: Random) -> str | None:
    return _NOTHING.get(m.code_language)


def other_reference(m: Material, rng: Random) -> str | None:
    return m.others[0] if m.others else None


def mixed(m: Material, rng: Random) -> str | None:
    if not m.others:
        return None
    first, second = _lines(m.good), _lines(m.others[-1])
    return "".join(share(first, 0, 0.5)).rstrip() + "\n" + "".join(share(second, 0.5, 1))


def wrong_language(m: Material, rng: Random) -> str | None:
    """The program in the source language (not translated), else a program of another language."""
    if m.foreign:
        return m.foreign
    return "function main() {\n  return undefined;\n}\n" if m.code_language else None


def _differs(m: Material, text: str) -> bool:
    return text.split() != m.good.split()


def _shorter(m: Material, text: str) -> bool:
    return len(text) < len(m.good)


def _count(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[0] for match in pattern.finditer(text)]


def _brackets(text: str) -> tuple[int, int]:
    return sum(text.count(c) for c in "([{"), sum(text.count(c) for c in ")]}")


DEFECTS: tuple[Defect, ...] = (
    Defect("comparison_flip", comparison_flip, lambda m, t: _count(_COMPARE, m.good) != _count(_COMPARE, t)),
    Defect("arithmetic_swap", arithmetic_swap, lambda m, t: _count(_ARITHMETIC, m.good) != _count(_ARITHMETIC, t)),
    Defect("return_removed", return_removed, lambda m, t: len(_count(_RETURN, t)) < len(_count(_RETURN, m.good))),
    Defect("number_change", number_change, lambda m, t: _count(NUMBER, m.good) != _count(NUMBER, t)),
    Defect("broken_code", broken_code, lambda m, t: _brackets(t) != _brackets(m.good) or _shorter(m, t)),
    Defect("wrong_variable", wrong_variable, lambda m, t: _count(_IDENTIFIER, m.good) != _count(_IDENTIFIER, t)),
    Defect("truncation", truncation, lambda m, t: m.good.startswith(t) and _shorter(m, t)),
    Defect("beginning_lost", beginning_lost, lambda m, t: m.good.endswith(t) and _shorter(m, t)),
    Defect("shuffled", shuffled, _differs),
    Defect("omission", omission, _shorter),
    Defect("stub", stub, lambda m, t: t in _NOTHING.values()),
    Defect("other_reference", other_reference, lambda m, t: t in m.others),
    Defect("mixed", mixed, _differs),
    Defect("wrong_language", wrong_language, _differs, foreign=True),
)
