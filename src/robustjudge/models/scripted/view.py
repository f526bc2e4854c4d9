"""What a scripted judge can see: the rendered messages, split into trusted text and named untrusted fields.

Nothing else reaches a scripted judge: no attack, payload, case or identity.  What it must answer is read from the
trusted text, as a language model would read it; a candidate cannot change it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from string import ascii_uppercase

from robustjudge.nouns import Message, Text
from robustjudge.spec import digest

_RANGE = re.compile(
    r"(?:between|from)?\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|—|to|and|through|bis|到|至)\s*(-?\d+(?:\.\d+)?)", re.IGNORECASE
)
_CUE = re.compile(r"verdict|score|scale|rate|rating|grade|point|mark|note|punkt|分", re.IGNORECASE)
_CODE = re.compile(r"\b[0-9a-f]{16}\b")
"""The per-request code of a fence mark."""
_JSON_KEY = re.compile(r'"(score|verdict|rating|grade|winner|best|answer|choice|label)"\s*:', re.IGNORECASE)
_LISTED = re.compile(r"<answer> stands for one of: ([^.\n]+)")
_PAIRS = (("FAILURE", "SUCCESS"), ("no", "yes"), ("incorrect", "correct"), ("fail", "pass"))
"""Binary label pairs, the one that an author wants last; a pair counts when both words stand in the trusted text."""


@dataclass(frozen=True)
class View:
    """A rendered prompt as a scripted judge sees it.

    ``candidates`` in the order shown; ``before`` and ``after`` are the trusted texts next to each of them; ``turns`` are
    the turns of an earlier dialogue and the author's answers to a verdict, each between its trusted neighbours;
    ``labels`` are the answers it may give: for one candidate worst first, for several one slot letter each, without
    the ``tie`` label (empty when the prompt offers none).  ``form`` is the verdict line with ``{}`` for the label.
    """

    candidates: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    task: str
    trusted: str
    text: str
    labels: tuple[str, ...]
    tie: str
    form: str
    replica: str
    turns: tuple[tuple[str, str, str], ...] = ()

    @property
    def pointwise(self) -> bool:
        """One candidate is scored; otherwise one of several is chosen."""
        return len(self.candidates) == 1

    @property
    def numeric(self) -> bool:
        """The labels are numbers."""
        return self.pointwise and all(_is_number(x) for x in self.labels)

    @property
    def values(self) -> tuple[float, ...]:
        """The number behind each label: itself, or its place from worst (0) to best (1)."""
        if self.numeric:
            return tuple(float(x) for x in self.labels)
        top = max(len(self.labels) - 1, 1)
        return tuple(i / top for i in range(len(self.labels)))

    def say(self, label: str) -> str:
        """The verdict in the form that the prompt asks for."""
        if self.form.startswith('{"'):
            return self.form.replace("{}", label if _is_number(label) else json.dumps(label))
        return self.form.replace("{}", label)

    def chance(self, seed: int, judge: str) -> float:
        """A number in [0, 1) fixed by seed, judge, rendered text and replica name: the only randomness there is."""
        return int(digest(str(seed), judge, self.replica, self.text)[:13], 16) / 16.0**13


def look(
    messages: tuple[Message, ...],
    replica: str = "clean/0",
    *,
    low: float | None = None,
    high: float | None = None,
    labels: tuple[str, ...] = (),
    tie: str = "",
) -> View:
    """The view of rendered ``messages``; the keywords replace what would be read from the trusted text."""
    parts = [part for m in messages for part in m.parts]
    said = {id(part) for m in messages if m.role == "user" for part in m.parts if part.field.startswith("exchange/")}
    trusted = "\n".join(p.text for p in parts if not p.field)
    found: dict[str, int] = {}
    for i, part in enumerate(parts):
        if part.field.startswith("candidate/"):
            found.setdefault(part.field, i)
    places = [found[f] for f in sorted(found, key=lambda f: (len(f), f))]
    if places:
        candidates = tuple(parts[i].text for i in places)
        before = tuple(_trusted_run(parts[:i][::-1], backwards=True) for i in places)
        after = tuple(_trusted_run(parts[i + 1 :], backwards=False) for i in places)
    else:  # a prompt without candidate fields: whatever the user's turn says is what is judged
        candidates, before, after = (messages[-1].text if messages else "",), ("",), ("",)
    asked, offered, form = _asked(_CODE.sub("", trusted), len(candidates), low, high)
    allowed, offered = labels or asked, tie or offered
    return View(
        candidates=candidates,
        before=before,
        after=after,
        task="\n".join(p.text for p in parts if p.field == "task"),
        trusted=trusted,
        text="\x1e".join(f"{m.role}\x1f{m.text}" for m in messages),
        labels=tuple(x for x in allowed if x != offered),
        tie=offered,
        form=form,
        replica=replica,
        turns=tuple(
            (
                _trusted_run(parts[:i][::-1], backwards=True),
                part.text,
                _trusted_run(parts[i + 1 :], backwards=False),
            )
            for i, part in enumerate(parts)
            if part.field.startswith("history/") or id(part) in said
        ),
    )


def _trusted_run(parts: list[Text], *, backwards: bool) -> str:
    """The trusted text up to the next untrusted part."""
    run: list[str] = []
    for part in parts:
        if part.field:
            break
        run.append(part.text)
    return "".join(run[::-1] if backwards else run)


@lru_cache(maxsize=1024)
def _asked(trusted: str, n: int, low: float | None, high: float | None) -> tuple[tuple[str, ...], str, str]:
    """(labels, tie label, form of the verdict line) that trusted text asks for."""
    labels = _labels(trusted, n, low, high)
    return labels, "TIE" if n > 1 and re.search(r"\bTIE\b", trusted) else "", _form(trusted, labels)


def _labels(trusted: str, n: int, low: float | None, high: float | None) -> tuple[str, ...]:
    if n > 1:
        return tuple(ascii_uppercase[:n])
    if low is None or high is None:
        listed = _LISTED.findall(trusted)
        words = tuple(w.strip() for w in listed[-1].split(",")) if listed else ()
        for pair in _PAIRS:
            if set(words) == set(pair) or (
                not words and all(re.search(rf"\b{w}\b", trusted) for w in pair) and not _range(trusted)
            ):
                return pair
        if words:
            return words
        found = _range(trusted) or (1.0, 10.0)
        low = found[0] if low is None else low
        high = found[1] if high is None else high
    first, last = round(low), round(high)
    return tuple(str(i) for i in range(first, last + 1))


def _range(trusted: str) -> tuple[float, float] | None:
    """The declared score range: right after the last word VERDICT, else on a line that speaks of scoring."""
    at = trusted.rfind("VERDICT")
    nearby = [trusted[at : at + 250]] if at >= 0 else []
    for stretch in chain(nearby, (line for line in trusted.splitlines() if _CUE.search(line))):
        for match in _RANGE.finditer(stretch):
            low, high = float(match[1]), float(match[2])
            if low < high <= 1000:
                return low, high
    return None


def _form(trusted: str, labels: tuple[str, ...]) -> str:
    if "VERDICT:" in trusted:
        return "VERDICT: {}"
    if "[[" in trusted:
        return "[[{}]]"
    key = _JSON_KEY.search(trusted)
    if key:
        return '{"' + key[1] + '": {}}'
    if set(labels) == {"SUCCESS", "FAILURE"}:
        return "{}"
    return "VERDICT: {}"


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(?:\.\d+)?", text))
