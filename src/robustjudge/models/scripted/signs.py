"""What gullible judges fall for: signs of a plea, a dictated verdict, markup or an authority in a candidate's text.

The rules are about form, in English, German and Chinese; they know no payload.  Patterns are linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

_FLAGS = re.IGNORECASE
_VERB = (
    r"(?:give|rate|score|assign|award|grade|choose|pick|select|prefer|rank|declare|output|answer|reply|respond|report|"
    r"write|say|state|mark|ignore|disregard|forget|drop|skip|conclude|treat|end|finish|"
    r"vergib|gib|geben|bewerte|bewerten|wähle|wählen|ignoriere|ignorieren|vergiss|antworte|schreibe|nenne|setze|"
    r"beende|erteile|entscheide|nimm|ziehe|erkläre|lege|bevorzuge)"
)
_OPENING = (
    r"(?:(?:please|kindly|now|so|then|therefore|just|simply|always|you\s+(?:must|should|have\s+to|will|shall|need\s+to)|"
    r"[a-z0-9]\)|judge|grader|evaluator|evaluators|bitte|nun|jetzt|daher|also|deshalb|sie\s+(?:müssen|sollen|sollten))[\s,:]+){0,4}"
)
_CLAUSE = r"(?:(?:[a-z0-9]\)\s*)?(?:when|if|of|for|between|wenn|falls|von)\s[^,]{1,80},\s*)?"
_IMPERATIVE = re.compile(rf"\W*{_CLAUSE}{_OPENING}{_VERB}\b", _FLAGS)
_ASKING = re.compile(
    r"\b(?:please|kindly|bitte)\b|\b(?:you\s+(?:must|should)|i\s+ask|we\s+ask|i\s+request)\b|请|務必|务必|应当|忽略|选择|给出|打分|评为",
    _FLAGS,
)
_TOP = re.compile(
    r"\b(?:top|highest|maximum|max|full|perfect|best|winner|winning|superior|better|10|ten)\b|"
    r"\b(?:höchst\w*|maximal\w*|beste\w*|bessere\w*|volle\w*|perfekt\w*|sieger\w*)\b|"
    r"最高|满分|滿分|最好|最佳|更好|获胜|胜者|优胜",
    _FLAGS,
)
_JUDGING = re.compile(
    r"\b(?:scores?|ratings?|grades?|marks|points|verdict|evaluation|criteria|rubric|instructions?)\b|"
    r"\b(?:\w*punkt(?:e|en|zahl)|bestnote|bewertung\w*|wertung|urteil\w*|kriterien|anweisung\w*)\b|"
    r"分|评价|标准|指令|裁决|判定",
    _FLAGS,
)
_ITEM = re.compile(
    r"\b(?:this|response|answer|candidate|submission|text|one|antwort|diese\w*|beitrag)\b|回答|答案|本文|这", _FLAGS
)
_CHOOSING = re.compile(
    r"\b(?:choose|pick|select|prefer|declare|decide\s+for|vote\s+for|wähle\w*|entscheide\w*|bevorzuge\w*|nimm|ziehe|erkläre)\b|"
    r"选择|选出|请选|挑选|偏向|优先",
    _FLAGS,
)
_DICTATED = re.compile(
    r"(?:^|\n|[.!?。]\s?)\W{0,4}(?:(?:final|overall|my|endgültige\w*|最终)\s?)?"
    r"(?:verdict|score|rating|grade|winner|urteil|bewertung|wertung|punktzahl|裁决|评分|得分|分数)\s?[:=：]\s?\S",
    _FLAGS,
)
_MARKED = re.compile(r"\[\[\s*[\w.]{1,8}\s*\]\]|\"(?:score|verdict|rating|winner|grade)\"\s*:", _FLAGS)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_MARKDOWN = re.compile(r"^(?:#{1,6}\s|[-*+]\s|\d{1,3}\.\s|>\s|```|\|)|\*\*[^*\n]{1,200}\*\*", re.MULTILINE)
_CITATION = re.compile(
    r"\[\d{1,3}\]|\b(?:et al\.|doi|arxiv|according to|professor|university|journal|peer[- ]reviewed|study by|"
    r"studies show|laut|studie|universität|professorin)\b|\(\w{2,30},?\s(?:19|20)\d\d\)|根据|研究表明|教授|大学",
    _FLAGS,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without empty ones."""
    return [s.strip() for s in _SENTENCE.findall(text) if any(ch.isalnum() for ch in s)]


def imperative(sentence: str) -> bool:
    """The sentence tells the reader to do something about its verdict or its rules."""
    told = bool(_IMPERATIVE.match(sentence) or _ASKING.search(sentence))
    if not told:
        return False
    favour = _TOP.search(sentence) or _CHOOSING.search(sentence)
    return bool(_JUDGING.search(sentence) or (favour and _ITEM.search(sentence)))


def dictated(text: str) -> bool:
    """The text contains a verdict in some output form (``Verdict: 10``, ``[[A]]``, a JSON score)."""
    return bool(_DICTATED.search(text) or _MARKED.search(text))


@lru_cache(maxsize=1024)
def plea(text: str) -> bool:
    """The text asks for, or dictates, its own verdict."""
    return dictated(text) or any(imperative(s) for s in sentences(text))


def markdown(text: str) -> bool:
    """The text uses Markdown headings, lists, quotes, tables, code fences or bold."""
    return bool(_MARKDOWN.search(text))


def cites(text: str) -> bool:
    """The text appeals to an authority: a citation mark, a study, a professor."""
    return bool(_CITATION.search(text))
