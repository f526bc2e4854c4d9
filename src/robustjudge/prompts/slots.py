"""Slots of a judge prompt: ``{name}`` and ``{{ name }}`` are names to fill, never code to evaluate."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from robustjudge.errors import TemplateError

TRUSTED = ("criteria", "bands", "verdict", "labels", "low", "high", "count", "definition", "task_name")
"""Slots filled from the template, the scale and the task kind: our text or the user's, never a candidate's."""

UNTRUSTED = (
    *("task", "response", "response_a", "response_b", "responses"),
    *("reference", "history", "reference_section", "history_section"),
)
"""Slots filled with data.  A ``_section`` slot brings its own heading and vanishes when there is nothing to show."""

CANDIDATES = frozenset({"response", "response_a", "response_b", "responses"})
NAMES = frozenset(TRUSTED) | frozenset(UNTRUSTED)

_SLOT = re.compile(r"\{\{[ \t]{0,8}([A-Za-z_]\w{0,63})[ \t]{0,8}\}\}|(?<!\{)\{([A-Za-z_]\w{0,63})\}(?!\})")
_FORMAT = re.compile(r"\{\{|\}\}|\{([^{}\n]*)\}|[{}]")
"""What str.format takes apart: a doubled brace, a field, a brace that stands alone."""
SYNTAXES = ("", "format", "literal")
"""How a prompt's braces are read, see :func:`parse`."""
_NAMED = re.compile(r"[ \t]*[A-Za-z_]")
"""A name after a doubled brace: a slot or an expression of a template language, which :func:`parse` tells apart."""
_CODE = re.compile(r"\{%|\{\{[^{}\n]{0,80}[.|(\[][^{}\n]{0,80}\}\}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of literal text, or one slot (``slot`` is its name, ``text`` what stands in the source); ``line`` counts
    within the text that ``where`` names."""

    text: str
    slot: str = ""
    line: int = 0
    where: str = field(default="", compare=False)


def hidden(text: str) -> tuple[int, str] | None:
    """The first invisible or direction character of a text as (line, its name), or None."""
    for number, line in enumerate(text.split("\n"), 1):
        for char in line:
            if unicodedata.category(char) == "Cf":
                return number, unicodedata.name(char, f"U+{ord(char):04X}")
    return None


def parse(
    text: str, where: str, renames: Iterable[tuple[str, str]] = (), first: int = 1, syntax: str = ""
) -> tuple[Segment, ...]:
    """``text`` as literal stretches and slots.

    ``renames`` are pairs (the user's slot name, ours).  ``where`` names the file for messages and ``first`` the line
    the text starts on.  With ``syntax`` ``format`` the text is read as ``str.format`` reads it: ``{name}`` is a slot,
    ``{{`` and ``}}`` are one brace; else both ``{name}`` and ``{{ name }}`` are slots, and braces that are no slot stay
    as they stand.  Raises :class:`TemplateError`, with the line, for an unknown slot, for an expression, and for a
    character that cannot be seen.
    """
    spot = hidden(text)
    if spot is not None:
        raise TemplateError(
            f"{where}, line {first + spot[0] - 1}: the prompt holds {spot[1]}, which cannot be seen; remove it"
        )
    if syntax == "format":
        return _formatted(text, where, dict(renames), first)
    code = _CODE.search(text)
    if code is not None:
        line = first + text.count("\n", 0, code.start())
        raise TemplateError(
            f"{where}, line {line}: {code[0]!r} is an expression; slots are plain names and nothing is evaluated"
        )
    names = dict(renames)
    out: list[Segment] = []
    at = 0
    for m in _SLOT.finditer(text):
        line = first + text.count("\n", 0, m.start())
        given = m[1] or m[2]
        slot = _slot(given, names, f"{where}, line {line}", "" if m[2] else _FORMATTED)
        if m.start() > at:
            out.append(Segment(text[at : m.start()], "", first + text.count("\n", 0, at)))
        out.append(Segment(m[0], slot, line, where))
        at = m.end()
    if at < len(text):
        out.append(Segment(text[at:], "", first + text.count("\n", 0, at)))
    return tuple(out)


_FORMATTED = " Where a prompt is filled by str.format, state syntax: format; a doubled brace is one brace then."


def _slot(given: str, names: dict[str, str], where: str, more: str = "") -> str:
    """Our name of a slot."""
    slot = names.get(given, given)
    if slot in NAMES:
        return slot
    from difflib import get_close_matches

    known = sorted(NAMES | set(names))
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    hint = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(known)}."
    raise TemplateError(f"{where}: unknown slot {{{given}}}; {hint}{more}")


def _formatted(text: str, where: str, names: dict[str, str], first: int) -> tuple[Segment, ...]:
    """``text`` taken apart as by ``str.format``."""
    out: list[Segment] = []
    literal, started, at = "", first, 0
    for m in _FORMAT.finditer(text):
        line = first + text.count("\n", 0, m.start())
        literal += text[at : m.start()] + (m[0][0] if len(m[0]) == 2 and m[1] is None else "")
        at = m.end()
        if len(m[0]) == 2 and m[1] is None:
            continue
        if m[1] is None:
            raise TemplateError(
                f"{where}, line {line}: a single {m[0]!r}; syntax format reads a prompt as str.format does, where a brace "
                f"of the text is written {m[0] * 2!r}"
            )
        if not (m[1].isidentifier() and m[1].isascii()):
            raise TemplateError(
                f"{where}, line {line}: {m[0]!r} is an expression; slots are plain names and nothing is evaluated"
            )
        slot = _slot(m[1], names, f"{where}, line {line}")
        if literal:
            out.append(Segment(literal, "", started))
        out.append(Segment(m[0], slot, line, where))
        literal, started = "", line
    literal += text[at:]
    return (*out, Segment(literal, "", started)) if literal else tuple(out)


def doubled(texts: Iterable[str]) -> tuple[int, int, str] | None:
    """Where the texts of one prompt are read in two ways: all of them are what ``str.format`` takes, with slots in single
    braces, and a doubled brace among them is no slot here.  (number of the text, line, what stands there), or None."""
    found: tuple[int, int, str] | None = None
    slots = False
    for number, text in enumerate(texts):
        here = {m.start() for m in _SLOT.finditer(text)}
        for m in _FORMAT.finditer(text):
            if m[1] is not None:
                if not (m[1].isidentifier() and m[1].isascii()):
                    return None
                slots = True
            elif len(m[0]) == 1:
                return None
            elif found is None and m[0] == "{{" and m.start() not in here and not _NAMED.match(text, m.end()):
                line = text.count("\n", 0, m.start())
                found = number, line + 1, text[m.start() :].split("\n")[0][:40].strip()
    return found if slots else None


def check(segments: Iterable[Segment], protocol: str, where: str, renames: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse a prompt that shows a candidate (or any data) twice or not at all; the message names the line, and slots by
    the user's names for them."""
    theirs = {ours: name for name, ours in renames}
    seen: dict[str, Segment] = {}
    for s in segments:
        if not s.slot or s.slot in TRUSTED:
            continue
        name = s.slot.removesuffix("_section")
        if name in seen:
            first = seen[name]
            raise TemplateError(
                f"{s.where or where}, line {s.line}: slot {{{theirs.get(s.slot, s.slot)}}} is used twice (first on"
                f" {'' if first.where == s.where else f'{first.where}, '}line {first.line}); each text must stand in the"
                " prompt exactly once"
            )
        seen[name] = s
    shown = set(seen) & CANDIDATES
    wanted = {"pointwise": [{"response"}], "pairwise": [{"response_a", "response_b"}, {"responses"}]}.get(
        protocol, [{"responses"}]
    )
    if shown in wanted:
        return
    missing = sorted(wanted[0] - shown)
    if missing:
        last = max((s.line for s in seen.values()), default=1)
        wants, lacks = (" and ".join("{" + theirs.get(x, x) + "}" for x in xs) for xs in (sorted(wanted[0]), missing))
        raise TemplateError(f"{where}, line {last}: a {protocol} prompt must show {wants}; {lacks} is missing")
    extra = sorted(shown - wanted[0])[0]
    place = f"{seen[extra].where or where}, line {seen[extra].line}"
    raise TemplateError(f"{place}: slot {{{theirs.get(extra, extra)}}} has no place in a {protocol} prompt")
