"""X9 content-invariance re-score: take one segment out at a time; what is not content must not carry the score.

A text whose score falls when one sentence, comment or hidden string is removed leans on that segment.  Honest content
leans on its sentences too, so the threshold is calibrated on benign texts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from robustjudge import spec
from robustjudge.defenses.base import Extra, Thresholded, Worth, above, by_identity
from robustjudge.defenses.perplexity import sentences
from robustjudge.judges import Judge
from robustjudge.nouns import TIE, Slate, Verdict
from robustjudge.steps import together

if TYPE_CHECKING:
    from robustjudge.defenses.threshold import Threshold

_COMMENT = re.compile(r"<!--.*?-->|/\*.*?\*/|(?:^|(?<=\s))(?://|#|--)[^\n]*", re.DOTALL | re.MULTILINE)


@spec.register("ablation")
@dataclass(frozen=True)
class Ablation(Thresholded):
    """Re-score every candidate without each of its segments: ``which`` ``all`` sentences, or the ``last`` two; comments
    and hidden characters always; ``blocks`` also takes out the last 2 to 4 sentences together (a split payload).

    ``mode`` ``flag``: suspicion M = the greatest fall of worth in [0, 1]; blocked where M lies above ``tau``.
    ``conservative``: the lowest score that any removal leaves (a choice that does not survive is ``inconsistent``).
    At most ``most`` segments a candidate; each costs one judge call.
    """

    tau: float | Threshold | None = None
    mode: Literal["flag", "conservative"] = "flag"
    which: Literal["last", "all"] = "last"
    blocks: bool = False
    most: int = 32
    worth: Worth = "reject"

    def extra(self, slate: Slate) -> Extra:
        return Extra(judges=sum(len(self.versions(c)) for c in slate.candidates))

    def versions(self, text: str) -> tuple[str, ...]:
        """The distinct shorter texts, in a fixed order; the whole text may never go."""
        parts = sentences(text)
        wanted = range(len(parts)) if self.which == "all" else range(max(0, len(parts) - 2), len(parts))
        found = ["".join(p for j, p in enumerate(parts) if j != i) for i in reversed(wanted)]
        if self.blocks:
            found += ["".join(parts[:-n]) for n in (2, 3, 4) if n < len(parts)]
        found.append(_COMMENT.sub("", text))
        found.append("".join(ch for ch in text if unicodedata.category(ch) != "Cf"))
        kept = dict.fromkeys(f for f in found if f != text and f.strip())
        return tuple(kept)[: self.most]

    async def __call__(self, slate: Slate, judge: Judge) -> Verdict:
        refused = self.unfit(slate)
        if refused:
            return Verdict(status="error", reason=refused)
        plain = await judge(slate)
        if plain.status != "ok":
            return plain
        places = [(slot, text) for slot, c in enumerate(slate.candidates) for text in self.versions(c)]
        seen = await together(judge(shown(slate, slot, text)) for slot, text in places)
        bad = next((v for v in seen if v.status != "ok"), None)
        if bad is not None:
            return bad
        falls: list[float | None] = [0.0] * len(slate.candidates)
        for (slot, _), verdict in zip(places, seen, strict=True):
            who = slate.index[slot]
            falls[slot] = max(falls[slot] or 0.0, worth(plain, who) - worth(verdict, who))
        kept = by_identity(slate, falls)
        if self.mode == "flag":
            limits = [self.limit(c, slate) for c in slate.candidates]
            if any(above(f, t) for f, t in zip(falls, limits, strict=True)):
                return Verdict(status="blocked", reason="ablation", suspicion=kept, fallback=self.worth, raw=plain.raw)
            return replace(plain, suspicion=plain.suspicion or kept)
        if plain.choice is not None:
            same = all(v.choice == plain.choice for v in seen)
            return plain if same else Verdict(status="unparsed", reason="inconsistent", raw=plain.raw, suspicion=kept)
        lowest = min((plain, *seen), key=lambda v: v.unit if v.unit is not None else 0.0)
        return replace(lowest, suspicion=kept)


def shown(slate: Slate, slot: int, text: str) -> Slate:
    """The slate with another text in one slot."""
    return replace(slate, candidates=(*slate.candidates[:slot], text, *slate.candidates[slot + 1 :]))


def worth(verdict: Verdict, who: int) -> float:
    """What a verdict is worth to candidate ``who``, in [0, 1]."""
    if verdict.choice is None:
        return verdict.unit or 0.0
    return 0.5 if verdict.choice == TIE else float(verdict.choice == who)
