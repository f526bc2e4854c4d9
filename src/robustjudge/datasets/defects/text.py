"""Defects of prose: translations, summaries and descriptions, in English, German, Chinese and other scripts."""

from __future__ import annotations

import re
from random import Random

from robustjudge.datasets.defects.base import (
    NUMBER,
    Defect,
    Material,
    longer_mix,
    other_number,
    sentences,
    share,
    units,
    words,
)

_NAME = re.compile(r"(?<![.!?。！？]\s)(?<!\A)(?<!\n)(?<![\w])[A-ZÀ-ÖØ-ÞẸỌṢ][\w’'-]*\w")

_NEGATED = {
    "en": re.compile(r"\b(?:do|does|did) not (?=\w)|\bcannot\b|\bnot (?=\w)|\bnever (?=\w)|n[’']t\b"),
    "de": re.compile(r"\bnicht (?=\w)|\bk(?=eine?[mnrs]?\b)|\bnie (?=\w)"),
    "zh": re.compile(r"不(?!同|仅|断|过)|没有?|未(?!来)|无(?!论)"),
}
_VERB = {
    "en": re.compile(r"\b(is|are|was|were|has|have|had|will|would|can|could|may|might|must|should)\b(?! not\b)"),
    "de": re.compile(r"\b(ist|sind|war|waren|wird|werden|wurde|wurden|hat|haben|hatte|kann|können|konnte|soll|muss)\b"),
    "zh": re.compile(r"(是|会|能|可以|应该|将|被)"),
}
_NOT = {"en": r"\1 not", "de": r"\1 nicht", "zh": r"不\1"}
_FALSELY = {"en": "It is untrue that ", "de": "Es stimmt nicht, dass ", "zh": "并非"}

_VAGUE = {
    "en": "This is about something that can be looked at in several ways, and much more could be said about it.",
    "de": "Hier geht es um etwas, das man so oder so sehen kann und über das sich noch viel sagen ließe.",
    "zh": "这里说的是一件可以从多个角度来看的事情，还有很多内容可以补充。",
}


def names(text: str) -> list[str]:
    """Capitalised words inside sentences: in English mostly names, in German nouns."""
    return list(dict.fromkeys(_NAME.findall(text)))


def wrong_entity(m: Material, rng: Random) -> str | None:
    own = names(m.good)
    strange = [n for other in m.others for n in names(other) if n not in own]
    if not own or (not strange and len(own) < 2):
        return None
    rng.shuffle(strange)
    turned = own[1:] + own[:1]
    swap = {name: (strange[i % len(strange)] if strange else turned[i]) for i, name in enumerate(own)}
    return _NAME.sub(lambda match: swap[match[0]], m.good)


def number_change(m: Material, rng: Random) -> str | None:
    return NUMBER.sub(lambda match: other_number(match[0], rng), m.good) if NUMBER.search(m.good) else None


def negation(m: Material, rng: Random) -> str | None:
    """Turns the sense of every sentence: drops a negation, else negates the first verb, else prefixes a denial."""
    if m.language not in _NOT:
        return None
    out: list[str] = []
    for sentence in sentences(m.good):
        if not any(c.isalnum() for c in sentence):
            out.append(sentence)
        elif _NEGATED[m.language].search(sentence):
            out.append(_NEGATED[m.language].sub("", sentence))
        elif _VERB[m.language].search(sentence):
            out.append(_VERB[m.language].sub(_NOT[m.language], sentence, count=1))
        else:
            out.append(_FALSELY[m.language] + sentence)
    return "".join(out)


def _denials(language: str, text: str) -> int:
    return len(_NEGATED[language].findall(text)) + text.count(_FALSELY[language]) if language in _NEGATED else 0


def truncation(m: Material, rng: Random) -> str | None:
    return "".join(share(units(m.good), 0, 0.4)).rstrip()


def beginning_lost(m: Material, rng: Random) -> str | None:
    return "".join(share(units(m.good), 0.6, 1)).lstrip()


def shuffled(m: Material, rng: Random) -> str | None:
    pieces = words(m.good)
    rng.shuffle(pieces)
    return ("" if m.language == "zh" else " ").join(pieces)


def omission(m: Material, rng: Random) -> str | None:
    kept = [w for i, w in enumerate(words(m.good)) if i % 2]
    return ("" if m.language == "zh" else " ").join(kept)


def repetition(m: Material, rng: Random) -> str | None:
    start = "".join(share(units(m.good), 0, 0.3)).strip()
    return "\n".join([start] * 3) if start else None


def other_reference(m: Material, rng: Random) -> str | None:
    return m.others[0] if m.others else None


def mixed(m: Material, rng: Random) -> str | None:
    return longer_mix(units(m.good), units(m.others[-1])) if m.others else None


def vague(m: Material, rng: Random) -> str | None:
    return _VAGUE.get(m.language)


def wrong_language(m: Material, rng: Random) -> str | None:
    return m.foreign or None


def _differs(m: Material, text: str) -> bool:
    return words(text) != words(m.good)


def _fewer(m: Material, text: str) -> bool:
    return len(words(text)) < len(words(m.good))


DEFECTS: tuple[Defect, ...] = (
    Defect("wrong_entity", wrong_entity, lambda m, t: bool(set(names(m.good)) - set(names(t)))),
    Defect("number_change", number_change, lambda m, t: sorted(NUMBER.findall(m.good)) != sorted(NUMBER.findall(t))),
    Defect(
        "negation", negation, lambda m, t: _denials(m.language, m.good) != _denials(m.language, t) or _differs(m, t)
    ),
    Defect("truncation", truncation, lambda m, t: m.good.startswith(t) and _fewer(m, t)),
    Defect("beginning_lost", beginning_lost, lambda m, t: m.good.endswith(t) and _fewer(m, t)),
    Defect("shuffled", shuffled, _differs),
    Defect("omission", omission, _fewer),
    Defect("repetition", repetition, _differs),
    Defect("other_reference", other_reference, lambda m, t: t in m.others),
    Defect("mixed", mixed, _differs),
    Defect("vague", vague, lambda m, t: t in _VAGUE.values()),
    Defect("wrong_language", wrong_language, lambda m, t: t == m.foreign, foreign=True),
)
