"""The strict reader: one verdict on the scale, or the status that says why there is none.

Contract: channel first, then clean, then the forms that count, then rule 5 where several verdicts stand.  A pure
function of its arguments, linear in the length of the reply; it never guesses, clamps, rescales or defaults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from robustjudge import door
from robustjudge.nouns import Status
from robustjudge.scales import jsonform
from robustjudge.scales.clean import Tracked, clean, unmark
from robustjudge.scales.hits import MASK, Hit, Page, find
from robustjudge.scales.refusal import declines
from robustjudge.scales.scale import Scale

READER_VERSION = "1"

LENGTH_STOPS = frozenset({"length", "max_tokens", "max_output_tokens"})
FILTER_STOPS = frozenset({"content_filter", "safety", "refusal"})
SHORT = 4096
"""Characters up to which a reply's reading is remembered."""
_FENCE = re.compile(r"```|^~~~", re.MULTILINE)
_FENCE_WORD = re.compile(r"(?:```|~~~)[ \t]{0,2}(?:json[5c]?|text|txt|markdown|md|plaintext)?", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """What a reply says: ``value`` (scale units, or a label as declared) only with status ``ok``.

    ``raw`` is the reply after the one mapping at the door (``text_mapped`` says whether that changed it), ``span`` the
    characters of it the verdict was read from, ``form`` the rule that matched, ``parts`` the declared sub-scores.
    """

    status: Status
    value: float | str | None = None
    raw: str = ""
    reason: str = ""
    span: tuple[int, int] | None = None
    form: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    text_mapped: bool = False


def read(reply: str | None, scale: Scale, finish: str = "stop", refusal: str = "") -> Reading:
    """Read ``reply`` on ``scale``; ``finish`` is the provider's finish reason, ``refusal`` its refusal field."""
    given = reply or ""
    raw = door.safe(given)
    known = _reread if len(raw) <= SHORT else _read
    reading = known(raw, reply is None, scale, finish.casefold(), refusal)
    return reading if raw is given else _flagged(reading)


def _flagged(r: Reading) -> Reading:
    return Reading(r.status, r.value, r.raw, r.reason, r.span, r.form, r.parts, True)


def _read(raw: str, null: bool, scale: Scale, finish: str, refusal: str) -> Reading:
    if refusal:
        return Reading("refused", raw=raw, reason="refusal field set")
    if finish in FILTER_STOPS:
        return Reading("refused", raw=raw, reason="content filter")
    cut = finish in LENGTH_STOPS
    none: Status = "truncated" if cut else "unparsed"
    if not raw.strip():
        return Reading(none, raw=raw, reason="no content" if null else "empty reply")

    tracked, open_block = clean(raw)
    if open_block:
        return Reading("truncated", raw=raw, reason="thinking block never closes")
    try:
        found = list(jsonform.objects(tracked.text))
    except jsonform.Unclosed:
        return Reading("truncated", raw=raw, reason="JSON object never closes")
    tracked = tracked.edit([(f.start, f.end, MASK) for f in found]) if found else tracked
    tracked, open_fence = _unfenced(tracked)
    if open_fence:
        return Reading("truncated", raw=raw, reason="fence never closes")
    tracked = unmark(tracked)

    page = Page(tracked.text, scale)
    hits = list(find(page)) + list(_json_hits(page, [f.content for f in found]))
    hits.sort(key=lambda h: (h.start, h.end))
    if scale.criteria and scale.overall in ("mean", "min"):
        return _composed(page, [f.content for f in found], raw, none)

    winner, reason = _decide(hits)
    if winner is None:
        if not hits and declines(tracked.text, page.quotes):
            return Reading("refused", raw=raw, reason="refusal wording")
        return Reading(none, raw=raw, reason=reason)
    if cut and winner.form not in ("json", "tag") and winner.end >= page.last_end:
        return Reading("truncated", raw=raw, reason="the verdict is the last thing before the length stop")
    parts: tuple[tuple[str, float], ...] = ()
    if scale.criteria:
        scores = _scores(page, [f.content for f in found])
        parts = tuple((c, s) for c in scale.criteria if (s := scores.get(c)) is not None)
    span = _span(tracked, found, winner)
    return Reading("ok", winner.value, raw, "", span, winner.form, parts)


_reread = lru_cache(maxsize=4096)(_read)
"""Remembers, because every attack on a case reads the same clean reply again."""


def _span(tracked: Tracked, found: list[jsonform.Found], hit: Hit) -> tuple[int, int]:
    start, end = tracked.span(hit.start, hit.end)
    if hit.form != "json" or tracked.places is None:
        return start, end
    later = tracked.places[hit.end] if hit.end < len(tracked.places) else None
    which = tracked.text.count(MASK, 0, hit.start)
    return start, later if later is not None else start + found[which].end - found[which].start


def _unfenced(tracked: Tracked) -> tuple[Tracked, bool]:
    """Without fence marks; says whether the last one opens something that never closes."""
    marks = list(_FENCE.finditer(tracked.text))
    if not marks:
        return tracked, False
    if len(marks) % 2 and tracked.text[marks[-1].end() :].strip():
        return tracked, True
    edits = []
    for i, m in enumerate(marks):
        word = _FENCE_WORD.match(tracked.text, m.start()) if i % 2 == 0 else None
        edits.append((m.start(), word.end() if word else m.end(), ""))
    return tracked.edit(edits), False


def _json_hits(page: Page, contents: list[jsonform.Pairs | None]) -> list[Hit]:
    out: list[Hit] = []
    at = -1
    for content in contents:
        at = page.text.find(MASK, at + 1)
        if content is None:
            continue
        present, value = jsonform.verdict(content, page.scale)
        if page.text[max(0, at - 8) : at].rstrip().endswith("[") and page.text[at + 1 : at + 9].lstrip()[:1] in (
            "]",
            ",",
        ):
            value = None  # a list of objects is no verdict
        if present:
            hit = page.hit(at, at + 1, value, "json")
            out.append(hit)
    return out


def _decide(hits: list[Hit]) -> tuple[Hit | None, str]:
    """Rule 5: one verdict, or the last of several if it closes the reply as the judge's own."""
    if not hits:
        return None, "no verdict found"
    own = [h for h in hits if not h.quoted]
    if not own:
        return None, "the only verdict is a quotation"
    if len({h.criterion for h in hits}) > 1 and all(h.criterion for h in hits):
        return None, "several criteria and no overall"
    first = hits[0].value
    if first is not None and all(h.value == first for h in hits):
        return own[-1], ""
    if all(h.value is None for h in hits):
        return None, "the verdict is not on the scale"
    last = hits[-1]
    objects = [h.value for h in hits if h.form == "json"]
    if last.form == "json" and any(v != last.value for v in objects):
        return None, "JSON objects that disagree"
    if last.closing and last.value is not None:
        return last, ""
    return None, "several different verdicts"


_SUB = (
    r"^[ \t]{{0,4}}(?:[-•*+][ \t]{{1,3}}|\d{{1,2}}[.)][ \t]{{1,3}})?(?:{})"
    r"(?:[ \t](?:score|rating))?[ \t]{{0,3}}[:=][ \t]{{0,3}}"
)


def _scores(page: Page, contents: list[jsonform.Pairs | None]) -> dict[str, float | None]:
    """Sub-scores by criterion, from JSON objects or from lines; None where two disagree or one is off the scale."""
    scores: dict[str, float | None] = {}
    scale = page.scale

    def put(name: str, value: float | None) -> None:
        scores[name] = value if name not in scores or scores[name] == value else None

    for content in contents:
        if content is not None:
            for name, value in jsonform.sub_scores(content, scale).items():
                put(name, value)
    pattern = re.compile(_SUB.format("|".join(re.escape(c) for c in scale.criteria)), re.IGNORECASE | re.MULTILINE)
    for m in pattern.finditer(page.text):
        named = next((c for c in scale.criteria if m[0].casefold().find(c.casefold()) >= 0), None)
        got = page.value_at(m.end(), strict=False)
        if named is not None:
            put(named, got[1] if got is not None and isinstance(got[1], float) else None)
    return scores


def _composed(page: Page, contents: list[jsonform.Pairs | None], raw: str, none: Status) -> Reading:
    """A verdict that is the mean or the minimum of all declared criteria."""
    scale = page.scale
    scores = _scores(page, contents)
    if not scores and declines(page.text, page.quotes):
        return Reading("refused", raw=raw, reason="refusal wording")
    missing = [c for c in scale.criteria if scores.get(c) is None]
    if missing:
        return Reading(none, raw=raw, reason=f"no single score for {', '.join(missing)}")
    values = [float(scores[c] or 0.0) for c in scale.criteria]
    value = min(values) if scale.overall == "min" else sum(values) / len(values)
    return Reading(
        "ok", value, raw, "", None, f"criteria_{scale.overall}", tuple(zip(scale.criteria, values, strict=True))
    )
