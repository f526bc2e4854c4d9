"""The attack contract, what a text attack knows of its victim, and where a payload is placed.

Source of the formula ``r_m = A(r; x, r_ref, F, B)``: arXiv 2506.09443, eq. 1.  ``F`` is the set of asks an attack
awaits, ``B`` the budget its trial meters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from robustjudge import spec
from robustjudge.errors import ConfigError
from robustjudge.nouns import Access, Budget, Case, Severity, Turn

if TYPE_CHECKING:
    from robustjudge.objective import Objective

Channel = Literal["append", "prefix", "middle", "replace", "rewrite", "history"]
"""How the attacked text relates to the weak response.  ``history``: the text is a turn of the dialogue instead."""

CHANNELS: tuple[Channel, ...] = ("append", "prefix", "middle", "replace", "rewrite", "history")

ProtocolKind = Literal["pointwise", "pairwise", "best_of", "binary"]

PROTOCOLS: tuple[ProtocolKind, ...] = ("pointwise", "pairwise", "best_of", "binary")

A = TypeVar("A", bound="Plugin")


class NoCandidate(Exception):
    """The attack has no legal candidate (empty, prose or refused writer replies; not fitted; not applicable).

    The trial books ``attack_status`` ``no_candidate``: nothing is judged and the weak response stands.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Exhausted(Exception):
    """Raised by the trial's meter into the attack when an ask no longer fits the budget.

    A batch that fits in part is answered in part; the next ask raises.  A search catches it and returns its
    best-so-far.
    """


@runtime_checkable
class Attack(Protocol):
    """``async (Case) -> str``: the attacked text (for channel ``history`` the text of the planted turn).

    ``access`` is what it may observe of the victim, ``reads_reference`` whether it needs more than
    ``Case.sealed()``, ``writes`` whether it asks the attacker model, ``universal`` whether it must be fitted
    with ``await attack.fit(cases)``, which returns a new attack.
    """

    @property
    def name(self) -> str: ...
    @property
    def access(self) -> Access: ...
    @property
    def family(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def category(self) -> str: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def reads_reference(self) -> bool: ...
    @property
    def writes(self) -> bool: ...
    @property
    def universal(self) -> bool: ...

    async def __call__(self, case: Case) -> str: ...


@spec.register("target")
@dataclass(frozen=True)
class Target:
    """What an author can know of the judge's form: protocol, range, criteria, own output line, fences.

    ``verdict_line`` is the judge's own output form holding the top verdict; in pairwise and best-of-K judging it
    names a property of the candidate, never a slot letter.  ``tie_line`` is its form of a tie, empty where there
    is none.  ``fences`` are pairs of opening and closing mark, innermost first.
    """

    protocol: ProtocolKind = "pointwise"
    low: str = "1"
    high: str = "10"
    top_label: str = "10"
    criteria: tuple[str, ...] = ()
    verdict_line: str = "VERDICT: 10"
    tie_line: str = ""
    fences: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"protocol {self.protocol!r} is none of {', '.join(PROTOCOLS)}")


class Plugin:
    """Shared defaults of the built-in attacks; subclasses are frozen dataclasses that name the rest of the contract."""

    @property
    def access(self) -> Access:
        return Access.NONE

    @property
    def reads_reference(self) -> bool:
        return False

    @property
    def writes(self) -> bool:
        return False

    @property
    def universal(self) -> bool:
        return False

    @property
    def name(self) -> str:
        return spec.name_of(self)

    @property
    def id(self) -> str:
        """The short id (``H1``): the name without its variant."""
        return self.name.partition("/")[0]

    @property
    def family(self) -> str:
        return "extension"

    @property
    def category(self) -> str:
        return "injection"

    @property
    def severity(self) -> Severity:
        return "high"

    @property
    def channel(self) -> Channel:
        return "append"

    @property
    def control(self) -> str:
        """Which control this is (``neutral``); empty for an attack."""
        return ""

    def ceiling(self) -> Budget:
        """The most that one run can ask for: victim queries, attacker writes, losses and gradients, all contexts."""
        return Budget(0, 0, 0, 0)

    def fitted_ceiling(self) -> Budget:
        """The most that one trial of a universal attack can ask for once it is fitted."""
        return Budget(0, 0, 0, 0)

    def least(self) -> Budget:
        """What a single step of it asks for: a plan whose budget is below that is refused."""
        return Budget(0, 0, 0, 0)

    async def __call__(self, case: Case) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not say how it changes a response")

    def bound(self: A, target: Target) -> A:
        """The same attack, and every attack inside it, filled in for ``target``."""
        me: Any = self
        changes: dict[str, Any] = {}
        for f in fields(me):
            value = getattr(self, f.name)
            if isinstance(value, Target):
                changes[f.name] = target
            elif isinstance(value, Plugin):
                changes[f.name] = value.bound(target)
        return cast(A, replace(me, **changes)) if changes else self

    def note(self, case: Case) -> str:
        """A remark that the row and the report carry for this case; empty when there is none."""
        return ""


def objective(**given: Any) -> Objective:
    """An :class:`~robustjudge.objective.Objective`; what is not given is bound by the trial."""
    from robustjudge.objective import Objective

    return Objective(**given)


# --------------------------------------------------------------------------- placement


def place(channel: Channel, response: str, payload: str, separator: str) -> str:
    """``payload`` put into ``response``: the response stays byte-identical around it.

    ``middle`` splits at the line, sentence or word break nearest the half.  ``replace`` and ``history`` give the
    payload alone.
    """
    if channel == "append":
        return response + separator + payload
    if channel == "prefix":
        return payload + separator + response
    if channel == "middle":
        at = _halfway(response)
        return response[:at] + separator + payload + separator + response[at:]
    if channel in ("replace", "history"):
        return payload
    raise ConfigError(f"a payload cannot be placed through channel {channel!r}")


def _halfway(text: str) -> int:
    for pattern in (r"\n+", r"(?<=[.!?])\s+|(?<=[。！？])", r"\s+"):
        cuts = [m.start() for m in re.finditer(pattern, text) if 0 < m.start() < len(text)]
        near = [c for c in cuts if len(text) <= 4 * c <= 3 * len(text)]
        if near:
            return min(near, key=lambda c: abs(2 * c - len(text)))
    return len(text) // 2


@dataclass(frozen=True, slots=True)
class Split:
    """An attacked text seen as ``before + payload + after``, where ``before + after`` is the weak response
    (for a replaced text both are empty)."""

    before: str
    payload: str
    after: str

    def around(self, payload: str) -> str:
        """The same text with another payload."""
        return self.before + payload + self.after


def split(response: str, attacked: str) -> Split:
    """Find the payload of ``attacked``: what was added to ``response``, else the whole text."""
    extra = len(attacked) - len(response)
    if response and extra >= 0:
        if attacked.startswith(response):
            return Split(response, attacked[len(response) :], "")
        if attacked.endswith(response):
            return Split("", attacked[:extra], response)
        head = 0
        while head < len(response) and attacked[head] == response[head]:
            head += 1
        if attacked.endswith(response[head:]):
            return Split(response[:head], attacked[head : len(attacked) - (len(response) - head)], response[head:])
    return Split("", attacked, "")


def planted(case: Case, text: str) -> Case:
    """``case`` with ``text`` as the last user turn of its history (channel ``history``)."""
    return replace(case, history=(*case.history, Turn("user", text)))


# --------------------------------------------------------------------------- language and code


def language_of(case: Case) -> str:
    """The primary language subtag of a case, lower case (``en``, ``zh``, ``de``)."""
    return re.split(r"[-_]", case.language.strip().lower() or "en")[0]


def is_code(case: Case) -> bool:
    """Whether the response of this case is program text (code translation and code generation)."""
    kind = case.kind.lower()
    return kind in ("t3", "t5") or ("code" in kind and "summar" not in kind)


_HASH = re.compile(r"^\s*(def |import |from \w+ import|elif |print\(|#)|:\s*$", re.MULTILINE)
_SLASH = re.compile(r"[;{}]\s*$|^\s*//", re.MULTILINE)
_DASH = re.compile(r"^\s*(select|insert|create table|with)\b|^\s*--", re.MULTILINE | re.IGNORECASE)


def comment_mark(code: str) -> str:
    """The line-comment mark of the language that ``code`` looks like: ``//``, ``--`` or ``#``."""
    if _SLASH.search(code):
        return "//"
    if _DASH.search(code):
        return "--"
    return "#" if _HASH.search(code) or not code else "//"


def commented(payload: str, mark: str) -> str:
    """Every line of ``payload`` as a line comment, so that the program still parses."""
    return "\n".join(f"{mark} {line}".rstrip() for line in payload.splitlines() or [""])


def stem(case: Case) -> str:
    """The weak response as a searched suffix continues it: program text gets an open line comment."""
    return f"{case.response}\n{comment_mark(case.response)} " if is_code(case) else case.response + " "


# --------------------------------------------------------------------------- length

_TOKEN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]|[^\W_]+|[^\w\s]|_")
UNIT = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]|[^\s\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]+")
"""One unit for shuffling: a CJK character or a run without white space."""


def tokenish(text: str) -> int:
    """A tokenizer-free token count: words, CJK characters and punctuation marks, long words counted by sixths.

    Controls are matched to their attack by it; it is within a small factor of any real tokenizer.
    """
    return sum(1 if len(t) < 7 else -(-len(t) // 6) for t in _TOKEN.findall(text))
