"""T5 code generation: CodeXGLUE NL-code-search WebQuery, a query with a Python function (Huang et al., 2021).

A retrieval set, not a specification set: each query occurs twice with unrelated code, which may not answer it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.datasets.base import BadRow, Row, case_id
from robustjudge.datasets.paper.common import draft, rows

FILE = "code_task/text2code/test_webquery.json"
_STRING = re.compile(r"""(?s)[rbuRBUfF]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""")
_COMMENT = re.compile(r"#[^\n]*?(?=   |\n|\Z)")  # the newline that ended the comment is now part of a run of spaces
_RUN = re.compile(r" {3,}")


@spec.register("webquery")
@dataclass(frozen=True)
class WebQuery:
    """One case per record, grouped by query.  Newlines of the code were collapsed into spaces: ``meta`` says whether
    the code ``parses`` as published and ``parses_formatted`` whether it does once lines are restored; where it does,
    the restored code is the reference."""

    root: str

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        return (FILE,)

    def rows(self) -> Iterator[Row]:
        for record in rows(self.root, FILE, "idx", ("doc", "code")):
            if isinstance(record, BadRow):
                yield record
                continue
            fields = record[1]
            raw = fields["code"]
            restored = reformatted(raw)
            whole = parses(restored)
            yield draft(
                id=case_id(FILE, str(fields["idx"])),
                task=f"Write a Python function for this request: {fields['doc']}",
                response="",
                references=(restored if whole else raw,),
                kind="code_generation",
                dataset="webquery",
                language="en",
                cluster=fields["doc"],
                meta={
                    "code_language": "Python",
                    "parses": "true" if parses(raw) else "false",
                    "parses_formatted": "true" if whole else "false",
                    "query": fields["doc"],
                    "raw_reference": raw,
                },
                source=f"CodeXGLUE NL-code-search WebQuery, {fields['idx']}",
                licence="not stated; C-UDA (unverified)",
            )


def parses(code: str) -> bool:
    """Is ``code`` a Python 3 program, by the parser of this interpreter?"""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def reformatted(code: str) -> str:
    """``code`` with the line breaks that were collapsed into runs of spaces restored, token by token.

    A newline and the indent after it became one run: ``n`` > 2 spaces are a break and an indent of ``n - 1`` (blank lines
    add one each, so indents are rounded down to a multiple of four).  Strings are kept; a comment ends at a run.
    """
    if "\n" in code:
        return code
    out: list[str] = []
    at, level = 0, 0
    while at < len(code):
        token = _STRING.match(code, at) or _COMMENT.match(code, at)
        run = _RUN.match(code, at)
        if token and token.end() > at:
            out.append(token[0])
            at = token.end()
        elif run:
            indent = run.end() - at - 1
            indent -= indent % 4 if indent >= 4 else 0
            if indent > level and out and not out[-1].endswith((":", ",", "(", "[", "{")):
                indent = level  # a line of spaces only was collapsed into the run: no block opens here
            out.append("\n" + " " * indent)
            at, level = run.end(), indent
        else:
            out.append(code[at])
            at += 1
    return "".join(out)
