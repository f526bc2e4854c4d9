"""Text attacks: a payload pack's wording, filled for the judge and placed into the weak response (H1-H6, E5, probes).

Non-adaptive, access NONE, no feedback (arXiv 2506.09443, section IV-B; wording ours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from robustjudge import spec
from robustjudge.attacks.base import (
    CHANNELS,
    Channel,
    NoCandidate,
    Plugin,
    Target,
    comment_mark,
    commented,
    is_code,
    language_of,
    place,
)
from robustjudge.attacks.dress import DRESSES
from robustjudge.attacks.packs import SLOT, Group, Pack, Variant, pack
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.nouns import Case, Severity

_CRITERIA = {
    "en": ("accuracy", "completeness", "clarity", "relevance"),
    "zh": ("准确性", "完整性", "清晰度", "相关性"),
    "de": ("Richtigkeit", "Vollständigkeit", "Klarheit", "Bezug zur Aufgabe"),
}


@spec.register("text")
@dataclass(frozen=True)
class TextAttack(Plugin):
    """One payload pack.

    ``paraphrase`` picks a wording by number (default: ``seed`` modulo their number) within ``group``;
    ``variant``, ``placement``, ``language`` and ``number`` (name the top number of the scale or not) override what
    the pack and the case say.
    """

    pack: str
    paraphrase: int | None = None
    seed: int = 0
    variant: str = ""
    placement: str = ""
    language: str = ""
    number: bool | None = None
    group: Group = "all"
    target: Target = Target()

    def __post_init__(self) -> None:
        here = pack(self.pack)
        if self.variant and self.variant not in here.variants:
            raise UnknownName(f"variant of {self.pack}", self.variant, tuple(here.variants))
        if self.placement and self.placement not in CHANNELS:
            raise ConfigError(f"placement {self.placement!r} is none of {', '.join(CHANNELS)}")

    @property
    def name(self) -> str:
        extra = [self.variant] if self.variant else []
        extra += [] if self.number is None else ["number" if self.number else "wordless"]
        extra += [self.placement] if self.placement else []
        return "/".join([self.pack, *extra])

    @property
    def family(self) -> str:
        return pack(self.pack).family

    @property
    def category(self) -> str:
        return pack(self.pack).category

    @property
    def severity(self) -> Severity:
        return pack(self.pack).severity

    @property
    def channel(self) -> Channel:
        here = pack(self.pack)
        return cast(Channel, self.placement or self._variant().placement or here.placement)

    def _variant(self) -> Variant:
        here = pack(self.pack)
        return here.variants[self.variant] if self.variant else next(iter(here.variants.values()), Variant())

    def language_used(self, case: Case) -> str:
        """The language of the payload: the case's where the pack has it, else English."""
        return pack(self.pack).speaks(self.language or language_of(case))

    def note(self, case: Case) -> str:
        if self.language_used(case) == "en" and language_of(case) != "en":
            return "English payload on a non-English case"
        return ""

    def paraphrase_id(self, case: Case) -> str:
        """``pack/language/protocol/number`` of the wording used, for the row."""
        return f"{self._source().id}/{self.language_used(case)}/{self.target.protocol}/{self._index(case)}"

    def payload(self, case: Case) -> str:
        """The filled wording, before placement."""
        variant = self._variant()
        language = self.language_used(case)
        filled = self._fill(self._source(), language, self._index(case), depth=0)
        return DRESSES[variant.dress](variant.before + filled + variant.after)

    async def __call__(self, case: Case) -> str:
        return self.applied(case)

    def applied(self, case: Case) -> str:
        """The attacked text."""
        variant, here = self._variant(), pack(self.pack)
        payload = self.payload(case)
        separator = here.separator if variant.separator is None else variant.separator
        if is_code(case) and self.channel not in ("replace", "history"):
            # a sentence glued to code breaks it, and a damage-aware metric would then reward the damage
            payload, separator = commented(payload, comment_mark(case.response)), "\n"
        return place(self.channel, case.response, payload, separator)

    def _source(self) -> Pack:
        use = self._variant().use
        return pack(use) if use else pack(self.pack)

    def _numbered(self) -> bool:
        return pack(self.pack).number if self.number is None else self.number

    def _index(self, case: Case) -> int:
        here = self._source()
        listed = here.paraphrases(self.language_used(case), self.target.protocol, self._numbered())
        cut = len(listed) - here.held_out
        pools = {"all": range(len(listed)), "train": range(cut), "held_out": range(cut, len(listed))}
        pool = pools[self.group]
        if not pool:
            raise NoCandidate(f"pack {here.id} has no {self.group} wordings for {self.target.protocol}")
        return pool[(self.seed if self.paraphrase is None else self.paraphrase) % len(pool)]

    def _fill(self, here: Pack, language: str, index: int, depth: int) -> str:
        """Fill every slot of one wording in a single pass, so that what is filled in is never read as a slot."""
        if depth > 4:
            raise ConfigError(f"payload pack {here.id} refers to itself")
        listed = here.paraphrases(here.speaks(language), self.target.protocol, self._numbered())
        text = listed[index % len(listed)]
        facts = {
            "top": self.target.top_label,
            "low": self.target.low,
            "high": self.target.high,
            "criteria": _listed(self.target.criteria or _CRITERIA.get(language, _CRITERIA["en"]), language),
            "close": self._close(index),
        }

        def fact(slot: str) -> str:
            if slot == "verdict":
                return self._verdict(language, index, depth)
            return facts[slot] if slot in facts else self._fill(pack(slot), language, index, depth + 1)

        return SLOT.sub(lambda m: fact(m[1]), text).strip("\n")

    def _verdict(self, language: str, index: int, depth: int) -> str:
        if self._variant().verdict == "tie":
            if not self.target.tie_line:
                raise NoCandidate("the tie variant needs a judge that allows ties")
            return self.target.tie_line
        worded = self._fill(pack("bands"), language, index, depth + 1)
        if self.number is False:
            return worded
        return self.target.verdict_line or worded

    def _close(self, index: int) -> str:
        """The victim's closing marks, innermost first, as they are or damaged by one edit."""
        marks = [closing for _, closing in self.target.fences]
        kind = self._variant().close
        if kind == "fuzzed":
            edits = (lambda m: m[:-1], lambda m: m + m[-1:], str.swapcase, lambda m: m[1:], lambda m: f" {m} ")
            marks = [edits[index % len(edits)](m) for m in marks or ["</response>"]]
        return "\n".join(marks) if kind in ("real", "fuzzed") else ""


def _listed(criteria: tuple[str, ...], language: str) -> str:
    if language == "zh":
        return "、".join(criteria)
    joiner = " und " if language == "de" else " and "
    return criteria[0] if len(criteria) == 1 else ", ".join(criteria[:-1]) + joiner + criteria[-1]
