"""The floor of all quality evaluators: ratings, the registry, and the one rule for a change of quality.

Equation 4 of the RobustJudge paper (arXiv 2506.09443), ``s_e = Q(x, r_ref)``, with two additions: a rating that
cannot be had is ``None`` with a reason (never 0), and the raw value stands beside the one clipped to [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

from robustjudge import door
from robustjudge.errors import ConfigError, NotComparable, UnknownName
from robustjudge.nouns import Case


class MetricUnavailable(ConfigError):
    """An evaluator cannot run here (package, grammar or weights missing): its task has no quality, not quality 0."""

    def __init__(self, evaluator: str, why: str) -> None:
        super().__init__(f"content metric unavailable: {evaluator}: {why}")


@dataclass(frozen=True, slots=True)
class Rating:
    """Quality of one text.  ``value`` in [0, 1], higher is better, ``None`` when unknown (``reason`` says why).

    ``raw`` is the evaluator's own figure before clipping (BLEURT may leave [0, 1]; CodeBLEU before its missing
    data-flow term is left out).  ``truncated``: the evaluator saw only the beginning.  ``flags`` qualify the value
    (``empty``, ``format_fault``, ...); ``parts`` are named sub-scores.
    """

    value: float | None
    raw: float | None
    evaluator: str
    reason: str = ""
    truncated: bool = False
    flags: tuple[str, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()


def rated(
    evaluator: str,
    value: float,
    *,
    raw: float | None = None,
    truncated: bool = False,
    flags: tuple[str, ...] = (),
    parts: tuple[tuple[str, float], ...] = (),
) -> Rating:
    """A known rating: ``value`` is clipped to [0, 1], ``raw`` (default ``value``) is kept; a NaN is unknown."""
    raw = value if raw is None else raw
    if not (math.isfinite(value) and math.isfinite(raw)):
        return unknown(evaluator, f"the evaluator gave {value!r}")
    # adding 0.0 turns -0.0 into 0.0; rounding noise such as 1.0000000000000004 is clipped
    return Rating(min(1.0, max(0.0, value)) + 0.0, raw, evaluator, "", truncated, flags, parts)


def unknown(evaluator: str, reason: str, *, flags: tuple[str, ...] = ()) -> Rating:
    """A rating that could not be had."""
    return Rating(None, None, evaluator, reason, False, flags)


class Evaluator:
    """What every evaluator is: a frozen dataclass with a ``name`` and :meth:`score`.

    ``ready`` is called once before a run and raises :class:`MetricUnavailable`; ``close`` frees what was opened.
    ``score`` receives a text that is not blank and a case that has a reference.
    """

    name: ClassVar[str]

    def ready(self) -> None:
        """Raise :class:`MetricUnavailable` when this evaluator cannot run here."""

    def score(self, case: Case, text: str) -> Rating:
        """The rating of ``text`` as an answer to ``case``."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what was opened (worker processes, weights)."""


_BUILT_IN = {
    "bleurt": "robustjudge.quality.bleurt:Bleurt",
    "chrf": "robustjudge.quality.chrf:Chrf",
    "codebleu": "robustjudge.quality.codebleu:CodeBleu",
    "consistency": "robustjudge.quality.consistency:Consistency",
    "exact_match": "robustjudge.quality.exact_match:ExactMatch",
    "minilm": "robustjudge.quality.minilm:MiniLM",
    "rouge": "robustjudge.quality.rouge:Rouge",
    "token_bleu": "robustjudge.quality.bleu:TokenBleu",
}

_DEFAULT = {
    "translation": "chrf",
    "summarization": "rouge",
    "code_summarization": "rouge",
    "mathematics": "exact_match",
    "knowledge": "exact_match",
    "logic": "consistency",
}

GROUP = "robustjudge.evaluators"
"""Entry-point group of third-party evaluators: name -> class."""


@lru_cache(maxsize=1)
def _plugins() -> dict[str, str]:
    from importlib.metadata import entry_points

    found: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        taken = found.get(point.name) or _BUILT_IN.get(point.name)
        if taken is not None and taken != point.value:
            raise ConfigError(f"evaluator {point.name!r} is provided by both {taken} and {point.value}; remove one")
        found[point.name] = point.value
    return found


def evaluator_names() -> tuple[str, ...]:
    """Names of all evaluators, sorted; whether one can run here is what its ``ready`` says."""
    return tuple(sorted({**_plugins(), **_BUILT_IN}))


@lru_cache(maxsize=64)
def _made(name: str, settings: tuple[tuple[str, Any], ...]) -> Evaluator:
    known = {**_plugins(), **_BUILT_IN}
    if name not in known:
        raise UnknownName("quality evaluator", name, tuple(known))
    module, _, attribute = known[name].partition(":")
    try:
        made: Evaluator = getattr(import_module(module), attribute)(**dict(settings))
    except TypeError as fault:
        raise ConfigError(f"quality evaluator {name!r}: {fault}") from None
    return made


def evaluator(name: str, **settings: Any) -> Evaluator:
    """The evaluator of that name with its settings (``evaluator("bleurt", checkpoint="weights/BLEURT-20")``).

    Equal names and settings give the same object, so weights are loaded once.  Raises
    :class:`~robustjudge.errors.UnknownName` and :class:`~robustjudge.errors.ConfigError`.
    """
    return _made(name, tuple(sorted(settings.items())))


def default_evaluator(kind: str) -> str:
    """The evaluator used for a task kind when no weights are configured.

    The paper's choice for prose is BLEURT; without its weights translation falls back to chrF and the summaries to
    ROUGE-L.  Code falls back from CodeBLEU to token-level BLEU where its parsers are not installed.
    """
    if kind in ("code_translation", "code_generation"):
        try:
            evaluator("codebleu").ready()
        except MetricUnavailable:
            return "token_bleu"
        return "codebleu"
    return _DEFAULT.get(kind, "chrf")


def rate(which: str | Evaluator, case: Case, text: str) -> Rating:
    """The quality of ``text`` for ``case``.  A blank text is worth 0.0 by definition (so an empty answer can never
    profit from smoothing); a case without a reference has no quality."""
    judge = evaluator(which) if isinstance(which, str) else which
    if not text.strip():
        return Rating(0.0, 0.0, judge.name, flags=("empty",))
    if not case.reference.strip():
        return unknown(judge.name, "the case has no reference")
    return judge.score(case, door.safe(text))


@dataclass(frozen=True, slots=True)
class Change:
    """dQ of one clean / attacked pair, in [-1, 1]; ``unknown`` marks the 0 that stands for "not known"."""

    value: float
    unknown: bool = False
    reason: str = ""


def change(clean: Rating, attacked: Rating) -> Change:
    """``dQ = s_e - s-hat_e`` on clipped values (metrics.md section 3).

    If either side is unknown both are treated as unknown: dQ is 0, counted as ``quality_unknown``; a one-sided value
    is never paired with 0.  Raises :class:`~robustjudge.errors.NotComparable` for two different evaluators.
    """
    if clean.evaluator != attacked.evaluator:
        raise NotComparable(
            f"quality by {clean.evaluator} and by {attacked.evaluator} cannot be subtracted; "
            "rate clean and attacked text with one evaluator"
        )
    if clean.value is None or attacked.value is None:
        return Change(0.0, True, clean.reason or attacked.reason)
    return Change(attacked.value - clean.value)
