"""Slots of a judge prompt: ``{name}`` and ``{{ name }}`` are names to fill, never code to evaluate."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

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
_CODE = re.compile(r"\{%|\{\{[^{}\n]{0,80}[.|(\[][^{}\n]{0,80}\}\}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of literal text, or one slot (``slot`` is its name, ``text`` what stands in the source)."""

    text: str
    slot: str = ""
    line: int = 0


def hidden(text: str) -> tuple[int, str] | None:
    """The first invisible or direction character of a text as (line, its name), or None."""
    for number, line in enumerate(text.split("\n"), 1):
        for char in line:
            if unicodedata.category(char) == "Cf":
                return number, unicodedata.name(char, f"U+{ord(char):04X}")
    return None


def parse(text: str, where: str, renames: Iterable[tuple[str, str]] = (), first: int = 1) -> tuple[Segment, ...]:
    """``text`` as literal stretches and slots.

    ``renames`` are pairs (the user's slot name, ours).  ``where`` names the file for messages and ``first`` the line
    the text starts on.  Raises :class:`TemplateError`, with the line, for an unknown slot, for an expression, and for
    a character that cannot be seen.
    """
    spot = hidden(text)
    if spot is not None:
        raise TemplateError(
            f"{where}, line {first + spot[0] - 1}: the prompt holds {spot[1]}, which cannot be seen; remove it"
        )
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
        slot = names.get(given, given)
        if slot not in NAMES:
            from difflib import get_close_matches

            known = sorted(NAMES | set(names))
            near = get_close_matches(given, known, n=1, cutoff=0.5)
            hint = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(known)}."
            raise TemplateError(f"{where}, line {line}: unknown slot {{{given}}}; {hint}")
        if m.start() > at:
            out.append(Segment(text[at : m.start()], "", first + text.count("\n", 0, at)))
        out.append(Segment(m[0], slot, line))
        at = m.end()
    if at < len(text):
        out.append(Segment(text[at:], "", first + text.count("\n", 0, at)))
    return tuple(out)


def check(segments: Iterable[Segment], protocol: str, where: str, renames: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse a prompt that shows a candidate (or any data) twice or not at all; the message names the line, and slots by
    the user's names for them."""
    theirs = {ours: name for name, ours in renames}
    seen: dict[str, int] = {}
    for s in segments:
        if not s.slot or s.slot in TRUSTED:
            continue
        name = s.slot.removesuffix("_section")
        if name in seen:
            raise TemplateError(
                f"{where}, line {s.line}: slot {{{theirs.get(s.slot, s.slot)}}} is used twice (first on line {seen[name]}); "
                "each text must stand in the prompt exactly once"
            )
        seen[name] = s.line
    shown = set(seen) & CANDIDATES
    wanted = {"pointwise": [{"response"}], "pairwise": [{"response_a", "response_b"}, {"responses"}]}.get(
        protocol, [{"responses"}]
    )
    if shown in wanted:
        return
    missing = sorted(wanted[0] - shown)
    if missing:
        last = max(seen.values(), default=1)
        wants, lacks = (" and ".join("{" + theirs.get(x, x) + "}" for x in xs) for xs in (sorted(wanted[0]), missing))
        raise TemplateError(f"{where}, line {last}: a {protocol} prompt must show {wants}; {lacks} is missing")
    extra = sorted(shown - wanted[0])[0]
    raise TemplateError(
        f"{where}, line {seen[extra]}: slot {{{theirs.get(extra, extra)}}} has no place in a {protocol} prompt"
    )
