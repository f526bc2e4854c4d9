"""T4 code summarization: CodeXGLUE code-to-text, functions of CodeSearchNet with their docstrings (Lu et al., 2021)."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.datasets.base import BadRow, Row, case_id
from robustjudge.datasets.paper.common import draft, folder, rows

FILE = "code_task/code2text/code_to_text.json"
_MARK = re.compile(r"^\s*(?:///?!?|#+|--|/\*+|\*+/|\*(?=\s|$)|\"\"\"|''')\s?")
_END = re.compile(r"\s*(?:\*+/|\"\"\"|''')\s*$")
_TEXTS = ("language", "code", "docstring", "func_name", "url")


@spec.register("code_to_text")
@dataclass(frozen=True)
class CodeToText:
    """One case per function; the reference is its docstring without comment marks.

    The Python records carry their docstring inside the code: the parser takes it out, and a record whose code still
    holds the reference is a bad row, never a case.
    """

    root: str

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        return (FILE,)

    def rows(self) -> Iterator[Row]:
        where = str(folder(self.root) / FILE)
        for record in rows(self.root, FILE, "id", _TEXTS):
            if isinstance(record, BadRow):
                yield record
                continue
            line, fields = record
            language, reference = fields["language"], plain(fields["docstring"])
            code = without_docstring(fields["code"]) if language == "python" else fields["code"]
            if code is None:
                yield BadRow(
                    where,
                    line,
                    None,
                    "the code does not parse, so its docstring cannot be removed",
                    "Python code",
                    field="code",
                )
                continue
            if not reference or holds(code, reference):
                yield BadRow(
                    where, line, None, "the code holds the reference text", "code without its docstring", field="code"
                )
                continue
            yield draft(
                id=case_id(FILE, str(fields["id"])),
                task=f"Say in a short description what this {language} function does.\n\n{code}",
                response="",
                references=(reference,),
                kind="code_summarization",
                dataset="code_to_text",
                language="en",
                cluster="",
                meta={"code_language": language, "function": fields["func_name"], "original": code},
                source=fields["url"],
                licence="not stated; C-UDA, each function under its own licence (unverified)",
            )


def plain(docstring: str) -> str:
    """``docstring`` without the comment marks at the starts and ends of its lines."""
    lines = (_END.sub("", _MARK.sub("", line)) for line in docstring.strip().splitlines())
    return "\n".join(line.rstrip() for line in lines).strip()


def without_docstring(code: str) -> str | None:
    """Python ``code`` with the docstrings of all its functions and classes removed by position; ``None`` if it does
    not parse."""
    source = textwrap.dedent(code)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    raw = [line.encode() for line in source.split("\n")]  # ast columns count UTF-8 bytes
    for node, alone in sorted(_docstrings(tree), key=lambda found: -found[0].lineno):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = raw[first][: node.col_offset], raw[last][node.end_col_offset :]
        if alone or before.strip() or after.strip():
            raw[first : last + 1] = [before + b"pass" + after]
        else:
            raw[first : last + 1] = []
    return "\n".join(line.decode() for line in raw)


def _docstrings(tree: ast.AST) -> Iterator[tuple[ast.Expr, bool]]:
    """Every docstring, and whether it is the whole body."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)) and node.body:
            head = node.body[0]
            if (
                isinstance(head, ast.Expr)
                and isinstance(head.value, ast.Constant)
                and isinstance(head.value.value, str)
            ):
                yield head, len(node.body) == 1


def holds(code: str, reference: str) -> bool:
    """Does ``code`` contain ``reference``, whatever the spacing?"""
    return " ".join(reference.split()) in " ".join(code.split())
