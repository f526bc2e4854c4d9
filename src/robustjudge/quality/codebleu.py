"""CodeBLEU for code translation and generation, with its two traps closed and the package's own figure kept as raw.

Ren et al. 2020, "CodeBLEU: a Method for Automatic Evaluation of Code Synthesis" (weights 0.25 each: n-gram, weighted
n-gram, syntax, data flow), by the ``codebleu`` package.  Where we differ from that package, and why:

* It counts the data-flow term as 1 whenever it is 0, so an empty or unrelated text gets 0.25.  Here a reference with
  data flow that the text does not share has the term 0; a reference *without* data flow has no such term and the
  other three are renormalised.  ``raw`` is the package's formula.
* It orders variable names by set iteration, so its figure changes with the hash seed of the process.  Here names are
  ordered by first appearance.
* Blank lines and blanks at line ends are removed first: the C and C++ grammars would count them as content.
* A reference that does not parse has no quality (``None``); ``token_bleu`` rates such code under its own name.

Appending one plain sentence to a perfect program lowers CodeBLEU to about 0.7 without any effect on a judge: attack
text on code must be put into comments, and dQ reported apart.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, MetricUnavailable, Rating, rated, unknown
from robustjudge.spec import register

LANGUAGES = {
    "python": "python", "c": "c", "cpp": "cpp", "c++": "cpp", "c_sharp": "c_sharp", "c#": "c_sharp",
    "csharp": "c_sharp", "java": "java", "go": "go", "golang": "go",
}  # fmt: skip
"""Spelling (lower case) -> the package's name of the languages whose grammars the ``text`` extra installs."""

META_KEYS = ("code_language", "target_language", "language")
"""Where a case names the language of its code, first found wins; without any it is Python."""

_PROBES = {
    "python": "def f(a):\n    b = a + 1\n    return b\n",
    "c": "int f(int a) { int b = a + 1; return b; }\n",
    "cpp": "int f(int a) { int b = a + 1; return b; }\n",
    "c_sharp": "class A { int F(int a) { int b = a + 1; return b; } }\n",
    "java": "class A { int f(int a) { int b = a + 1; return b; } }\n",
    "go": "package p\n\nfunc f(a int) int {\n\tb := a + 1\n\treturn b\n}\n",
}


def language_of(case: Case) -> str | None:
    """The package's name of the language of the case's code, or ``None`` if it is not one of ours."""
    said = next((v for k in META_KEYS if (v := case.get(k).strip().lower())), "python")
    return LANGUAGES.get(said)


@lru_cache(maxsize=16)
def _parser(language: str) -> Any:
    """A parser of the language; raises :class:`MetricUnavailable` when packages are missing or do not fit together."""
    try:
        from codebleu.utils import get_tree_sitter_language
        from tree_sitter import Parser

        parser = Parser()
        parser.language = get_tree_sitter_language(language)
    except (ImportError, TypeError, ValueError, AttributeError) as fault:
        # "an integer is required" and its like: core and grammar of different tree-sitter generations
        raise MetricUnavailable(
            "codebleu",
            f"the {language} parser cannot be loaded ({fault}); install 'robustjudge[text]' with its exact pins",
        ) from fault
    return parser


LONGEST, DEEPEST = 50_000, 300
"""Characters and nesting of a text that is still scored.  The package recurses in C over the syntax tree: ten thousand
open brackets, which any attacked text may hold, would end the whole process."""


def unfit(code: str, language: str) -> str:
    """Why ``code`` cannot be scored (empty when it can): too long or nested too deeply."""
    if len(code) > LONGEST:
        return f"longer than {LONGEST} characters"
    cursor = _parser(language).parse(code.encode()).walk()
    depth = 0
    while True:  # a walk without recursion
        if cursor.goto_first_child():
            depth += 1
            if depth > DEEPEST:
                return f"nested more than {DEEPEST} levels deep"
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return ""
            depth -= 1


def parses(code: str, language: str) -> bool:
    """Whether ``code`` is without syntax error in ``language`` (a name of :data:`LANGUAGES`' values)."""
    return not _parser(language).parse(code.encode()).root_node.has_error


def tidy(code: str) -> str:
    """``code`` without blank lines and blanks at line ends, which the C grammars count as part of a directive."""
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())


Flow = tuple[str, str, tuple[str, ...]]


def _flows(code: str, language: str) -> list[Flow]:
    """Data-flow edges with variables named by first appearance: (variable, relation, sources in order)."""
    from codebleu.dataflow_match import dfg_function, get_data_flow
    from codebleu.parser import remove_comments_and_docstrings

    try:
        code = remove_comments_and_docstrings(code, language)
    except Exception:  # tokenizer errors of any type on broken code: the comments stay, as in the package
        logging.getLogger(__name__).debug("comments not removed from unparsable %s code", language)
    edges = get_data_flow(code, [_parser(language), dfg_function[language]])
    first: dict[str, int] = {}
    for name, place, *_ in edges:
        first[name] = min(place, first.get(name, place))

    def rank(name: str) -> tuple[int, str]:
        return first.get(name, 1 << 30), name

    names: dict[str, str] = {}
    out: list[Flow] = []
    for name, _, relation, sources, _ in sorted(edges, key=lambda e: e[1]):
        ordered = sorted(sources, key=rank)
        for n in (*ordered, name):
            names.setdefault(n, f"v{len(names)}")
        out.append((names[name], relation, tuple(names[s] for s in ordered)))
    return out


def dataflow(reference: str, text: str, language: str) -> float | None:
    """Share of the reference's data-flow edges found in ``text``; ``None`` when the reference has none."""
    wanted = _flows(reference, language)
    if not wanted:
        return None
    have = _flows(text, language)
    matched = 0
    for edge in wanted:
        if edge in have:
            have.remove(edge)
            matched += 1
    return matched / len(wanted)


def combine(terms: Sequence[float], flow: float | None) -> tuple[float, float]:
    """(ours, the package's figure) from the three other terms and the data-flow term."""
    three = sum(terms)
    ours = three / 3 if flow is None else (three + flow) / 4
    return ours, (three + (flow or 1.0)) / 4


@register("codebleu")
@dataclass(frozen=True)
class CodeBleu(Evaluator):
    """CodeBLEU against the first reference, in the language the case names."""

    name: ClassVar[str] = "codebleu"

    def ready(self) -> None:
        """Probe every grammar with a line of its language."""
        for language, code in _PROBES.items():
            if not parses(code, language):
                raise MetricUnavailable(
                    self.name, f"the {language} grammar rejects a valid program; reinstall the pins"
                )

    def score(self, case: Case, text: str) -> Rating:
        language = language_of(case)
        if language is None:
            return unknown(self.name, "the language of the code is not one of python, c, c++, c#, java, go")
        reference, text = tidy(case.reference), tidy(text)
        for what, code in (("reference", reference), ("text", text)):
            if why := unfit(code, language):
                return unknown(self.name, f"the {what} is {why}")
        if not parses(reference, language):
            return unknown(self.name, f"the reference does not parse as {language}")
        scores = _package(reference, text, language)
        flow = dataflow(reference, text, language)
        ours, raw = combine(scores, flow)
        parts = tuple(zip(("ngram", "weighted_ngram", "syntax"), scores))
        flags = ("no_dataflow",) if flow is None else ()
        return rated(
            self.name, ours, raw=raw, flags=flags, parts=parts if flow is None else (*parts, ("dataflow", flow))
        )


def _package(reference: str, text: str, language: str) -> tuple[float, float, float]:
    """The package's three terms apart from data flow."""
    import codebleu

    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.ERROR)  # the package warns on the root logger for every reference without data flow
    try:
        found = codebleu.calc_codebleu([reference], [text], language)
    finally:
        root.setLevel(before)
    return (
        float(found["ngram_match_score"]),
        float(found["weighted_ngram_match_score"]),
        float(found["syntax_match_score"]),
    )
