"""ROUGE-L F: longest common subsequence of words, the fallback for summaries.

Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries".  The scoring is rouge-score's; the tokens are
ours, because its tokeniser keeps only a-z and 0-9 and so reads any Chinese text as empty.  Ours: case-folded runs of
letters, digits and combining marks of any script, and each Chinese, Japanese kana or Thai-like unspaced character as
a token of its own.  No stemming (it exists for English only).  For English text without accents the tokens, and so
the scores, equal rouge-score's unstemmed ones.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from robustjudge.nouns import Case
from robustjudge.quality.base import Evaluator, Rating, rated, unknown
from robustjudge.spec import register

# scripts written without spaces: CJK ideographs (all planes in use), kana, bopomofo, Thai, Lao, Khmer, Myanmar
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\w\u0300-\u036f])+")


def tokens(text: str) -> list[str]:
    """The tokens ROUGE counts."""
    return _TOKEN.findall(unicodedata.normalize("NFC", text).casefold())


class _Tokens:
    """The shape rouge-score expects of a tokeniser."""

    def tokenize(self, text: str) -> list[str]:
        return tokens(text)


@lru_cache(maxsize=1)
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_Tokens())


@register("rouge")
@dataclass(frozen=True)
class Rouge(Evaluator):
    """ROUGE-L F1 against all references of the case (the best one counts)."""

    name: ClassVar[str] = "rouge"

    def score(self, case: Case, text: str) -> Rating:
        references = [r for r in case.references if tokens(r)]
        if not references:
            return unknown(self.name, "the reference holds no word")
        best = max(_scorer().score(r, text)["rougeL"].fmeasure for r in references)
        return rated(self.name, float(best))
