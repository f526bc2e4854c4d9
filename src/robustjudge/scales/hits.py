"""The text forms that count (rule 3): every place of a reply where a verdict stands, valid or not.

All patterns have bounded repetition and run once over the text, so that the search is linear.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge.scales.jsonform import VERDICT_WORDS
from robustjudge.scales.scale import Scale

_LOOK = 400  # how far back a line is followed: keeps the search linear on one endless line
MASK = "\ufffc"  # stands for each character of a JSON object that was taken out

_NUM = r"[-+]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(?!\d|\.\d)"
_NUMBER = re.compile(_NUM)
_OF = re.compile(rf"[ \t]{{0,3}}(?:/|out[ \t]{{1,3}}of|of)[ \t]{{0,3}}({_NUM})", re.IGNORECASE)
_FRACTION = re.compile(
    rf"(?<![\w.,/+-])({_NUM})[ \t]{{0,3}}(?:/|out[ \t]{{1,3}}of)[ \t]{{0,3}}({_NUM})(?![\w/%])", re.IGNORECASE
)
_BRACKETS = re.compile(r"\[\[([^\[\]\n]{0,80})\]\]")
_TAG = re.compile(r"<(score|verdict)>[ \t\n]{0,8}([^<>\n]{0,80}?)[ \t\n]{0,8}</\1>", re.IGNORECASE)
_RESULT = re.compile(r"\[(?:RESULT|Answer)\][ \t]{0,4}:?[ \t]{0,4}", re.IGNORECASE)
_AFTER_WORD = {
    "best": r"(?:[ \t](?:response|answer|candidate|option))?",
    "overall": rf"(?:[ \t](?:{'|'.join(VERDICT_WORDS)}))?",
}
# the first letter stands alone in front, so that the search skips to it
_LABEL = re.compile(
    rf"[{''.join(sorted({w[0] + w[0].upper() for w in VERDICT_WORDS}))}](?<![\w'’-].)(?i:"
    + "|".join(rf"(?<={w[0]}){w[1:]}{_AFTER_WORD.get(w, '')}" for w in sorted(VERDICT_WORDS, key=len, reverse=True))
    + r")[ \t]{0,3}(?:\([^()\n]{0,40}\)[ \t]{0,3})?(:|=|[iI][sS]\b)[ \t]{0,4}"
)
_BULLET = re.compile(r"[ \t]{0,8}(?:[-•*+][ \t]{1,4}|\d{1,2}[.)][ \t]{1,4}|#{1,6}[ \t]{1,4})?")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_WRAP = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "<": ">", "(": ")", "[": "]"}

_HEDGE = re.compile(
    r"[ \t]{0,3}(?:[-–—−~][ \t]{0,3}[\d.]|[+±×^*/%‰]|(?:or|percent|vs\.?|versus)\b"
    r"|(?:to|and|through|x)[ \t]{1,3}[-+.\d]"
    r"|[,;][ \t]{0,3}(?:or|maybe|perhaps|possibly)\b"
    r")|[,.]\d|-?\w",
    re.IGNORECASE,
)
_WORSE = re.compile(
    r"[ \t]{1,3}(?:points?|pts?|marks?|stars?)?[ \t]{0,3}(?:lower|higher|less|more|below|above|off|too)\b", re.I
)
_CLOSED = re.compile(
    r"[ \t]{0,3}(?:$|\n|[.,;:!?)\]}\"'”’»」`。，；：！？、—–(]|-[ \t]"
    r"|(?:because|since|as|for|due|given|but|overall|with)\b)"
    r"(?![\d])",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[ \t]{0,3}(?:stars?|points?|marks?)\b", re.IGNORECASE)
_PLAIN_END = re.compile(r"[ \t]{0,3}[.!。！]?[ \t]{0,80}(?:$|\n)")
_CONDITION_AFTER = re.compile(
    r"[ \t]{0,3}[\"'”’»」`)]?[ \t]{0,2},?[ \t]{0,3}(?:only[ \t]{1,3})?"
    r"(?:if|unless|provided|assuming|when|whenever|means?|would|for[ \t]a[ \t]tie)\b",
    re.IGNORECASE,
)
_CONDITION_BEFORE = re.compile(
    r"\b(?:if|unless|assuming|provided|suppose|supposing|were it|had it|would have|could have|might|may be|could be"
    r"|would be|either|perhaps|maybe|not sure)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|never|than|nor|neither|isn't|isn’t|instead of|no)[ \t]{1,3}[\"'“‘`(]?$", re.IGNORECASE)
_CRITERION = re.compile(r"[ \t]{0,8}(?:[-•*+][ \t]{1,4}|\d{1,2}[.)][ \t]{1,4})?([^\W\d_][\w '’&-]{0,40})[:=][ \t]{0,8}")
_SENTENCE = re.compile(r"[.!?;。！？；](?=\s|[^\x00-\x7f]|$)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILLERS = _words(
    "so thus hence therefore overall finally in conclusion summary sum to up all after my the our this a final and "
    "then ultimately consequently accordingly is would be i give it on balance closing judge's now here"
)
CUES = frozenset(VERDICT_WORDS) | _words(
    "decision choice conclusion judgment judgement result preference assessment evaluation ranking output pick "
    "response candidate option assistant"
)
_CJK_CUES = ("评分", "得分", "分数", "判定", "结论", "裁决", "答案", "最终", "评级", "判断", "结果", "選択", "選擇")
_OTHER_CUES = (
    *_CJK_CUES,
    *("評価", "評点", "スコア", "結論", "最終", "採点", "判決", "점수", "평가", "판정", "оценка", "вердикт", "итог"),
    *("bewertung", "urteil", "note", "punktzahl", "ergebnis", "puntuación", "veredicto", "nota", "verdict"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A verdict at ``text[start:end]``; ``value`` is None where it is no answer of the scale (or conditional).

    ``closing``: it stands on its own line, with a verdict cue or alone, and nothing follows it.
    ``quoted``: it stands in quotation marks or on a quotation line, so it is not the judge's own.
    ``criterion``: the name in front of it on its line, where that is no verdict cue ("Clarity: 8/10").
    """

    start: int
    end: int
    value: float | str | None
    form: str
    closing: bool = False
    quoted: bool = False
    criterion: str = ""


class Page:
    """A cleaned reply with its lines and quotations, and the scale it is read on."""

    def __init__(self, text: str, scale: Scale) -> None:
        self.text, self.scale = text, scale
        self.quotes = _quotations(text)
        self._starts = [s for s, _ in self.quotes]
        stripped = text.rstrip()
        self.last_end = len(stripped)
        self.last_start = stripped.rfind("\n") + 1
        names = sorted((re.escape(x) for x in scale.spellings), key=len, reverse=True)
        self.labels = re.compile("|".join(names), re.IGNORECASE if scale.folds else 0) if names else None

    # ------------------------------------------------------------------ reading one value

    def value_at(self, at: int, strict: bool) -> tuple[int, float | str | None] | None:
        """The value that starts at ``at``: (its end, value or None if it is none of the scale), or None for no value.

        ``strict`` (after "is", and for prose) wants the clause to end there.
        """
        text = self.text
        opener = text[at : at + 1]
        wrap = _WRAP.get(opener, "") if not text.startswith("[[", at) else ""
        start = at + 1 if wrap else at
        got = self._number(start) if self.scale.numeric else self._label(start, wrap)
        if got is None:
            return None
        end, value = got
        if wrap:
            if not text.startswith(wrap, end):
                return None
            end += 1
        tail = text[end : end + 60]
        if self.scale.numeric:
            over = _OF.match(tail)
            if over is not None:
                if value is not None and float(over[1]) == self.scale.high:
                    end += over.end()
                    tail = text[end : end + 60]
                else:
                    return end + over.end(), None
            if _WORSE.match(tail):
                return None  # "7 points lower": a difference, not a score
            if _HEDGE.match(tail):
                return end, None
            if strict and not _CLOSED.match(tail):
                return None
        else:
            if self._another(tail):
                return end, None
            if not _CLOSED.match(tail):
                return None
        return end, value

    def _number(self, at: int) -> tuple[int, float | None] | None:
        m = _NUMBER.match(self.text, at)
        return (m.end(), self.scale.number(m[0])) if m else None

    def _label(self, at: int, wrap: str = "") -> tuple[int, str | None] | None:
        m = self.labels.match(self.text, at) if self.labels else None
        if m is None:
            return None
        after = self.text[m.end() : m.end() + 1]
        if after and (after.isalnum() or after in "_<>=") and after != wrap:
            return None
        if after in ".,-'’" and self.text[m.end() + 1 : m.end() + 2].isalnum():
            return None
        label = self.scale.label(m[0])
        if label is not None and len(m[0]) == 1 and m[0].isalpha() and m[0] not in self.scale.labels:
            spelled = {a for a, _ in self.scale.aliases}
            if m[0] not in spelled and not _PLAIN_END.match(self.text, m.end()):
                return None  # "is a bit long": the article, not option A
        return m.end(), label

    def _another(self, tail: str) -> bool:
        """Whether the tail hedges between this label and another one."""
        m = re.match(
            r"[ \t]{0,3}(?:,[ \t]{0,3})?(?:or|and|vs\.?|versus|to|/|&|\||-|–|>|<|=)[ \t]{0,3}", tail, re.IGNORECASE
        )
        if m is None or self.labels is None:
            return False
        word = m[0].strip().casefold()
        if word in ("or", "/", "|", ", or", "<", ">", "="):
            return True
        other = self.labels.match(tail, m.end())
        return other is not None and not tail[other.end() : other.end() + 1].isalnum()

    # ------------------------------------------------------------------ where it stands

    def hit(self, start: int, end: int, value: float | str | None, form: str, cue: int | None = None) -> Hit:
        """A hit with its surroundings judged; ``cue`` is where its cue word starts (None: no cue of its own)."""
        text = self.text
        begin = self._line(start)
        lead = text[begin : cue if cue is not None else start]
        sentence = _last_sentence(text[max(begin, start - 160) : start])
        if value is not None and (
            _CONDITION_AFTER.match(text, end) or _CONDITION_BEFORE.search(sentence) or _NEGATED.search(sentence)
        ):
            value = None
        quoted = self._quoted(start, end, cue if cue is not None else start)
        closing = (
            not quoted
            and begin >= self.last_start
            and _PLAIN_END.match(text, end) is not None
            and not text[end : self.last_end].strip(" \t.!。！")
            and (_only_fillers(lead) if cue is not None else _cued(lead))
        )
        named = _CRITERION.fullmatch(lead) if cue is None else None
        criterion = named[1].strip().casefold() if named is not None and not _cued(lead) else ""
        return Hit(start, end, value, form, closing, quoted, criterion)

    def _line(self, at: int) -> int:
        """Where the line of ``at`` starts, looking back no more than 400 characters."""
        found = self.text.rfind("\n", max(0, at - _LOOK), at)
        return found + 1 if found >= 0 else max(0, at - _LOOK)

    def _quoted(self, start: int, end: int, cue: int) -> bool:
        line = self._line(start)
        if self.text[line : line + 8].lstrip().startswith(">") and (line == 0 or self.text[line - 1] == "\n"):
            return True
        i = bisect_right(self._starts, start) - 1
        if i < 0 or self.quotes[i][1] < end:
            return False
        opened, closed = self.quotes[i]
        if cue < opened:
            return False  # the cue is the judge's, only the value is in quotation marks
        before = self.text[self._line(opened) : opened]
        if opened + 1 == start and closed == end and before.strip() and _cued(before):
            return False
        stop = self.text.find("\n", closed, closed + _LOOK)
        after = self.text[closed + 1 : stop if stop >= 0 else closed + _LOOK]
        return bool((before + after).strip(" \t.!:`"))


def _last_sentence(text: str) -> str:
    last = 0
    for m in _SENTENCE.finditer(text):
        last = m.end()
    return text[last:]


def _only_fillers(lead: str) -> bool:
    """Whether nothing but a bullet and filler words stands before the cue word on its line."""
    bullet = _BULLET.match(lead)
    rest = lead[bullet.end() if bullet else 0 :]
    if len(rest) > 80 or any(c in rest for c in '"“”«»「」`:{'):
        return False
    return all(w.casefold() in FILLERS for w in _WORD.findall(rest))


def _cued(lead: str) -> bool:
    """Whether the text before a bare mark is empty or a verdict cue and nothing more."""
    bullet = _BULLET.match(lead)
    rest = lead[bullet.end() if bullet else 0 :].strip()
    if not rest:
        return True
    if len(rest) > 100 or any(c in rest for c in '"“”«»「」`'):
        return False
    if any(c in rest.casefold() for c in _OTHER_CUES[: len(_OTHER_CUES) - 1]) and len(rest) <= 40:
        return rest[-1] in ":=是は为為ー-" or len(rest) <= 8
    words = [w.casefold() for w in _WORD.findall(rest)]
    return any(w in CUES for w in words) and all(w in FILLERS or w in CUES for w in words)


def sentence_start(text: str, at: int) -> bool:
    """Whether a label word at ``at`` opens its line or sentence, filler words apart."""
    lead = text[max(0, at - 80) : at]
    newline = lead.rfind("\n")
    if newline >= 0:
        lead = lead[newline + 1 :]
    elif at > 80:
        lead = lead if _SENTENCE.search(lead) else "x" * 99
    tail = _last_sentence(lead)
    return _only_fillers(tail)


_QUOTE_PAIRS = {"“": "”", "«": "»", "「": "」", "『": "』"}
_QUOTE_SEEN = re.compile("[\"`“”«»「」『』']")
_QUOTE_MARK = re.compile("[\"`“”«»「」『』\n]|(?<!\\w)'(?=\\S)|(?<=\\S)'(?!\\w)")


def _quotations(text: str) -> list[tuple[int, int]]:
    """Closed quotations as (opening, closing) offsets: curly and straight ones may span lines, ticks may not."""
    if not _QUOTE_SEEN.search(text):
        return []
    out: list[tuple[int, int]] = []
    opened: dict[str, int] = {}
    for m in _QUOTE_MARK.finditer(text):
        char, at = m[0], m.start()
        if char == "\n":
            opened.pop("`", None)
            opened.pop("'", None)
        elif char in _QUOTE_PAIRS:
            opened.setdefault(_QUOTE_PAIRS[char], at)
        elif char in "”»」』":
            if char in opened:
                out.append((opened.pop(char), at))
        elif char in opened:
            before, after = text[at - 1], text[at + 1 : at + 2]
            if char == '"' and before.isspace() and after and not after.isspace():
                opened[char] = at
            else:
                out.append((opened.pop(char), at))
        elif char == '"':
            before, after = text[at - 1 : at], text[at + 1 : at + 2]
            if after and not after.isspace() and not (before and before.isalnum()):
                opened[char] = at
        else:
            opened[char] = at
    out.sort()
    merged: list[tuple[int, int]] = []
    for pair in out:
        if not merged or pair[0] > merged[-1][1]:
            merged.append(pair)
    return merged


def find(page: Page) -> Iterator[Hit]:
    """All hits of the text forms; spans of different forms may touch but a later form never re-reads an earlier."""
    text, scale = page.text, page.scale
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        i = bisect_right(taken, (start, 1 << 60)) - 1
        return not (i >= 0 and taken[i][1] > start) and not (i + 1 < len(taken) and taken[i + 1][0] < end)

    hits: list[Hit] = list(_special(page))
    taken = sorted((h.start, h.end) for h in hits)
    fresh = [h for h in _marks(page) if free(h.start, h.end)]
    hits += fresh
    taken = sorted(taken + [(h.start, h.end) for h in fresh])
    fresh = [h for h in _label_lines(page) if free(h.start, h.end)]
    hits += fresh
    taken = sorted(taken + [(h.start, h.end) for h in fresh])
    if scale.numeric:
        for m in _FRACTION.finditer(text):
            if not free(m.start(), m.end()) or float(m[2]) != scale.high:
                continue
            if _CLOSED.match(text, m.end()) is None and _UNIT.match(text, m.end()) is None:
                continue  # "4 out of 5 facts": a count, not a score
            hits.append(page.hit(m.start(), m.end(), scale.number(m[1]), "fraction"))
        taken = sorted((h.start, h.end) for h in hits)
    for hit in _alone(page):
        if free(hit.start, hit.end):
            hits.append(hit)
    yield from sorted(hits, key=lambda h: (h.start, h.end))


def _marks(page: Page) -> Iterator[Hit]:
    for m in _BRACKETS.finditer(page.text):
        inner = m[1].strip()
        known, value = _inside(inner, page.scale)
        if known:
            yield page.hit(m.start(), m.end(), value, "bracket")
    for m in _TAG.finditer(page.text):
        yield page.hit(m.start(), m.end(), _inside(m[2].strip(), page.scale)[1], "tag")
    for m in _RESULT.finditer(page.text):
        got = page.value_at(m.end(), strict=False)
        if got is not None:
            yield page.hit(m.start(), got[0], got[1], "result")


def _inside(inner: str, scale: Scale) -> tuple[bool, float | str | None]:
    """(does it look like a verdict, its value) for the text between brackets or tags."""
    inner = inner.strip("\"'“”`* ")
    if not scale.numeric:
        label = scale.label(inner)
        return label is not None or len(inner) <= 16, label
    m = _FRACTION.fullmatch(inner)
    if m is not None and float(m[2]) == scale.high:
        inner = m[1]
    return any(c.isdigit() for c in inner) or len(inner) <= 8, scale.number(inner)


def _label_lines(page: Page) -> Iterator[Hit]:
    text = page.text
    for m in _LABEL.finditer(text):
        if not sentence_start(text, m.start()):
            continue
        firm = m[1] in (":", "=")
        if firm and text.startswith(("[[", MASK), m.end()):
            continue
        got = page.value_at(m.end(), strict=not firm)
        if got is not None:
            yield page.hit(m.start(), got[0], got[1], "label_line", cue=m.start())
        elif firm and text[m.end() : m.end() + 1].strip():
            stop = text.find("\n", m.end(), m.end() + 120)
            rest = text[m.end() : stop if stop >= 0 else m.end() + 120]
            numeric = page.scale.numeric and any(c.isdigit() for c in rest)
            lone = len(_WORD.findall(rest)) == 1
            if ("[[" not in rest and numeric and len(rest) < 60) or lone:
                yield page.hit(m.start(), m.end() + len(rest), None, "label_line", cue=m.start())


def _alone(page: Page) -> Iterator[Hit]:
    """The last line that is only the value, and the label as first word on binary scales."""
    text, scale = page.text, page.scale
    start = page.last_start
    line = text[start : page.last_end]
    if len(line) <= 120:
        at = start + len(line) - len(line.lstrip())
        got = page.value_at(at, strict=False)
        if got is not None and not text[got[0] : page.last_end].strip(" \t.!。！"):
            yield page.hit(at, got[0], got[1], "alone")
    if not scale.numeric and (len(scale.labels) == 2 or scale.first_token) and not scale.two_scores:
        at = len(text) - len(text.lstrip())
        got2 = page._label(at)
        if got2 is not None and got2[1] is not None:
            tail = text[got2[0] : got2[0] + 12]
            spoken = re.match(r"[ \t]?[,:]|[ \t]{1,3}[-–—][ \t]", tail)
            if spoken is None and scale.first_token:
                exact = text[at : got2[0]] in scale.labels
                spoken = re.match(r"[.!;\n]|[ \t]{0,3}[-–—]|$", tail) or (re.match(r"\s", tail) if exact else None)
            if spoken is not None and not page._another(tail):
                yield page.hit(at, got2[0], got2[1], "first_word")


_PAIR = re.compile(
    rf"(?:scores?[ \t]{{0,3}}[:=][ \t]{{0,4}})?({_NUM})"
    rf"(?:[ \t]{{1,8}}|[ \t]{{0,3}}[,;/|][ \t]{{0,3}})({_NUM})[ \t]{{0,8}}\.?",
    re.IGNORECASE,
)


def _special(page: Page) -> Iterator[Hit]:
    """Two scores on one line, and rankings, where the scale declares them."""
    scale, text = page.scale, page.text
    if not scale.two_scores and not scale.ranking:
        return
    at = 0
    for line in text.split("\n"):
        body = line.strip()
        start, end = at + len(line) - len(line.lstrip()), at + len(line.rstrip())
        at += len(line) + 1
        if not body or len(body) > 2000:
            continue
        if scale.two_scores:
            m = _PAIR.fullmatch(body)
            if m is not None:
                yield page.hit(start, end, _winner(m[1], m[2], scale), "two_scores")
        if scale.ranking and ">" in body:
            order = _ranking(body, scale)
            if order is not None:
                value = order[0] if sorted(order) == sorted(scale.rivals) else None
                yield page.hit(start, end, value, "ranking")


def _winner(first: str, second: str, scale: Scale) -> str | None:
    numbers = Scale(low=scale.low, high=scale.high, integers=scale.integers)
    a, b = numbers.number(first), numbers.number(second)
    if a is None or b is None:
        return None
    if a == b:
        return scale.tie_label or None
    return scale.rivals[0] if a > b else scale.rivals[1]


def _ranking(body: str, scale: Scale) -> list[str] | None:
    head, colon, tail = body.rpartition(":")
    if colon and not _cued(head):
        return None
    names = [x.strip().strip("[]().! ") for x in (tail if colon else body).split(">")]
    found = [scale.label(x) for x in names]
    if all(x is None for x in found):
        return None
    return [x if x is not None else "" for x in found]
