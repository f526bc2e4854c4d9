"""Finding the final answer of a solution: the demanded form first, then any other clear statement of it.

The question says which form it wants: one letter repeated five times, a boxed expression, or an integer of three
digits at the end.  An answer in another form that leaves no doubt counts, with ``format_fault``; where nothing is
clear the answer is ``None``, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from robustjudge.quality.forms import normal, number

Demand = Literal["letters", "digits", "boxed", "free"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer in normal form; ``start`` and ``end`` locate its source text, ``form`` says how it was found."""

    text: str
    start: int
    end: int
    form: str
    format_fault: bool = False


_FIVE = re.compile(r"five times|5 times|fünf ?mal|五[次遍个]|([A-J])\1{4}", re.IGNORECASE)
# four or more may run into other text: replies of the released data end raggedly
_RUN = re.compile(r"(?<![A-Za-z])([A-J])(?:\1{3,}|\1{2}(?![A-Za-z]))|(?<![A-Za-z])([A-J])(?:[ ,]\2){4}(?![A-Za-z])")
_BARE = r"(?:\\text(?:bf)?\s*\{|\\mathbf\s*\{|\\mathrm\s*\{)?\s*[\"“'(*]*\s*(?:\\text(?:bf)?\s*\{)?\(?([A-J])"
_BOXED_LETTER = re.compile(rf"^{_BARE}(?=\)|\}}|\s|\*|$|:|\.)")
_CUE_LETTER = re.compile(
    r"(?i:answer|choice|option|guess|solution|antwort|lösung|答案|选项|选择|选)"
    r"(?i:[^\w\n]{0,6}(?:is|be|would be|must be|should be|ist|lautet|是|为))?[^\w\n]{0,12}?"
    + _BARE
    + r"(?=\s*[).,:;*}\]\\\"”'\n]|\s*$)"
)
_BOLD_LETTER = re.compile(r"\*\*\s*\(?([A-J])\)?(?:[).:\s][^*\n]*)?\*\*|\\textbf\{\s*\(?([A-J])\)?\s*\}")
_NUMBER = r"[-+\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?:/\d+)?"
_CUE_NUMBER = re.compile(
    rf"(?i:answer|result|antwort|ergebnis|lösung|答案|结果)(?i:[^\w\n]{{0,6}}(?:is|ist|lautet|equals|是|为|等于))?[^\w\n]{{0,8}}?({_NUMBER})(?![\w])"
)
_LAST_LINE_NUMBER = re.compile(rf"(?:^|\n)[^\w\n-]*({_NUMBER})[^\w\n]*\s*$")
_ANY_NUMBER = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w])")
_MARK = re.compile(
    r"\\(?:textbf|text|mathrm|mathbf)\s*\{\s*\(?([A-J])\)\s*~?\s*\}"
    r"|(?:(?<=[\s$])|^)\(([A-J])\)|(?:^|\n)[ \t]*([A-J])[.):][ \t]"
)
_LONGEST = 2000
"""Characters of a boxed answer; nested boxes around a whole text are not answers (and would cost quadratic time)."""
_BRACE = re.compile(r"\\f?boxed\s{0,4}\{|\\[\\{}]|[{}]")  # an escaped brace is matched so as not to count
_OPTION_END = re.compile(r"\\qquad|\n|\$ If|If you cannot")


def demand(question: str) -> Demand:
    """The form of answer that a question asks for."""
    if _FIVE.search(question):
        return "letters"
    if "boxed" in question:
        return "boxed"
    if re.search(r"\bdigits\b", question):
        return "digits"
    return "free"


def options(question: str) -> dict[str, str]:
    """Option letter -> its text in normal form, for questions that list (A), (B), ... in order."""
    found: dict[str, str] = {}
    marks = list(_MARK.finditer(question))
    for mark, following in zip(marks, [*marks[1:], None]):
        letter = next(g for g in mark.groups() if g)
        body = question[mark.end() : following.start() if following else len(question)]
        cut = _OPTION_END.search(body)
        found[letter] = normal(body[: cut.start()] if cut else body)
    return found if list(found) == [chr(65 + i) for i in range(len(found))] and len(found) > 1 else {}


def boxed(text: str) -> list[tuple[str, int, int]]:
    """Content and span of every ``\\boxed{...}`` whose braces balance, in order of their start; one pass."""
    opened: list[tuple[int, bool]] = []
    out = []
    for brace in _BRACE.finditer(text):
        token = brace[0]
        if token == "}" and opened:
            start, is_box = opened.pop()
            if is_box and brace.start() - start <= _LONGEST and (content := text[start : brace.start()]).strip():
                out.append((content, start, brace.start()))
        elif token.endswith("{") and token != "\\{":
            opened.append((brace.end(), len(token) > 1))
    return sorted(out, key=lambda found: found[1])


def _last(pattern: re.Pattern[str], text: str) -> tuple[str, int, int] | None:
    hits = list(pattern.finditer(text))
    if not hits:
        return None
    hit = hits[-1]
    group = next((i for i, g in enumerate(hit.groups(), 1) if g), 0)
    return hit[group], hit.start(group), hit.end(group)


def _letters(question: str, text: str) -> Answer | None:
    runs = list(_RUN.finditer(text))
    if runs:
        run = runs[-1]
        return Answer(run[0][0], run.start(), run.end(), "letters", len(run[0]) != 5)
    boxes = boxed(text)
    for content, start, end in reversed(boxes):
        if letter := _BOXED_LETTER.match(content.strip()):
            return Answer(letter[1], start, end, "boxed_letter", True)
    if cue := _last(_CUE_LETTER, text):
        return Answer(cue[0], cue[1], cue[2], "cue", True)
    if bold := _last(_BOLD_LETTER, text):
        return Answer(bold[0], bold[1], bold[2], "bold", True)
    choices = options(question)
    if boxes:
        content, start, end = boxes[-1]
        value = re.sub(r"^(\d)\1{4}$", r"\1", normal(content))  # the option's digit, not its letter, five times
        same = [k for k, v in choices.items() if v == value or (number(v) is not None and number(v) == number(value))]
        if len(same) == 1:
            return Answer(same[0], start, end, "option_value", True)
    return None


def _digits(text: str) -> Answer | None:
    boxes, tail = boxed(text), _LAST_LINE_NUMBER.search(text)
    if tail and (not boxes or tail.start(1) > boxes[-1][2]):
        return Answer(normal(tail[1]), tail.start(1), tail.end(1), "digits", not re.fullmatch(r"\d{3}", tail[1]))
    if boxes:
        content, start, end = boxes[-1]
        return Answer(normal(content), start, end, "boxed", not re.fullmatch(r"\d{3}", content.strip()))
    if cue := _last(_CUE_NUMBER, text):
        return Answer(normal(cue[0]), cue[1], cue[2], "cue", True)
    return None


def _expression(text: str, wanted: Demand) -> Answer | None:
    if boxes := boxed(text):
        content, start, end = boxes[-1]
        return Answer(normal(content), start, end, "boxed")
    if cue := _last(_CUE_NUMBER, text):
        return Answer(normal(cue[0]), cue[1], cue[2], "cue", wanted == "boxed")
    if line := _LAST_LINE_NUMBER.search(text):
        return Answer(normal(line[1]), line.start(1), line.end(1), "last_line", wanted == "boxed")
    if wanted == "free" and (any_number := _last(_ANY_NUMBER, text)):
        return Answer(normal(any_number[0]), any_number[1], any_number[2], "last_number", True)
    return None


def extract(question: str, text: str, kind: str = "mathematics") -> Answer | None:
    """The final answer of ``text`` to ``question``, or ``None`` when it cannot be told.

    ``kind`` ``knowledge`` reads questions that list options as asking for a letter, whether or not they say so.
    """
    wanted = demand(question)
    if wanted == "letters" or (kind == "knowledge" and options(question)):
        return _letters(question, text)
    if wanted == "digits":
        return _digits(text)
    return _expression(text, wanted)
