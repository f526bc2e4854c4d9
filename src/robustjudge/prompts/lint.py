"""Check a judge prompt and its reader without any model call: each finding has a rule, a severity and a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from robustjudge.prompts.reply import ReplyForm, nested
from robustjudge.prompts.slots import CANDIDATES, UNTRUSTED, hidden
from robustjudge.prompts.template import Form, PromptMessage, Template
from robustjudge.scales import Scale
from robustjudge.scales.native import STYLES

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its id, how bad a finding is, and what it is about."""

    id: str
    severity: Severity
    about: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place of one prompt that breaks a rule; ``line`` counts from 1 within the message or file named."""

    rule: str
    severity: Severity
    where: str
    line: int
    message: str


RULES: dict[str, Rule] = {
    r.id: r
    for r in (
        Rule("first-json", "error", "the reader takes the first JSON object it meets"),
        Rule("last-json", "error", "the reader takes the last JSON object it meets"),
        Rule("unanchored-pattern", "error", "the reader's pattern can match text that the judge only quotes"),
        Rule("slow-pattern", "error", "the reader's pattern can take exponential time on a hostile reply"),
        Rule("default-score", "error", "the reader returns a verdict where it found none"),
        Rule("pass-by-default", "error", "a reply without a verdict passes"),
        Rule("string-formatting", "error", "untrusted text is formatted or replaced into the prompt as source"),
        Rule("boundary-collision", "error", "a fixed mark closes untrusted text; the text can hold the same mark"),
        Rule("no-boundary", "warning", "untrusted text stands in the prompt with no mark around it"),
        Rule("ambiguous-key", "warning", "the verdict key is also prose in the prompt"),
        Rule("label-substring", "warning", "one label is part of another"),
        Rule("common-label", "warning", "a label is a common word and can be read from prose"),
        Rule("case-labels", "warning", "labels differ only by letter case"),
        Rule("unreachable-end", "warning", "the prompt never names an end of its scale"),
        Rule("other-scale", "warning", "the prompt names a range that is not the scale's"),
        Rule("no-verdict-form", "warning", "the prompt does not say in which form the verdict is wanted"),
        Rule("no-task", "warning", "the judge does not see the task"),
        Rule("rubric-sentences", "warning", "the success definition is not one sentence"),
        Rule("rubric-untestable", "warning", "the success definition names no testable condition"),
        Rule("hidden-character", "error", "the prompt holds a character that cannot be seen"),
        Rule("verdict-first", "note", "the verdict is asked for before the reasons"),
        Rule("no-data-note", "note", "the prompt does not say that the material is data"),
    )
}

_COMMON = frozenset(
    ["a", "i", "no", "yes", "it", "is", "as", "an", "or", "so", "he", "be", "do", "go", "good", "best", "right"]
)
_FENCE = re.compile(
    r"(</?[A-Za-z][\w-]{0,40}>|\[/?[A-Z][A-Za-z' _0-9]{1,60}\]|```|~~~|\"\"\"|'''|<<<+|>>>+|---+|===+|###+)"
)
_RANGE = re.compile(
    r"(?<![\w.])(-?\d{1,4}(?:\.\d)?)[ \t]{0,2}(?:to|through|and|-|–|—)[ \t]{0,2}(-?\d{1,4}(?:\.\d)?)(?![\w%]|\.\d)"
)
_TESTABLE = re.compile(
    r"\b(?:is|are|has|have|had|contains?|states?|gives?|names?|equals?|matches|passes|returns?|produces?|includes?"
    r"|answers?|solves?|does|reveals?|complies|refuses|follows|provides?|must|at least|at most|every|each|all|no)\b|[=<>≥≤]",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:good|nice|great|appropriate|reasonable|high quality|helpful|satisfactory|adequate|decent)\b", re.I
)
_REASON = re.compile(
    r"\b(?:explain|explanation|reasons?|rationale|justif\w{1,8}|feedback|critique|think)\b", re.IGNORECASE
)
_VERDICT = re.compile(r"\b(?:verdict|score|rating|grade|label|winner)\b", re.IGNORECASE)
_FIRST = re.compile(
    r"\b(?:first|begin|start|open)\b[^.\n]{0,60}\b(?:verdict|score|rating|grade|label|number)s?\b"
    r"|\b(?:verdict|score|rating|grade|number|label)\b[^.\n]{0,40}\b(?:first|then|followed by|before)\b"
    r"[^.\n]{0,40}\b(?:explain|explanation|reasons?|rationale|justification)\b",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"\[\[|\bjson\b|\{\s*\"|\bverdict\s*:|\b(?:score|rating|grade|answer|winner)\s*:|\[RESULT\]|<score>|<verdict>"
    r"|\b(?:reply|respond|answer|return|output|write)\b[^.\n]{0,60}\b(?:only|exactly|one (?:word|of)|with)\b",
    re.IGNORECASE,
)
_DATA = re.compile(
    r"\b(?:is|are|as) (?:data|material)\b|\buntrusted\b|\bmaterial to\b|\bignore (?:any )?instructions\b", re.I
)


def lint(template: Template) -> tuple[Finding, ...]:
    """Every finding for a template's forms, without doubles, in the order of file and line."""
    found: dict[Finding, None] = {}
    for form in template.forms:
        for finding in lint_form(form):
            found.setdefault(finding)
    return tuple(sorted(found, key=lambda f: (f.where, f.line, f.rule)))


def lint_form(form: Form) -> Iterator[Finding]:
    """The findings for one form: its prompt, its scale and its reader."""
    yield from _boundaries(form)
    yield from _scale(form.scale, form)
    yield from _wording(form)
    yield from _definition(form)
    yield from lint_reply(form.reply, form.source)


def _finding(rule: str, where: str, line: int, message: str) -> Finding:
    return Finding(rule, RULES[rule].severity, where, line, message)


# --------------------------------------------------------------------------- the prompt


def _literal(form: Form) -> Iterator[tuple[str, int, PromptMessage]]:
    for message in form.messages:
        for number, line in enumerate(message.text.split("\n"), 1):
            yield line, number, message


def _boundaries(form: Form) -> Iterator[Finding]:
    if form.fence == "nonce":
        return
    for segments in form.segments:
        for i, s in enumerate(segments):
            if s.slot not in UNTRUSTED:
                continue
            after = segments[i + 1].text if i + 1 < len(segments) and not segments[i + 1].slot else ""
            mark = _FENCE.match(after.lstrip())  # only what follows at once closes; later ones belong to instructions
            if mark is not None:
                yield _finding(
                    "boundary-collision",
                    form.source,
                    s.line,
                    f"{{{s.slot}}} is closed by the fixed mark {mark[0]!r}; a text that holds this mark ends its own "
                    "fence. Use fence: nonce, or escape the mark in the text",
                )
            elif s.slot in CANDIDATES:
                yield _finding(
                    "no-boundary",
                    form.source,
                    s.line,
                    f"nothing marks where {{{s.slot}}} ends; its author can go on in your voice. Use fence: nonce",
                )


def asks_for_verdict(form: Form) -> bool:
    """Whether the prompt says in some form how the verdict is to be written."""
    slots = {s.slot for m in form.segments for s in m}
    if form.reply.style in STYLES:  # a native form states its own, which the model was trained to give
        return True
    return "verdict" in slots or form.appended or _FORM.search("\n".join(m.text for m in form.messages)) is not None


def _wording(form: Form) -> Iterator[Finding]:
    text = "\n".join(m.text for m in form.messages)
    slots = {s.slot: s.line for m in form.segments for s in m if s.slot}
    for message in form.messages:
        spot = hidden(message.text)
        if spot is not None:
            yield _finding("hidden-character", form.source, spot[0], f"{spot[1]} stands in the prompt; remove it")
    if "task" not in slots:
        yield _finding("no-task", form.source, 1, "no {task} slot: the judge cannot know what was asked for")
    if not asks_for_verdict(form):
        yield _finding(
            "no-verdict-form", form.source, 1, "the prompt does not say how to write the verdict; add {verdict} to it"
        )
    if not form.scale.first_token:
        for line, number, _ in _literal(form):
            m = _FIRST.search(line)
            if m is None or re.search(r"\bbefore you\b", line):
                continue
            verdict, reason = _VERDICT.search(m[0]), _REASON.search(m[0])
            if verdict is not None and not (reason is not None and reason.start() < verdict.start()):
                asks = _REASON.search(line) or _REASON.search(text)
                if asks:
                    yield _finding(
                        "verdict-first",
                        form.source,
                        number,
                        "the verdict is asked for before the reasons, which then cannot inform it",
                    )
                    break
    if form.fence == "plain" and not _DATA.search(text):
        yield _finding("no-data-note", form.source, 1, "say that what the material asks of the judge is to be ignored")
    key = form.reply.path.rpartition(".")[2] or form.reply.overall.rpartition(".")[2]
    if form.reply.style == "json" and key:
        yield from _key(form, key)


def _key(form: Form, key: str) -> Iterator[Finding]:
    quoted = re.compile(rf"[\"'`]{re.escape(key)}[\"'`]")
    prose = re.compile(rf"(?<![\w\"'`{{]){re.escape(key)}s?(?![\w\"'`}}])", re.IGNORECASE)
    for line, number, _ in _literal(form):
        if prose.search(quoted.sub("", line)):
            yield _finding(
                "ambiguous-key",
                form.source,
                number,
                f"{key!r} is the verdict key and prose here too; a judge that repeats this line writes the key. "
                "Give the key a name of its own",
            )
            return


def _scale(scale: Scale, form: Form) -> Iterator[Finding]:
    text = "\n".join(m.text for m in form.messages)
    slots = {s.slot for m in form.segments for s in m}
    spellings = (*scale.labels, *(a for a, _ in scale.aliases))
    for a in spellings:
        for b in spellings:
            if a != b and a.casefold() == b.casefold() and a in scale.labels and b in scale.labels and a < b:
                yield _finding("case-labels", form.source, 1, f"labels {a!r} and {b!r} differ only by letter case")
            elif a.casefold() != b.casefold() and len(a) > 1 and a.casefold() in b.casefold():
                yield _finding("label-substring", form.source, 1, f"label {a!r} is part of {b!r}: a search finds both")
    letters = scale.rivals == tuple(chr(ord("A") + i) for i in range(len(scale.rivals)))
    for label in scale.labels:
        own = form.reply.own and form.reply.style in ("regex", "reader")
        if label.casefold() in _COMMON and (own or not letters) and (own or len(label) == 1):
            yield _finding(
                "common-label", form.source, 1, f"label {label!r} is a common word; ask for it in a form of its own"
            )
    if scale.numeric and scale.low is not None and scale.high is not None:
        yield from _ends(scale, form, text, slots)


def _ends(scale: Scale, form: Form, text: str, slots: set[str]) -> Iterator[Finding]:
    assert scale.low is not None and scale.high is not None
    ranges = []
    for line, number, _ in _literal(form):
        ranges += [(float(m[1]), float(m[2]), number) for m in _RANGE.finditer(line)]
    inside = [r for r in ranges if scale.low <= r[0] <= scale.high and scale.low <= r[1] <= scale.high]
    if ranges and not inside:
        low, high, number = ranges[0]
        yield _finding(
            "other-scale",
            form.source,
            number,
            f"the prompt speaks of {low:g} to {high:g}, the reader's scale is {scale.low:g} to {scale.high:g}",
        )
    if {"verdict", "bands"} & slots or form.appended:
        return
    for end, slot in ((scale.low, "low"), (scale.high, "high")):
        if slot not in slots and not re.search(rf"(?<![\d.]){re.escape(f'{end:g}')}(?![\d]|\.\d)", text):
            yield _finding(
                "unreachable-end",
                form.source,
                1,
                f"the prompt never names {end:g}, an end of its scale: no judge will give it",
            )


def _definition(form: Form) -> Iterator[Finding]:
    text = form.definition.strip()
    uses = any(s.slot == "definition" for m in form.segments for s in m)
    if not uses:
        return
    line = next(s.line for m in form.segments for s in m if s.slot == "definition")
    if not text:
        yield _finding("rubric-untestable", form.source, line, "the success definition is empty")
        return
    if len(re.findall(r"[.!?。！？](?=\s|$)|\n", text.rstrip(".!?。！？ \n") + " ")) > 0:
        yield _finding("rubric-sentences", form.source, line, "the success definition holds more than one sentence")
    if not _TESTABLE.search(text) or (_VAGUE.search(text) and not re.search(r"\d|[\"“]", text)):
        yield _finding(
            "rubric-untestable", form.source, line, "two people could not apply this definition alike: name a condition"
        )


# --------------------------------------------------------------------------- the reader


def lint_reply(reply: ReplyForm, where: str = "reply") -> Iterator[Finding]:
    """The findings for a reply form's reader."""
    if reply.style == "regex":
        yield from lint_pattern(reply.pattern, where)
    elif reply.style == "reader":
        yield from lint_reader(reply.target, where)


def lint_pattern(pattern: str, where: str = "reply", line: int = 1) -> Iterator[Finding]:
    """The findings for a reader's regular expression."""
    if nested(pattern):
        yield _finding("slow-pattern", where, line, f"{pattern!r} repeats a repetition")
    if re.search(r"\\\{\.[*+]\??\\\}|\{\.\*", pattern):
        rule = "first-json" if ".*?" in pattern or ".+?" in pattern else "last-json"
        yield _finding(rule, where, line, f"{pattern!r} cuts an object out of prose, a quoted one as well")
    elif not re.search(r"\\Z|\$$|\\z", pattern.strip(")")):
        yield _finding(
            "unanchored-pattern",
            where,
            line,
            f"{pattern!r} is not tied to the end of the reply; a quotation matches too",
        )


_SOURCE_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "default-score",
        re.compile(
            r"\.get\(\s*[\"'](?:score|rating|grade|verdict|label|winner|overall)[\"']\s*,(?!\s*None\b)[^)]{1,30}\)"
            r"|(?:except\b[^:\n]{0,60}:|\belse\s*:)\s*return\s+[\"']?(?:-?\d|[A-Za-z]*tie\b|C[\"'])"
            r"|\bor\s+(?:0\.5|0|1|5)\b\s*$|\bmax\(\s*[\w.]{1,20},\s*min\(|\bmin\(\s*[\w.]{1,20},\s*max\(",
            re.MULTILINE | re.IGNORECASE,
        ),
        "a verdict stands in for one that was not read",
    ),
    (
        "pass-by-default",
        re.compile(
            r"\.get\(\s*[\"'](?:pass|passed|ok|success|safe)[\"']\s*,\s*True\s*\)"
            r"|\b(?:pass|passed|ok|success)\b\s*(?::\s*bool\s*)?=\s*True\b",
            re.IGNORECASE,
        ),
        "a missing verdict passes",
    ),
    (
        "first-json",
        re.compile(r"re\.(?:search|match)\([^\n]{0,20}\\\{|\.find\(\s*[\"']\{[\"']\s*\)|\.index\(\s*[\"']\{[\"']\s*\)"),
        "the first object is taken, a quoted one as well",
    ),
    (
        "last-json",
        re.compile(
            r"re\.findall\([^\n]{0,40}\\\{[^\n]{0,80}\)\s*\[-1\]|\.rfind\(\s*[\"']\{[\"']\s*\)|\.rindex\(\s*[\"']\{"
        ),
        "the last object is taken, a quoted one as well",
    ),
    (
        "unanchored-pattern",
        re.compile(
            r"re\.(?:search|findall)\(\s*r?[\"'](?![^\"'\n]*(?:\$|\\Z)[\"'])(?![^\"'\n]*\\\{)[^\"'\n]{1,200}[\"']"
        ),
        "the pattern is not tied to the end of the reply",
    ),
    (
        "string-formatting",
        re.compile(
            r"\.format\([^)\n]{0,120}\b(?:response|answer|candidate|output|completion|question|task|reference)\b"
            r"|\.replace\(\s*[\"']\{{1,2}\s?\w{1,40}\s?\}{1,2}[\"']"
            r"|%\s*\(?[^)\n]{0,60}\b(?:response|candidate|completion)\b"
            r"|f[\"'][^\"'\n]{0,300}\{(?:response|answer|candidate|output|completion)[}!:]"
            r"|(?:Template|from_string)\([^)\n]{0,80}\b(?:response|candidate|answer)\b",
        ),
        "untrusted text becomes prompt source",
    ),
)


def lint_source(source: str, where: str) -> tuple[Finding, ...]:
    """The findings for the Python text of a judge or reader (nothing is run)."""
    out: dict[Finding, None] = {}
    for rule, pattern, why in _SOURCE_RULES:
        for m in pattern.finditer(source):
            line = source.count("\n", 0, m.start()) + 1
            shown = " ".join(m[0].split())[:60]
            out.setdefault(_finding(rule, where, line, f"{shown}: {why}"))
    return tuple(sorted(out, key=lambda f: (f.line, f.rule)))


def lint_reader(target: str, where: str) -> Iterator[Finding]:
    """The findings for the source of the callable ``module:function``; none where its source cannot be had."""
    import inspect

    from robustjudge.prompts.reply import load

    found = load(target)
    try:
        lines, first = inspect.getsourcelines(found)
        file = inspect.getsourcefile(found) or where
    except (OSError, TypeError):
        return
    for f in lint_source("".join(lines), file):
        yield Finding(f.rule, f.severity, f.where, f.line + max(first, 1) - 1, f.message)
