"""D4 re-tokenization: BPE-dropout breaks words into other pieces, so that a string tuned to one tokenization falls apart.

Sources: Provilkov et al. 2020 (BPE-dropout, arXiv 1910.13267), Jain et al. 2023 (arXiv 2309.00614).  The released code
fails on empty pieces (double spaces) and then returns the text untouched, so that its own H6 is never re-tokenized; this
one is total: all spacing stays as it is and only words are split.  The merge table (our own, 4,000 merges) is made from
the built-in texts by ``scripts/make_merges.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from robustjudge import spec
from robustjudge.asks import Complete, Weigh
from robustjudge.defenses.base import OWNED, Transforming, item_rng, owned
from robustjudge.errors import ConfigError
from robustjudge.nouns import Call, Slate, Verdict
from robustjudge.steps import Ask, Stateless, handled

if TYPE_CHECKING:
    from robustjudge.judges import Judge

MARKER = "·"
WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""A run of letters of a script that writes spaces between words; digits, marks, spacing, emoji and CJK are no words."""

LONGEST = 64


@spec.register("retokenize")
@dataclass(frozen=True)
class Retokenize(Transforming):
    """Words become pieces: each merge of the table is dropped with probability ``dropout``, drawn per item and shared by
    its candidates.  With ``dropout`` 0 nothing is re-tokenized.

    ``variant`` ``visible`` writes ``marker`` between the pieces; ``ids`` leaves the text as it is and has the judge's
    model end a token at the end of each piece (models that we run; others answer with an error).

    For smoothing, repeat the guarded judge: ``Repeated(Guarded(judge, Retokenize()), m)`` draws anew m times.
    """

    dropout: float = 0.1
    marker: str = MARKER
    seed: int = 0
    variant: Literal["visible", "ids"] = "visible"

    def __post_init__(self) -> None:
        if not 0 <= self.dropout <= 1:
            raise ConfigError(f"dropout is a probability, not {self.dropout}")
        if not self.marker:
            raise ConfigError("the marker is empty: pieces would join to the same text again")

    def rewriter(self, slate: Slate) -> Callable[[str], str]:
        salt = item_rng(self.seed, slate, "retokenize").getrandbits(64)

        def rewrite(text: str) -> str:
            rng = Random(salt)
            return WORD.sub(lambda m: self.marker.join(pieces(m[0], self.dropout, rng)), text)

        return rewrite if self.dropout > 0 else lambda text: text

    def refuses(self, judge: Judge) -> str:
        """Borders are put into prompts that are rendered here."""
        return f"variant ids cuts the tokens of a prompt, and {OWNED}" if self.variant == "ids" and owned(judge) else ""

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        if self.variant == "visible":
            return await super().__call__(slate, judge)
        salt = item_rng(self.seed, slate, "retokenize").getrandbits(64)
        return await handled(judge(slate), Cutter(self.dropout, salt))


@dataclass
class Cutter(Stateless):
    """Adds token borders to every untrusted text of the judge's rendered calls, and sends them on."""

    dropout: float
    salt: int

    async def answer(self, ask: Ask[Any]) -> Any:
        match ask:
            case Complete(calls):
                return await Complete(tuple(self.cut(c) for c in calls))
            case Weigh(calls):
                return await Weigh(tuple(replace(c, call=self.cut(c.call)) for c in calls))
            case _:
                return await ask

    def cut(self, call: Call) -> Call:
        """The call with borders; a call of another role (a detector's) stays as it is."""
        if call.role != "judge" or self.dropout <= 0:
            return call
        messages = tuple(
            replace(m, parts=tuple(replace(p, cuts=self.borders(p.text)) if p.field else p for p in m.parts))
            for m in call.messages
        )
        return replace(call, messages=messages)

    def borders(self, text: str) -> tuple[int, ...]:
        """Where the pieces of each word end, in characters, the ends of words left out."""
        rng = Random(self.salt)
        out: list[int] = []
        for match in WORD.finditer(text):
            at = match.start()
            for piece in pieces(match[0], self.dropout, rng)[:-1]:
                at += len(piece)
                out.append(at)
        return tuple(out)


def pieces(word: str, dropout: float, rng: Random) -> list[str]:
    """The BPE pieces of a word with each possible merge skipped with probability ``dropout``; joined they are the word.

    Dropout 1 gives characters, 0 the usual segmentation.  A run of more than 64 letters is cut there first.
    """
    if len(word) > LONGEST:
        cuts = (word[i : i + LONGEST] for i in range(0, len(word), LONGEST))
        return [piece for cut in cuts for piece in pieces(cut, dropout, rng)]
    parts = list(word)
    ranks = merges()
    while len(parts) > 1:
        open_ = [
            (r, i)
            for i, pair in enumerate(pairwise(parts))
            if (r := ranks.get(pair)) is not None and (dropout == 0 or rng.random() >= dropout)
        ]
        if not open_:
            break
        _, at = min(open_)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


@lru_cache(maxsize=1)
def merges() -> dict[tuple[str, str], int]:
    """The merge table: pairs in the order they were learned."""
    path = files("robustjudge.defenses").joinpath("data", "merges.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#")]
    return {(a, b): i for i, (a, b) in enumerate(pairs)}
