"""Rule-based consistency for logic puzzles (T6): the right final answer, and no contradiction on the way to it.

Three puzzle kinds of the LiveBench reasoning set are told apart by their question: truth-teller chains (a list of
yes / no), attribute grids (``***word or digit***``) and spatial items (one integer); any other question compares the
last short bold item.  A text is worth 1.0 when its final answer is the reference's and equals the last conclusion
stated before it, else 0.0; unparsable is ``None``.  A reference that contradicts itself gives ``None`` too, since
nothing can be measured against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from robustjudge.nouns import Case
from robustjudge.quality.answers import Answer
from robustjudge.quality.base import Evaluator, Rating, rated, unknown
from robustjudge.spec import register

Puzzle = Literal["chain", "grid", "integer", "other"]

_YES_NO = {
    "yes": "yes", "ja": "yes", "是": "yes", "是的": "yes", "对": "yes",
    "no": "no", "nein": "no", "否": "no", "不是": "no", "不": "no", "错": "no",
}  # fmt: skip
_YN_WORD = r"(?:yes|no|ja|nein|是的|不是|是|否|对|错|不)"
_YN_LIST = re.compile(
    rf"(?<![^\W_])({_YN_WORD}(?:[\s*_`]*[,，、;/]\s*(?:and |und )?[\s*_`]*{_YN_WORD})+)(?![a-zA-Z])", re.IGNORECASE
)
_TRIPLE = re.compile(r"\*\*\*\s*([^*\n]+?)\s*\*\*\*")
_DOUBLE = re.compile(r"(?<!\*)\*\*(?!\*)\s*([^*\n]+?)\s*\*\*(?!\*)")
_INTEGER = re.compile(r"(?<![\d.])(\d{1,6})(?![\d]|\.\d)")
_ASKED = re.compile(r"Does the person at the ([\w' -]{1,40}?) tell the truth\?")
_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?。！？]?")
_PLACED = re.compile(r"\b(?:position|Platz)\b\W{0,4}(?:is |must be |ist )?\W{0,4}(\d)\b|位置\W{0,4}(\d)", re.IGNORECASE)
_NEAR = 400
"""Characters before the final answer in which a conclusion counts: what was stated earlier may have been revised."""
_CONCLUDES = re.compile(
    r"\b(?:thus|therefore|hence|so|conclu\w+|final\w*|answer|result\w*|total\w*)\b"
    r"|\b(?:also|daher|folglich|insgesamt|antwort)\b"
    r"|因此|所以|答案|总共|总之",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:if|says?|said|claims?|suppose|assum\w+|would|whether|unless|either|or|wenn|sagt)\b", re.IGNORECASE
)


def puzzle(question: str) -> Puzzle:
    """Which of the puzzle kinds a question is."""
    if re.search(r"yes or no|ja oder nein|是或否", question, re.IGNORECASE):
        return "chain"
    if "***" in question:
        return "grid"
    if re.search(r"single integer|as an integer|ganze Zahl|整数", question, re.IGNORECASE):
        return "integer"
    return "other"


def _words(listing: str) -> str:
    return ", ".join(_YES_NO[w.lower()] for w in re.findall(_YN_WORD, listing, re.IGNORECASE))


def _plain(item: str) -> str:
    return re.sub(r"\s+", " ", item.strip(" \t*_`\"'“”()[].,:;!。，：")).casefold()


def _bold(text: str) -> Iterator[tuple[str, int, int]]:
    """Bold items with their spans, last first; both ``***x***`` and ``**x**``."""
    items = {m.span(1): m[1] for p in (_TRIPLE, _DOUBLE) for m in p.finditer(text)}
    for (start, end), item in sorted(items.items(), reverse=True):
        if _plain(item):
            yield item, start, end


def _chain(question: str, text: str) -> Answer | None:
    wanted = len(_ASKED.findall(question)) or 3
    spans = [(start, end) for _, start, end in _bold(text)]
    bold = loose = None
    for hit in _YN_LIST.finditer(text):
        found = _words(hit[1])
        if found.count(",") + 1 != wanted:
            continue
        inside = any(start <= hit.start() and hit.end() <= end for start, end in spans)
        made = Answer(found, hit.start(1), hit.end(1), "bold" if inside else "list", not inside)
        bold, loose = (made, loose) if inside else (bold, made)
    # one bold word each (**yes**, **no**, **yes**) is a list too; a plain list counts where no bold one is
    return bold or loose


def _grid(question: str, text: str) -> Answer | None:
    digit = bool(re.search(r"digit|number|Ziffer|数字", question.rsplit("***", 2)[0][-200:]))
    fallback = None
    for item, start, end in _bold(text):
        plain = _plain(item)
        numbers = _INTEGER.findall(plain)
        if digit and plain.isdigit():
            return Answer(str(int(plain)), start, end, "bold")
        if digit and len(numbers) == 1 and fallback is None and len(plain) <= 60:
            fallback = Answer(str(int(numbers[0])), start, end, "bold_phrase", True)
        if not digit and len(plain.split()) <= 4 and len(plain) <= 40 and not item.rstrip().endswith(":"):
            return Answer(plain, start, end, "bold")
    return fallback


def _integer(text: str) -> Answer | None:
    for item, start, end in _bold(text):
        numbers = _INTEGER.findall(item)
        if len(numbers) == 1 and len(item) <= 60:
            return Answer(str(int(numbers[0])), start, end, "bold", not _plain(item).isdigit())
    return None


def _other(text: str) -> Answer | None:
    for item, start, end in _bold(text):
        if len(_plain(item)) <= 60 and not item.rstrip().endswith((":", "：")):
            return Answer(_plain(item), start, end, "bold")
    return None


def conclusion(question: str, text: str) -> Answer | None:
    """The final answer of a solution in the form its question demands, or ``None``."""
    kind = puzzle(question)
    if kind == "chain":
        return _chain(question, text)
    if kind == "grid":
        return _grid(question, text)
    return _integer(text) if kind == "integer" else _other(text)


def contradiction(question: str, text: str, final: Answer) -> str:
    """The stated conclusion that ``final`` contradicts (for the reason), or empty.

    Only plain statements count: hedged or reported ones ("if", "says", "either") conclude nothing.
    """
    nearby = text[max(0, final.start - _NEAR) : final.start]
    # a question ("Does the person at the zoo tell the truth?") concludes nothing
    before = [s[0] for s in _SENTENCE.finditer(nearby) if not s[0].endswith(("?", "？"))]
    kind = puzzle(question)
    if kind == "chain":
        return _chain_contradiction(_ASKED.findall(question), before, final.text.split(", "))
    if kind == "integer" or (kind == "grid" and final.text.isdigit()):
        for sentence in reversed(before):
            found = _INTEGER.findall(sentence) if kind == "integer" else ["".join(n) for n in _PLACED.findall(sentence)]
            numbers = {str(int(n)) for n in found}
            if _CONCLUDES.search(sentence) and not _HEDGED.search(sentence) and len(numbers) == 1:
                stated = numbers.pop()
                return f"states {stated}, answers {final.text}" if stated != final.text else ""
    return ""


def _chain_contradiction(places: list[str], sentences: list[str], answers: list[str]) -> str:
    for place, answer in zip(places, answers):
        said = re.compile(
            rf"\b(?:at|in) the {re.escape(place)}\b\W*(?:\([^)]*\)\W*)?"
            r"(tells the truth|is truthful|lies\b|is lying|is a liar)",
            re.IGNORECASE,
        )
        for sentence in reversed(sentences):
            hits = said.findall(sentence)
            if hits and not _HEDGED.search(sentence):
                stated = "no" if hits[-1].lower().startswith(("lies", "is lying", "is a liar")) else "yes"
                if stated != answer:
                    return f"states that the person at the {place} {hits[-1]}, answers {answer}"
                break
    return ""


@register("consistency")
@dataclass(frozen=True)
class Consistency(Evaluator):
    """1.0: the reference's answer, reached without contradiction; 0.0: another answer, or a contradiction."""

    name: ClassVar[str] = "consistency"

    def score(self, case: Case, text: str) -> Rating:
        gold = conclusion(case.task, case.reference)
        if gold is None:
            return unknown(self.name, "no final answer can be parsed from the reference")
        if clash := contradiction(case.task, case.reference, gold):
            return unknown(self.name, f"the reference contradicts itself: it {clash}")
        found = conclusion(case.task, text)
        if found is None:
            return unknown(self.name, "no final answer can be parsed from the text")
        flags = ("format_fault",) if found.format_fault else ()
        if contradiction(case.task, text, found):
            return rated(self.name, 0.0, flags=(*flags, "contradiction"))
        return rated(self.name, float(found.text == gold.text), flags=flags)
