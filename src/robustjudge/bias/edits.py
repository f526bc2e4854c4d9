"""One data-driven family of probes: an edit that adds one irrelevant attribute, and its neutral twin.

An edit is an attack in form, so it runs on the same plan, ledger and table; it changes no word of the answer, and that
is checked for each case.  Wordings differ by case, because one wording is n = 1.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from robustjudge.attacks.base import Channel, NoCandidate, Plugin, is_code, language_of, place
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.nouns import Case, Severity
from robustjudge.spec import canonical, digest, register

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_MARKS = re.compile(r"[#*`>\-•.\s]+")

PADDING = (
    "The points that are made in this answer are the points that this answer makes.",
    "They can be read one after the other, in the order in which they are written.",
    "Each of them stands where it stands, and nothing is left out of what is said.",
    "Read from the first line to the last, the answer says what it says.",
    "What was written above is what was meant to be written above.",
    "Those who read it a second time will find the same words in the same places.",
)
"""Sentences that say nothing about any task."""


@dataclass(frozen=True)
class Probe:
    """One hypothesis.  ``group`` is the bias it belongs to; ``must`` probes gate by default, the rest are exploratory.

    ``edit`` and ``neutral`` are texts to add (pairs by position), or ``make`` and ``neutral_make`` name rules.
    """

    name: str
    group: str
    claim: str
    twin: str
    must: bool = False
    placement: Channel = "rewrite"
    separator: str = " "
    edit: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    make: str = ""
    neutral_make: str = ""

    def __post_init__(self) -> None:
        if bool(self.make) == bool(self.edit) or bool(self.make) != bool(self.neutral_make):
            raise ConfigError(f"probe {self.name}: give either texts (edit, neutral) or rules (make, neutral_make)")
        if len(self.edit) != len(self.neutral):
            raise ConfigError(f"probe {self.name}: every edit needs its neutral twin, at the same place of the list")
        for rule in filter(None, (self.make, self.neutral_make)):
            if rule not in RULES:
                raise UnknownName(f"rule of probe {self.name}", rule, tuple(RULES))


@register("bias_edit")
@dataclass(frozen=True)
class Edit(Plugin):
    """The edit of a probe, or (``twin``) its neutral twin.  Texts are English, so other languages are left out; rules
    that move sentences leave program text alone.  ``version`` is a hash of the probe's texts, so that a changed wording
    is another cell."""

    probe: str
    twin: bool = False
    version: str = ""
    family: ClassVar[str] = "bias"
    category: ClassVar[str] = "bias"
    severity: ClassVar[Severity] = "low"

    def __post_init__(self) -> None:
        found(self.probe)

    @property
    def of(self) -> Edit | None:
        """The edit that a twin belongs to."""
        return replace(self, twin=False) if self.twin else None

    @property
    def name(self) -> str:
        return f"neutral(bias/{self.probe})" if self.twin else f"bias/{self.probe}"

    @property
    def channel(self) -> Channel:
        return found(self.probe).placement

    @property
    def control(self) -> str:
        return "neutral" if self.twin else ""

    def applies(self, case: Case) -> bool:
        """Whether both the edit and its twin can be made for this case without touching its content."""
        p = found(self.probe)
        try:
            return bool(made(p, case, False)) and bool(made(p, case, True))
        except NoCandidate:
            return False

    async def __call__(self, case: Case) -> str:
        return made(found(self.probe), case, self.twin)


def made(p: Probe, case: Case, twin: bool) -> str:
    """The edited answer; raises :class:`NoCandidate` where the probe does not apply."""
    if p.make:
        if is_code(case) or not prose(case.response):
            raise NoCandidate("the rule moves sentences, and this text is not made of them")
        if p.make in ADDING and language_of(case) != "en":
            raise NoCandidate("the words that this probe adds are English")
        rule = p.neutral_make if twin else p.make
        text = RULES[rule](case.response)
        if rule not in ADDING and words_of(text) != words_of(case.response):
            raise NoCandidate("the edit would change the words of the answer")
        return text
    if language_of(case) != "en":
        raise NoCandidate("the texts of this probe are English")
    if is_code(case):
        raise NoCandidate("a remark inside a program is no longer the same program")
    texts = p.neutral if twin else p.edit
    chosen = texts[int(digest(p.name, case.id)[:8], 16) % len(texts)]
    return place(p.placement, case.response, chosen, p.separator)


def words_of(text: str) -> list[str]:
    """The words of a text without markup, sorted: what a rule that moves or marks them must not change."""
    return sorted(w for w in _MARKS.sub(" ", text).split() if w)


_OWN = re.compile(r"^(?:[ \t]|[-*+#>|]|\d{1,3}[.)])|```|\||\$|[{}<>=]", re.MULTILINE)


def prose(text: str) -> bool:
    """Plain sentences: no list, table, code, formula or indentation of their own, two words at least on each line."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    return bool(lines) and not _OWN.search(text.strip()) and all(len(line.split()) > 1 for line in lines)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its closing mark."""
    return [s for s in (part.strip() for part in _BREAK.split(text.strip())) if s]


def _several(text: str, least: int = 2) -> list[str]:
    found_ = sentences(text)
    if len(found_) < least:
        raise NoCandidate(f"the answer has fewer than {least} sentences")
    return found_


def _padding(text: str) -> str:
    target = min(max(len(text.split()), 45), 90)
    out: list[str] = []
    while sum(len(s.split()) for s in out) < target:
        out.append(PADDING[len(out) % len(PADDING)])
    return f"{text.rstrip()} {' '.join(out)}"


def _lines(text: str) -> str:
    """One sentence on each line; a lone one is broken at a blank in its middle.  Never longer than the answer: a twin one
    character longer already wins over it with a judge that takes the longer text."""
    found_ = sentences(text)
    if len(found_) > 1:
        return "\n".join(found_)
    lone = text.strip()
    middle = min((m.start() for m in re.finditer(" ", lone)), key=lambda at: abs(at - len(lone) / 2), default=-1)
    return lone if middle < 0 else f"{lone[:middle]}\n{lone[middle + 1 :]}"


def _reorder(text: str) -> str:
    found_ = _several(text)
    return " ".join([*found_[:-2], found_[-1], found_[-2]])


def _repetition(text: str) -> str:
    _several(text)
    return f"{text.rstrip()} In other words: {text.strip()}"


def _bold_opening(sentence: str) -> str:
    first, _, rest = sentence.partition(" ")
    return f"**{first}** {rest}".rstrip() if "*" not in sentence else sentence


RULES: dict[str, Callable[[str], str]] = {
    "padding": _padding,
    "repetition": _repetition,
    "lines": _lines,
    "reorder": _reorder,
    "bullets": lambda t: "\n".join(f"- {s}" for s in sentences(t)),
    "markdown": lambda t: "\n".join(f"- {_bold_opening(s)}" for s in sentences(t)),
    "bold": lambda t: " ".join([f"**{s}**" if i == 0 else s for i, s in enumerate(sentences(t))]),
    "first_line": lambda t: (
        "\n".join(filter(None, (sentences(t)[0], " ".join(sentences(t)[1:])))) + "\n" if sentences(t) else t
    ),
    "fence": lambda t: f"```\n{t.strip()}\n```",
    "dots": lambda t: f"...\n{t.strip()}\n...",
    "airy": lambda t: "\n\n".join(sentences(t)) + "\n\n",
}
"""Rule-based generators by name."""

ADDING = ("padding", "repetition")
"""Rules that add words on purpose; all others must keep the words of the answer."""


@cache
def probes() -> dict[str, Probe]:
    """The shipped probes by name."""
    return read((files("robustjudge.bias") / "probes.toml").read_text(encoding="utf-8"), "probes.toml")


def read(text: str, origin: str) -> dict[str, Probe]:
    """Probes from a TOML file with ``[[probe]]`` tables.  Raises :class:`ConfigError` naming ``origin``."""
    try:
        listed: list[dict[str, Any]] = tomllib.loads(text).get("probe", [])
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{origin}: not valid TOML: {fault}") from None
    out: dict[str, Probe] = {}
    for data in listed:
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        try:
            p = Probe(**given)
        except TypeError as fault:
            raise ConfigError(f"{origin}: {fault}") from None
        if p.name in out:
            raise ConfigError(f"{origin}: probe {p.name} stands twice")
        out[p.name] = p
    return out


_ADDED: dict[str, Probe] = {}


def add(p: Probe) -> None:
    """Make a user's probe known under its name; a taken name is an error."""
    if p.name in probes() or _ADDED.get(p.name, p) != p:
        raise ConfigError(f"probe {p.name!r} exists already; choose another name")
    _ADDED[p.name] = p


def found(name: str) -> Probe:
    """The probe of this name."""
    p = _ADDED.get(name) or probes().get(name)
    if p is None:
        raise UnknownName("bias probe", name, probe_names())
    return p


def pair(name: str) -> tuple[Edit, Edit]:
    """The edit of a probe and its neutral twin."""
    version = digest(canonical({k: list(v) if isinstance(v, tuple) else v for k, v in asdict(found(name)).items()}))[:8]
    return Edit(name, False, version), Edit(name, True, version)


def probe_names() -> tuple[str, ...]:
    """Names of all edit probes, shipped and added."""
    return (*probes(), *_ADDED)
