"""The nouns that cross every seam: cases, slates, verdicts, calls, completions and estimates.

All are frozen and hold text, integers and floats only, so they can be hashed, compared, stored and sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

from robustjudge.errors import UndefinedEstimate

Status = Literal["ok", "unparsed", "refused", "truncated", "blocked", "error"]
"""What became of one verdict.  Only ``ok`` carries a value; the others are counted apart, never scored."""

STATUSES: tuple[Status, ...] = ("ok", "unparsed", "refused", "truncated", "blocked", "error")

AttackStatus = Literal["ok", "exhausted", "no_candidate", "error"]
"""How the attacker ended; its own failure is never booked as the judge's."""

Severity = Literal["low", "medium", "high", "critical"]

TIE = -1
"""``Verdict.choice`` of a declared tie."""


class Access(IntEnum):
    """What an attack may observe of its victim, weakest first."""

    NONE = 0
    VERDICT = 1
    SCORE = 2
    ODDS = 3
    LOSS = 4
    GRADIENT = 5


# --------------------------------------------------------------------------- what is judged


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue history: ``role`` is ``user`` or ``assistant``; the text is untrusted."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """One human (or other) label of a case."""

    rater: str
    label: str


@dataclass(frozen=True, slots=True)
class Weak:
    """A text known to be worse than the reference, with the defect it has and how that was verified.

    ``verified`` names the check that it fails (``runs``, ``computes``, ``brute_force``, ``quality_drop``);
    empty means nobody and nothing checked it.
    """

    text: str
    defect: str = ""
    verified: str = ""
    human_check: str = "not done"


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to judge: a task, the weak response under attack, and what it is compared with.

    ``id`` is stable under re-ordering of its file.  ``references[0]`` is the rival in pairwise judging;
    ``distractors`` fill best-of-K.  ``cluster`` groups dependent cases (default: the id itself).
    ``meta`` holds task-specific strings (language pair, gold answer, program name) as sorted pairs.
    """

    id: str
    task: str
    response: str
    references: tuple[str, ...] = ()
    distractors: tuple[Weak, ...] = ()
    history: tuple[Turn, ...] = ()
    kind: str = "open"
    dataset: str = ""
    language: str = "en"
    defect: str = ""
    verified: str = ""
    human_check: str = "not done"
    expected: float | None = None
    labels: tuple[Label, ...] = ()
    cluster: str = ""
    meta: tuple[tuple[str, str], ...] = ()
    source: str = ""
    licence: str = ""
    text_mapped: bool = False

    @property
    def reference(self) -> str:
        """The first reference, or the empty string when there is none."""
        return self.references[0] if self.references else ""

    def get(self, key: str, default: str = "") -> str:
        """The value of ``meta`` under ``key``."""
        return dict(self.meta).get(key, default)

    def sealed(self) -> Case:
        """The same case as an attacker sees it: no reference, rival, distractor, label or gold answer."""
        return replace(self, references=(), distractors=(), labels=(), expected=None, meta=())


@dataclass(frozen=True, slots=True)
class Frame:
    """Trusted additions that defenses make to a judge prompt; never holds untrusted text.

    ``before`` and ``after`` are paragraphs put before the first and after the last untrusted field;
    ``fences`` wraps every untrusted field: pairs of opening and closing mark, innermost first; ``escape`` breaks their
    marks where they occur in data (off only to measure what that is worth).
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    fences: tuple[tuple[str, str], ...] = ()
    escape: bool = True


@dataclass(frozen=True, slots=True)
class Slate:
    """The *only* input of a judge: a task and one, two or N candidates in the order shown.

    ``index[i]`` is the identity of the candidate in slot ``i`` (identity 0 is the response under attack,
    1 the reference, 2.. the distractors).  ``reference`` is set in grading mode only.  ``replica`` names the
    repeat (``clean/0``, ``identity/0``, ``search/0``, ``final/0``) and is part of the ledger key.  ``exchange`` is
    what was said after the first verdict of an appeal: the judge's own replies (``assistant``) and the author's
    answers (``user``, untrusted).
    """

    task: str
    candidates: tuple[str, ...]
    index: tuple[int, ...]
    replica: str = "clean/0"
    history: tuple[Turn, ...] = ()
    reference: str = ""
    kind: str = "open"
    language: str = "en"
    frame: Frame = Frame()
    exchange: tuple[Turn, ...] = ()
    meta: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said, in candidate identity space (slot letters never leave the judge).

    ``score`` (scale units) for one candidate, ``choice`` (identity, or ``TIE``) for several, ``label`` for
    labelled scales; all are empty unless ``status`` is ``ok``.  ``unit`` is the score mapped to [0, 1] over the
    scale's range (for a binary scale 1 is the label an author wants).  ``reason`` explains any other status.
    ``odds`` are label probabilities when known, ``expected`` the score they imply.  ``fooled`` is set where the
    user's reader and ours disagree.  ``fallback`` says what a blocked verdict is worth,
    ``range`` the scale's ends (numeric and binary scales).
    """

    status: Status = "ok"
    score: float | None = None
    choice: int | None = None
    label: str = ""
    unit: float | None = None
    parts: tuple[tuple[str, float], ...] = ()
    rationale: str = ""
    raw: str = ""
    reason: str = ""
    form: str = ""
    odds: tuple[tuple[str, float], ...] = ()
    expected: float | None = None
    fooled: bool = False
    suspicion: tuple[float, ...] = ()
    fallback: str = ""
    range: tuple[float, float] | None = None


# --------------------------------------------------------------------------- what is sent


@dataclass(frozen=True, slots=True)
class Text:
    """One part of a message.  ``field`` is empty for trusted text, else the name of the untrusted field
    (``task``, ``candidate/0``, ``reference``, ``history/1``): spans without offsets.

    ``cuts`` are places, in characters, where a model that we run must end a token: another segmentation of the same
    text.  A model that cannot do so answers such a call with an error.
    """

    text: str
    field: str = ""
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A chat message as a tuple of parts, so that an image part can be added without changing a signature."""

    role: str
    parts: tuple[Text, ...]

    @property
    def text(self) -> str:
        return "".join(p.text for p in self.parts)


def message(role: str, text: str) -> Message:
    """A message of one trusted part."""
    return Message(role, (Text(text),))


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn; every field is part of the ledger key.

    ``max_tokens`` must be positive.  ``top_logprobs`` asks for that many alternatives per token (0: none).
    ``schema`` is a JSON schema as canonical text, ``grammar`` a GBNF grammar (local models); both may be empty.
    """

    temperature: float = 0.0
    max_tokens: int = 512
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    schema: str = ""
    grammar: str = ""
    effort: str = ""


@dataclass(frozen=True, slots=True)
class Readout:
    """Where and how a verdict could be read from label probabilities instead of text.

    ``labels`` are the declared labels in scale order and ``lead`` the forced start of the reply.  For a numeric
    scale ``values`` holds each label's number and ``identities`` is empty; for a choice ``identities`` holds the
    candidate identity behind each label (``TIE`` for a tie); for a binary scale ``values`` holds 1 for the label
    that an author wants and 0 for the other.
    """

    labels: tuple[str, ...]
    lead: str = ""
    values: tuple[float, ...] = ()
    identities: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model: ``model`` is ``provider/name``, ``replica`` the name of the repeat.

    ``role`` (judge, attacker, detector, auditor, surrogate) books the cost and ``readout`` says how label
    probabilities would be read; neither is part of the ledger key.
    """

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    replica: str = "clean/0"
    role: str = "judge"
    readout: Readout | None = None


@dataclass(frozen=True, slots=True)
class LabelCall:
    """Which of ``labels`` would the model say after ``call``'s messages and the forced reply start ``lead``?

    ``suffix``, when given, are the token ids that must end the author's candidate in the encoded prompt; where they do
    not, the answer has status ``unparsed``, reason ``illegal_suffix``.
    """

    call: Call
    labels: tuple[str, ...]
    lead: str = ""
    suffix: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenOdds:
    """One generated token with its natural-log probability and the best alternatives, best first."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counts them; ``cached`` is the part of ``prompt`` it had cached."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply with its status; it never raises for what the world does.

    ``status`` is ``ok`` (a reply came, readable or not), ``refused`` (refusal field or content filter),
    ``truncated`` (length stop) or ``error`` (no usable reply; ``reason`` says why: ``transport``,
    ``context_overflow``, ``http_400`` ...).  ``notes`` lists adaptations (``temperature_not_applied``).
    """

    text: str = ""
    status: Status = "ok"
    finish: str = "stop"
    refusal: str = ""
    reason: str = ""
    reasoning: str = ""
    usage: Usage = Usage()
    model: str = ""
    tokens: tuple[TokenOdds, ...] = ()
    latency: float = 0.0
    attempts: int = 1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Weights:
    """Natural-log probabilities of the labels asked for, in their order, *before* renormalising.

    ``floored`` marks labels outside a truncated list, which carry an upper bound instead of their own value.
    """

    logprobs: tuple[float, ...] = ()
    floored: tuple[bool, ...] = ()
    status: Status = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Surprisal:
    """Natural-log probability of each token of one text under a scoring model.

    ``ends``: where each token ends, in characters of the text; empty when the model does not tell.
    """

    logprobs: tuple[float, ...] = ()
    status: Status = "ok"
    reason: str = ""
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an attacker learns about one candidate: ``worth`` in [0, 1] (log-odds for ODDS and LOSS asks).

    ``parts`` are the sub-scores that the judge returned beside the score, mapped to [0, 1]; empty where it gives none.
    """

    worth: float
    status: Status = "ok"
    rationale: str = ""
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """One text of an attacker model, with the completion's status."""

    text: str = ""
    status: Status = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one trial may spend; ``None`` is unlimited.  ``queries``: candidates evaluated on the victim."""

    queries: int | None = None
    writes: int | None = None
    losses: int | None = None
    gradients: int | None = None


# --------------------------------------------------------------------------- what is reported


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure that can be defended: value, interval, sample size and method.

    ``value`` is ``None`` where the formula has no answer, and then ``reason`` says why; it is never 0, 1 or NaN
    in its stead.  ``low <= value <= high`` whenever all are known.  ``flags`` qualify the figure.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str = ""
    flags: tuple[str, ...] = field(default=())

    @classmethod
    def undefined(
        cls, reason: str, *, n: int = 0, low: float | None = None, high: float | None = None, method: str = "undefined"
    ) -> Estimate:
        """An estimate with no value, for the stated reason."""
        return cls(None, low, high, n, method, reason)

    def __float__(self) -> float:
        if self.value is None:
            raise UndefinedEstimate(f"this estimate is undefined ({self.reason or 'no reason given'}; n = {self.n})")
        return self.value

    def as_dict(self) -> dict[str, Any]:
        """JSON form ``{"value", "low", "high", "n", "method", "reason"}`` (``flags`` only when there are any)."""
        out: dict[str, Any] = {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "method": self.method,
            "reason": self.reason or None,
        }
        if self.flags:
            out["flags"] = list(self.flags)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Estimate:
        """The inverse of :meth:`as_dict`."""
        return cls(
            data["value"],
            data["low"],
            data["high"],
            int(data["n"]),
            str(data["method"]),
            str(data.get("reason") or ""),
            tuple(data.get("flags", ())),
        )
