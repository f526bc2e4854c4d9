"""How a judge's reply is read: our strict reader, or the reader that the user's own system has."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from robustjudge import door, spec
from robustjudge.errors import ConfigError, TemplateError
from robustjudge.scales import Reading, Scale, read
from robustjudge.scales.jsonform import Pairs, Unclosed, objects, value_of
from robustjudge.scales.native import STYLES, read_native

REACH = 20_000  # characters of a reply that a user's pattern sees

_OURS = ("verdict", "labels")


@spec.register("reply_form")
@dataclass(frozen=True)
class ReplyForm:
    """The form a reply takes and the reader that goes with it.

    ``style``: ``verdict`` or ``labels`` (our strict reader), ``json`` (a key ``path`` into one JSON object; with
    ``schema`` the object must also fit it), ``regex`` (``pattern``, first match, group ``value`` or 1), ``reader``
    (``target``, the user's Python callable ``module:function``), or a native form of a fine-tuned judge
    (``judgelm``, ``pandalm``, ``auto_j``, ``prometheus``).  ``parts`` are pairs (sub-score, its path); with them
    ``overall`` is ``mean``, ``min`` or a path.
    """

    scale: Scale
    style: str = "verdict"
    path: str = ""
    schema: str = ""
    pattern: str = ""
    target: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    overall: str = ""

    def __post_init__(self) -> None:
        known = (*_OURS, "json", "regex", "reader", *STYLES)
        if self.style not in known:
            raise ConfigError(f"unknown reply form {self.style!r}; known: {', '.join(known)}")
        if self.style == "json" and not (self.path or self.parts):
            raise ConfigError("a JSON reply form needs the path of its verdict key, or parts with an overall")
        if self.style == "json" and self.parts and not self.overall:
            raise ConfigError("several sub-scores need a stated overall: mean, min or a path")
        if self.style == "regex":
            compiled(self.pattern)
        if self.style == "reader" and ":" not in self.target:
            raise ConfigError(f"the reader {self.target!r} is not written as module:function")

    @property
    def own(self) -> bool:
        """Whether the user's reader decides (and ours only looks on)."""
        return self.style in ("json", "regex", "reader")

    def read(self, reply: str | None, finish: str = "stop", refusal: str = "") -> Reading:
        """The reading that counts: the declared reader's."""
        if self.style in _OURS:
            return read(reply, self.scale, finish, refusal)
        if self.style in STYLES:
            return read_native(self.style, reply, self.scale, finish, refusal)
        strict = read(reply, self.scale, finish, refusal)
        if not strict.raw.strip() or refusal or strict.reason == "content filter":
            return strict
        if self.style == "json":
            return self._json(strict, finish)
        return self._regex(strict) if self.style == "regex" else self._call(strict)

    def both(self, reply: str | None, finish: str = "stop", refusal: str = "") -> tuple[Reading, Reading]:
        """The declared reader's reading and ours, to be shown side by side."""
        return self.read(reply, finish, refusal), read(reply, self.scale, finish, refusal)

    def fooled(self, reply: str | None, finish: str = "stop", refusal: str = "") -> bool:
        """Whether the user's own reader took a verdict that the strict one does not take.

        Disagreement on the value counts, and a verdict read where ours finds several, a quotation or none; a reply in a
        form that only the declared reader knows (no verdict of any other form in it) is not held against it.
        """
        if not self.own:
            return False
        theirs, ours = self.both(reply, finish, refusal)
        if theirs.status != "ok":
            return False
        if ours.status == "ok":
            return theirs.value != ours.value
        return ours.reason != "no verdict found"

    # ------------------------------------------------------------------ the user's readers

    def _json(self, strict: Reading, finish: str) -> Reading:
        try:
            found = [f for f in objects(strict.raw) if f.content is not None]
        except Unclosed:
            return replace(strict, status="truncated", value=None, reason="JSON object never closes", form="json")
        cut: Reading = replace(strict, value=None, span=None, form="json", parts=())
        none = replace(cut, status="truncated" if finish in ("length", "max_tokens") else "unparsed")
        if len(found) != 1 or found[0].content is None:
            if strict.status == "refused":
                return strict
            return replace(none, reason="no JSON object" if not found else f"{len(found)} JSON objects")
        content = found[0].content
        if self.schema and (fault := _misfit(strict.raw[found[0].start : found[0].end], self.schema)):
            return replace(none, reason=f"the object does not fit the schema: {fault}")
        span = (found[0].start, found[0].end)
        scores: list[tuple[str, float]] = []
        numbers = self.scale if self.scale.numeric else None
        for name, path in self.parts:
            value = value_of(at_path(content, path), numbers) if numbers else None
            if not isinstance(value, float):
                return replace(none, reason=f"no score on the scale at {path!r}")
            scores.append((name, value))
        if self.parts and self.overall in ("mean", "min"):
            values = [v for _, v in scores]
            overall = min(values) if self.overall == "min" else sum(values) / len(values)
            return replace(cut, status="ok", value=overall, reason="", span=span, parts=tuple(scores))
        path = self.overall or self.path
        value = value_of(at_path(content, path), self.scale, path.rpartition(".")[2])
        if value is None:
            return replace(none, reason=f"no verdict on the scale at {path!r}")
        return replace(cut, status="ok", value=value, reason="", span=span, parts=tuple(scores))

    def _regex(self, strict: Reading) -> Reading:
        m = compiled(self.pattern).search(strict.raw[:REACH])
        if m is None:
            return _no(strict, "the pattern matches nothing")
        group: int | str = "value" if "value" in m.re.groupindex else (1 if m.re.groups else 0)
        said = (m[group] or "").strip()
        value: float | str | None = self.scale.number(said) if self.scale.numeric else self.scale.label(said)
        if value is None:
            return _no(strict, f"the pattern found {said[:40]!r}, which is not on the scale")
        return Reading("ok", value, strict.raw, "", m.span(group), "regex", (), strict.text_mapped)

    def _call(self, strict: Reading) -> Reading:
        try:
            answer = load(self.target)(strict.raw)
        except ConfigError:
            raise
        except Exception as fault:  # the user's code: what it raises is what it makes of this reply
            return _no(strict, f"the reader raised {type(fault).__name__}: {door.safe(str(fault))[:200]}")
        parts: tuple[tuple[str, float], ...] = ()
        if isinstance(answer, Mapping):
            given = answer.get("parts") or {}
            try:
                parts = tuple((str(k), float(v)) for k, v in dict(given).items())
            except (TypeError, ValueError):
                return _no(strict, f"the reader returned parts that are no numbers: {door.safe(str(given))[:80]}")
            if answer.get("status", "ok") != "ok":
                return _no(strict, str(answer.get("reason") or answer["status"]))
            answer = answer.get("value", answer.get("score"))
        if answer is None:
            return _no(strict, "the reader found no verdict")
        if isinstance(answer, bool):
            value: float | str | None = None if self.scale.numeric else value_of(answer, self.scale)
        elif self.scale.numeric:
            value = self.scale.number(str(answer))
        else:
            value = self.scale.label(str(answer))
        if value is None:
            return _no(strict, f"the reader returned {str(answer)[:40]!r}, which is not on the scale")
        return Reading("ok", value, strict.raw, "", None, "reader", parts, strict.text_mapped)


def _no(strict: Reading, reason: str) -> Reading:
    """The status of a reply that the user's reader could not read: ours tells a refusal and a cut reply apart."""
    status = strict.status if strict.status in ("refused", "truncated") else "unparsed"
    return Reading(status, None, strict.raw, reason, None, "", (), strict.text_mapped)


def at_path(content: Any, path: str) -> Any:
    """The item at a dotted path of a JSON object; None where there is none or a key stands twice."""
    for step in path.split("."):
        if isinstance(content, Pairs):
            hits = [v for k, v in content.items if k == step]
            content = hits[0] if len(hits) == 1 else None
        elif isinstance(content, list) and step.isdigit() and int(step) < len(content):
            content = content[int(step)]
        else:
            return None
    return content


def _misfit(text: str, schema: str) -> str:
    import json

    from jsonschema import Draft202012Validator  # loaded only where a schema was declared

    try:
        fault = next(iter(Draft202012Validator(json.loads(schema)).iter_errors(json.loads(text))), None)
    except ValueError as wrong:
        return str(wrong)
    return "" if fault is None else str(fault.message)[:200]


@lru_cache(maxsize=256)
def load(target: str) -> Callable[[str], Any]:
    """The Python callable ``module:function``.  Raises :class:`ConfigError` when it cannot be found."""
    module, _, name = target.partition(":")
    if not (module and name):
        raise ConfigError(f"the reader {target!r} is not written as module:function")
    try:
        found: Any = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"{target!r} cannot be loaded: {fault}; the command looks in the folder it is started from and in what is"
            " installed (PYTHONPATH adds a folder)"
        ) from None
    except (ImportError, AttributeError, ValueError) as fault:
        raise ConfigError(f"{target!r} cannot be loaded: {fault}") from None
    if not callable(found):
        raise ConfigError(f"the reader {target!r} is not callable")
    loaded: Callable[[str], Any] = found
    return loaded


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A user's pattern.  Raises :class:`TemplateError` where it is no pattern, or repeats a repetition, which may
    take exponential time on a hostile reply."""
    try:
        made = re.compile(pattern)
    except re.error as fault:
        raise TemplateError(f"the pattern {pattern!r} is no regular expression: {fault}") from None
    if not pattern:
        raise TemplateError("the reply form regex needs a pattern")
    if nested(pattern):
        raise TemplateError(
            f"the pattern {pattern!r} repeats a repetition; a hostile reply could make it run for ever. "
            "Write it without one inside the other"
        )
    return made


def nested(pattern: str) -> bool:
    """Whether a pattern has an unbounded repetition inside another."""
    escaped = in_class = False
    inner: list[bool] = [False]
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if escaped:
            escaped = False
        elif c == "\\":
            escaped = True
        elif in_class:
            in_class = c != "]" or pattern[i - 1] == "["
        elif c == "[":
            in_class = True
        elif c == "(":
            inner.append(False)
        elif c == ")" and len(inner) > 1:
            had = inner.pop()
            unbounded = bool(re.match(r"[*+]|\{\d*,\}", pattern[i + 1 :]))
            if had and unbounded:
                return True
            inner[-1] = inner[-1] or had or unbounded
        elif (c in "*+" and i and pattern[i - 1] not in "(|") or (c == "{" and re.match(r"\{\d*,\}", pattern[i:])):
            inner[-1] = True
        i += 1
    return False
