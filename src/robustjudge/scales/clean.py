"""Rule 2 of the reader: bring a reply to plain text, keeping for every character its place in the raw reply.

Every pattern has bounded repetition, so that the whole step is linear in the length of the reply.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

_UNUSUAL = re.compile(r"[^\t\n -~]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_CONTROL = re.compile(
    r"<\|(?:im_start|start_header_id)\|>[ \t]{0,4}(?:assistant|system|user)?"
    r"|<\|[A-Za-z0-9_ ]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad)>"
)
_BOLD = re.compile(r"(?<!\w)\*+|\*+(?!\w)|(?<![A-Za-z0-9_])_+(?=\S)|(?<=\S)_+(?![A-Za-z0-9_])")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}(?=[ \t])", re.MULTILINE)
_THINK = re.compile(r"<(/?)(think|thinking|thought|reasoning|scratchpad)>|\[(/?)(THINK)\]", re.IGNORECASE)
_NEWLINES = {"\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"}


@dataclass(frozen=True, slots=True)
class Tracked:
    """A text and, for each character, its offset in the raw reply (None: they are the same)."""

    text: str
    places: array[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The raw span of ``text[start:end]``."""
        if self.places is None or start >= end:
            return start, end
        return self.places[start], self.places[end - 1] + 1

    def sub(self, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> Tracked:
        """Replace every match."""
        edits = [(m.start(), m.end(), new(m)) for m in pattern.finditer(self.text)]
        return self.edit(edits) if edits else self

    def edit(self, edits: Iterable[tuple[int, int, str]]) -> Tracked:
        """Replace disjoint spans, given in order."""
        old = self.places if self.places is not None else array("L", range(len(self.text)))
        pieces: list[str] = []
        places = array("L")
        at = 0
        for start, end, new in edits:
            pieces.append(self.text[at:start])
            places += old[at:start]
            if new:
                pieces.append(new)
                places += array("L", [old[start]] * len(new))
            at = end
        pieces.append(self.text[at:])
        places += old[at:]
        return Tracked("".join(pieces), places)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """NFKC of one character, its decimal digit as 0-9, nothing if it is invisible."""
    if char in _NEWLINES:
        return "\n"
    if char == "\u2044":
        return "/"
    out = unicodedata.normalize("NFKC", char)
    kept = []
    for c in out:
        category = unicodedata.category(c)
        if category == "Nd":
            kept.append(str(unicodedata.decimal(c)))
        elif category == "Cf" or c in "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0" or "\ufe00" <= c <= "\ufe0f":
            continue
        elif category == "Zs":
            kept.append(" ")
        elif category == "Cc" and c not in "\n\t":
            continue
        else:
            kept.append(c)
    return "".join(kept)


def _decoded(entity: str, bare: bool) -> str:
    text = html.unescape(entity)
    return text if bare else {'"': "'", "\\": "/"}.get(text, text)


def _normal(tracked: Tracked) -> Tracked:
    """Per-character normalisation: unlike NFKC of the whole it is linear for any run of combining marks."""
    text = tracked.text
    if not _UNUSUAL.search(text):
        return tracked
    table = {c: new for c in set(text) if (new := _plain(c)) != c}
    if '"' in text:  # a full-width quote inside a JSON string must not end it
        table.update({c: new for c, new in (("\uff02", "'"), ("\uff3c", "/")) if c in table})
    if not table:
        return tracked
    out = text.translate({ord(c): new for c, new in table.items()})
    old = tracked.places if tracked.places is not None else range(len(text))
    if all(len(new) == 1 for new in table.values()):
        return Tracked(out, tracked.places)
    places = array("L")
    for place, char in zip(old, text, strict=True):
        width = len(table.get(char, char))
        if width == 1:
            places.append(place)
        elif width:
            places.extend([place] * width)
    return Tracked(out, places)


def _thinking(tracked: Tracked) -> tuple[Tracked, bool]:
    """Drop closed thinking blocks, and all before a lone closing tag; says whether a block stays open.

    A tag inside quotation marks on its own line is a quotation of a tag and changes nothing.
    """
    text = tracked.text
    depth, opened, keep_from = 0, 0, 0
    edits: list[tuple[int, int, str]] = []
    for m in _THINK.finditer(text):
        closing = bool(m[1] or m[3])
        if _quoted_tag(text, m.start(), m.end()):
            continue
        if not closing:
            if depth == 0:
                opened = m.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                edits.append((opened, m.end(), "\n"))
        else:
            edits = []
            keep_from = m.end()
    if keep_from:
        edits = [(0, keep_from, ""), *(e for e in edits if e[0] >= keep_from)]
    return (tracked.edit(edits) if edits else tracked), depth > 0


def _quoted_tag(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if before and before in "\"'`“‘«「" and after and after in "\"'`”’»」":
        return True
    if before == " " and text[start - 2 : start - 1].isalnum() and after.strip():
        return True  # "... ends with </think>Rating: 10": named in mid-sentence
    line = text[max(text.rfind("\n", max(0, start - 200), start) + 1, start - 200) : start]
    return line.lstrip().startswith(">") or line.count('"') % 2 == 1 or line.count("`") % 2 == 1


def clean(raw: str) -> tuple[Tracked, bool]:
    """The reply as plain text without thinking, marks, entities and invisible characters; and whether a
    thinking block never closed."""
    tracked = _normal(Tracked(raw))
    if "&" in tracked.text:
        bare = '"' not in tracked.text  # an escaped quote inside a JSON string must not end it
        tracked = tracked.sub(_ENTITY, lambda m: _decoded(m[0], bare))
        tracked = _normal(tracked)
    tracked, open_block = _thinking(tracked)
    if open_block:
        return tracked, True
    if "<" in tracked.text or "[" in tracked.text:
        tracked = tracked.sub(_CONTROL, lambda _: "")
    return tracked, False


def unmark(tracked: Tracked) -> Tracked:
    """Without bold and heading marks (done after JSON objects were taken out, whose strings stay as they are)."""
    if "*" in tracked.text or "_" in tracked.text:
        tracked = tracked.sub(_BOLD, lambda _: "")
    return tracked.sub(_HEADING, lambda _: "") if "#" in tracked.text else tracked
