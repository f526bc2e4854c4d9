"""The hard-benign set: enough of each kind, varied, and each text really of its kind."""

from __future__ import annotations

import base64
import re
import zlib
from collections import Counter
from itertools import combinations

import pytest

from robustjudge.datasets.hard_benign import BENIGN_KINDS, Benign, hard_benign
from robustjudge.errors import UnknownName

ALL = list(hard_benign())

RUBRIC = (
    "score|rat(?:e|ing)|grad(?:e|ed|ing)|criteri|accura|complete|clarity|excellent|best|quality|verdict|correct|points|relevance"
    "|consisten|rubric|helpful|bewert|urteil|note|punkt|beste|vollständig|评|分|正确|合格"
)
COMMENT = ("#", "//", "/*", "--", "<!--", '"""')
ENCODED = re.compile(
    r"[A-Za-z0-9+/]{12,}|\$.*\$|\\\[|\\begin|\\boxed|%[0-9A-F]{2}|(?:[0-9a-f]{2} ){4}|[0-9a-f]{4} [0-9a-f]{4}|-\.-"
)


def grams(text: str) -> set[str]:
    return {text[i : i + 8] for i in range(max(1, len(text) - 7))}


@pytest.mark.parametrize("kind", BENIGN_KINDS)
def test_at_least_thirty_of_each_kind_in_three_languages(kind: str) -> None:
    texts = list(hard_benign(kind))
    assert len(texts) >= 30 and {t.kind for t in texts} == {kind}
    assert min(Counter(t.language for t in texts)[lang] for lang in ("en", "de", "zh")) >= 6


def test_ids_and_texts_are_distinct_and_none_is_a_clone() -> None:
    assert len({t.id for t in ALL}) == len({t.text for t in ALL}) == len(ALL) >= 210
    assert {t.kind for t in ALL} == set(BENIGN_KINDS)
    shingles = [(t.id, grams(t.text)) for t in ALL]
    clones = [(a, b) for (a, x), (b, y) in combinations(shingles, 2) if len(x & y) > 0.4 * min(len(x), len(y))]
    assert clones == []


@pytest.mark.parametrize("text", ALL, ids=lambda t: t.id)
def test_text_is_of_its_kind(text: Benign) -> None:
    assert text.text == text.text.strip() and 20 <= len(text.text) <= 800
    match text.kind:
        case "rubric_words":
            assert re.search(RUBRIC, text.text, re.IGNORECASE)
        case "code_comments":
            assert any(mark in text.text for mark in COMMENT)
        case "encoded":
            assert ENCODED.search(text.text)
        case "repetition":
            raw = text.text.encode()
            assert len(zlib.compress(raw)) < 0.75 * len(raw)


def test_repetition_stands_out_from_the_other_kinds() -> None:
    def ratio(t: Benign) -> float:
        return len(zlib.compress(t.text.encode())) / len(t.text.encode())

    repeated = sorted(ratio(t) for t in ALL if t.kind == "repetition")
    others = sorted(ratio(t) for t in ALL if t.kind != "repetition")
    assert repeated[len(repeated) // 2] < 0.6 * others[len(others) // 2]


def test_base64_in_the_texts_decodes_to_honest_words() -> None:
    decoded = []
    for t in hard_benign("encoded"):
        for chunk in re.findall(r"(?:[A-Za-z0-9+/]{4}){3,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", t.text):
            try:
                decoded.append(base64.b64decode(chunk, validate=True).decode())
            except ValueError:  # an ordinary long word
                continue
    assert len(decoded) >= 8
    assert not [d for d in decoded if re.search(r"score|judge|ignore|verdict|rating", d, re.IGNORECASE)]


def test_unknown_kind() -> None:
    with pytest.raises(UnknownName, match="encoded"):
        hard_benign("encode")
