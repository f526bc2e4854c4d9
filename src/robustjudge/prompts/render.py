"""Fill a judge prompt in one pass: untrusted texts become parts of their own, fenced, and stay data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from robustjudge import spec
from robustjudge.errors import TemplateError
from robustjudge.nouns import Message, Slate, Text
from robustjudge.prompts.criteria import bands, criteria, task_name
from robustjudge.prompts.slots import CANDIDATES
from robustjudge.prompts.template import Form
from robustjudge.scales.scale import Scale, plain

_CONTROL = re.compile(
    r"<(?=\|[A-Za-z0-9_ ]{1,40}\|>)|<(?=/?s>|/?think>|(?:start|end)_of_turn>|(?:bos|eos|pad)>|</?SYS>>)|\[(?=/?INST\])"
)


def render(form: Form, slate: Slate) -> tuple[Message, ...]:
    """The messages of ``form`` for ``slate``; same inputs, same bytes.

    Every untrusted text is a :class:`Text` of its own with its field name (``task``, ``candidate/<slot>``,
    ``reference``, ``history/<i>``), present exactly once; slot syntax inside it is never looked at.  In the ``nonce``
    fence the look-alikes of its marks and the control tokens of chat formats get a visible backslash; ``plain`` leaves
    all as it is.  Marks of ``slate.frame`` are escaped in data in both, unless the frame says not to.  Raises
    :class:`TemplateError` where the slate does not fit the form.
    """
    _fits(form, slate)
    fill = _Filler(form, slate)
    data = form.untrusted
    first = data.index(True)
    last = len(data) - 1 - data[::-1].index(True)
    out: list[Message] = []
    for i, segments in enumerate(form.segments):
        if not data[i] and not first <= i <= last:
            out.append(fill.message(i))
            continue
        parts: list[Text] = []
        if i == first:
            parts += [Text(p + "\n\n") for p in slate.frame.before]
            if fill.orphans:
                parts += [*fill.history(headed=True)]
        for segment in segments:
            parts += fill.slot(segment.slot) if segment.slot else (Text(segment.text),)
        if i == last and slate.frame.after:
            end = max(j for j, t in enumerate(parts) if t.field)
            tail = parts[end + 1 :]
            close = 1 if tail and fill.fenced else 0
            notes = [Text("\n\n" + p) for p in slate.frame.after]
            parts = parts[: end + 1 + close] + notes + ([Text("\n")] if tail[close:] else []) + tail[close:]
        out.append(Message(form.messages[i].role, _joined(parts)))
    if form.appended:
        out = _append(out, form, options(form, slate))
    return tuple(out)


def _fits(form: Form, slate: Slate) -> None:
    n = len(slate.candidates)
    if len(slate.index) != n:
        raise TemplateError(f"the slate holds {n} candidates and {len(slate.index)} identities")
    wanted = {"pointwise": n == 1, "pairwise": n == 2}.get(form.protocol, n >= 2)
    if not wanted:
        raise TemplateError(f"a {form.protocol} prompt cannot show {n} candidates")


class _Filler:
    """The text of every slot for one slate."""

    def __init__(self, form: Form, slate: Slate) -> None:
        self.form, self.slate = form, slate
        self.orphans = bool(slate.history) and not form.shows_history
        self.fenced = form.fence == "nonce" or bool(slate.frame.fences)
        escaped = slate.frame.fences if slate.frame.escape else ()
        self.marks = tuple(m for pair in escaped for m in pair if m)
        turns = _turns(slate)
        # the shared part of a prompt keeps its code when only the candidates change, so that its prefix is reused
        self.shared_code = _shared(slate)[:16]
        self.code = spec.digest("slate", slate.replica, slate.task, slate.reference, *slate.candidates, *turns)[:16]

    def slot(self, name: str) -> tuple[Text, ...]:
        slate = self.slate
        if name == "task":
            return self._field(slate.task, "task", "TASK", self.shared_code)
        if name in CANDIDATES:
            return tuple(self._candidates(name))
        if name in ("reference", "reference_section"):
            if not slate.reference:
                return ()
            shown = self._field(slate.reference, "reference", "REFERENCE", self.shared_code)
            return (Text("Reference answer:\n"), *shown, Text("\n\n")) if name != "reference" else shown
        if name in ("history", "history_section"):
            return tuple(self.history(headed=name != "history")) if slate.history else ()
        return (Text(self._trusted(name)),)

    def message(self, i: int) -> Message:
        """A message without untrusted text, which is the same for all slates of a kind."""
        key = (i, self.slate.kind, len(self.slate.candidates), options(self.form, self.slate))
        if key not in self.form.memo:
            parts = [t for s in self.form.segments[i] for t in (self.slot(s.slot) if s.slot else (Text(s.text),))]
            self.form.memo[key] = Message(self.form.messages[i].role, _joined(parts))
        made: Message = self.form.memo[key]
        return made

    def history(self, headed: bool) -> Iterator[Text]:
        if headed:
            yield Text("Conversation so far:\n")
        for i, turn in enumerate(self.slate.history):
            yield Text(f"{'' if i == 0 else chr(10)}{'assistant' if turn.role == 'assistant' else 'user'}:\n")
            yield from self._field(turn.text, f"history/{i}", f"TURN {i + 1}", self.shared_code)
        if headed:
            yield Text("\n\n")

    def _candidates(self, name: str) -> Iterator[Text]:
        texts = self.slate.candidates
        if name == "response":
            yield from self._field(texts[0], "candidate/0", "RESPONSE", self.code)
        elif name == "responses":
            for i, text in enumerate(texts):
                letter = self._letter(i)
                yield Text(f"{'' if i == 0 else chr(10) * 2}Response {letter}:\n")
                yield from self._field(text, f"candidate/{i}", f"RESPONSE {letter}", self.code)
        else:
            i = 0 if name == "response_a" else 1
            yield from self._field(texts[i], f"candidate/{i}", f"RESPONSE {self._letter(i)}", self.code)

    def _letter(self, i: int) -> str:
        rivals = self.form.scale.rivals
        return rivals[i] if len(rivals) == len(self.slate.candidates) else chr(ord("A") + i)

    def _field(self, text: str, field: str, title: str, code: str) -> tuple[Text, ...]:
        shown = text
        if self.form.fence == "nonce":
            shown = _CONTROL.sub(lambda m: m[0] + "\\", shown)
        opening, closing = "", ""
        marks = self.marks
        if self.form.fence == "nonce":
            begin, end = f"[BEGIN {title} {code}]", f"[END {title} {code}]"
            opening, closing = begin + "\n", "\n" + end
            marks = (*marks, code)
        for before, after in self.slate.frame.fences:
            opening, closing = before + "\n" + opening, closing + "\n" + after
        for mark in marks:
            shown = split(shown, mark)
        parts = (Text(opening), Text(shown, field), Text(closing))
        return tuple(p for p in parts if p.field or p.text)

    def _trusted(self, name: str) -> str:
        if name == "count":
            return str(len(self.slate.candidates))
        return _TRUSTED[name](self.form, self.slate.kind, options(self.form, self.slate))


@lru_cache(maxsize=256)
def listed_criteria(kind: str) -> str:
    """The criteria of a task kind as a list."""
    return "\n".join(f"- {c}" for c in criteria(kind))


@lru_cache(maxsize=256)
def listed_bands(scale: Scale) -> str:
    """The bands of a scale, one a line."""
    return "\n".join(bands(scale))


_TRUSTED: dict[str, Callable[[Form, str, tuple[str, ...]], str]] = {
    "criteria": lambda form, kind, order: listed_criteria(kind),
    "bands": lambda form, kind, order: listed_bands(form.scale),
    "verdict": lambda form, kind, order: form.scale.brief(order) if form.brief else form.scale.instruction(order),
    "labels": lambda form, kind, order: ", ".join(order),
    "low": lambda form, kind, order: "" if form.scale.low is None else plain(form.scale.low),
    "high": lambda form, kind, order: "" if form.scale.high is None else plain(form.scale.high),
    "definition": lambda form, kind, order: form.definition,
    "task_name": lambda form, kind, order: task_name(kind),
}
"""Trusted text of each slot, made only where the form has it: of the form, the task kind and the order of labels."""


def _turns(slate: Slate) -> list[str]:
    return [x for t in slate.history for x in (t.role, t.text)]


def _shared(slate: Slate) -> str:
    return spec.digest("task", slate.replica, slate.task, *_turns(slate))


def options(form: Form, slate: Slate) -> tuple[str, ...]:
    """The labels in the order the prompt names them: as declared, but for the grading of one candidate drawn by the
    task and the replica, the same for every candidate of it."""
    labels = form.scale.labels
    if form.protocol != "pointwise" or len(labels) != 2:
        return labels
    return labels if int(_shared(slate)[-1], 16) % 2 == 0 else labels[::-1]


def split(text: str, mark: str) -> str:
    """``text`` with every occurrence of ``mark``, overlapping ones too, broken by a visible character."""
    if mark not in text:
        return text
    breaker = "\\" if "\\" not in mark else "¦"
    at = 1 if len(mark) > 1 else 0
    rest = f"(?={re.escape(mark[at:])})" if at else ""
    pattern = re.compile(re.escape(mark[0]) + rest)
    return pattern.sub(lambda m: m[0] + breaker if at else breaker + m[0], text)


def _joined(parts: list[Text]) -> tuple[Text, ...]:
    """Neighbouring trusted parts as one."""
    out: list[Text] = []
    for part in parts:
        if out and not part.field and not out[-1].field:
            out[-1] = Text(out[-1].text + part.text)
        elif part.field or part.text:
            out.append(part)
    return tuple(out)


def _append(messages: list[Message], form: Form, order: tuple[str, ...]) -> list[Message]:
    """The scale's own verdict line: at the end of the system message, or of the only message."""
    at = next((i for i, m in enumerate(messages) if m.role == "system"), len(messages) - 1)
    parts = list(messages[at].parts)
    parts.append(Text("\n\n" + (form.scale.brief(order) if form.brief else form.scale.instruction(order))))
    return [*messages[:at], Message(messages[at].role, _joined(parts)), *messages[at + 1 :]]


def spans(messages: tuple[Message, ...]) -> tuple[tuple[str, int, int, int], ...]:
    """``(field, message number, start, end)`` of every untrusted text, in characters of its message."""
    out = []
    for number, message in enumerate(messages):
        at = 0
        for part in message.parts:
            if part.field:
                out.append((part.field, number, at, at + len(part.text)))
            at += len(part.text)
    return tuple(out)
