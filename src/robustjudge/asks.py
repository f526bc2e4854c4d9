"""The asks: every question that a judge, an attack or a defense may put to the outside.

Two floors.  *Attack asks* (``Score``, ``Write``, ``Odds``, ``Losses``, ``Swaps``, ``Rate``) name no model: the trial
binds them to the judge that answers the attacker under the threat model.  *Model asks* (``Complete``, ``Weigh``,
``Surprise``, ``Spell``, ``Gradient``, ``Invoke``, ``Measure``) are answered by the engine.  What crosses is text,
integers and floats, never tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robustjudge.nouns import (
    Call,
    Case,
    Completion,
    Feedback,
    LabelCall,
    Message,
    Slate,
    Surprisal,
    Weights,
    Written,
)
from robustjudge.steps import Ask

if TYPE_CHECKING:
    from robustjudge.objective import Objective

# --------------------------------------------------------------------------- model asks (the engine answers)


@dataclass(frozen=True)
class Complete(Ask[tuple[Completion, ...]]):
    """Generate a reply to each call; answers in order, each with its status."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Weigh(Ask[tuple[Weights, ...]]):
    """Log-probabilities of verdict labels instead of a generated reply."""

    calls: tuple[LabelCall, ...]


@dataclass(frozen=True)
class Surprise(Ask[tuple[Surprisal, ...]]):
    """Per-token log-probabilities of texts under ``model``, each after ``context`` (may be empty)."""

    model: str
    texts: tuple[str, ...]
    context: str = ""


@dataclass(frozen=True)
class Spell(Ask[tuple[str, ...]]):
    """The text of each token-id sequence under ``model``'s tokenizer; ids that do not survive
    decode-then-encode answer the empty string (illegal candidates)."""

    model: str
    ids: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Gradient(Ask[tuple[tuple[int, ...], ...]]):
    """For each token position of ``suffix`` (which ends the candidate part of every call), the ``k`` legal token ids
    whose swap most raises the margin, summed over the calls, by the embedding gradient.  The margin is that of the
    objective with this ``target``; without one, log P(labels[0]) - log P(labels[1:])."""

    calls: tuple[LabelCall, ...]
    suffix: tuple[int, ...]
    k: int
    target: str = ""


@dataclass(frozen=True)
class Sample(Ask[tuple[tuple[int, ...], ...]]):
    """``n`` next-token ids drawn without replacement after the text of the candidate in each call (BEAST)."""

    model: str
    prefixes: tuple[tuple[Message, ...], ...]
    n: int
    seed: int = 0


@dataclass(frozen=True)
class Invoke(Ask[Completion]):
    """Put a slate to a judge that somebody else owns (an HTTP service or a Python callable, by name)."""

    service: str
    slate: Slate


@dataclass(frozen=True)
class Measure(Ask[tuple[float | None, ...]]):
    """Content quality of each text for the case by the named evaluator, in [0, 1]; ``None`` is unknown."""

    evaluator: str
    case: Case
    texts: tuple[str, ...]


# --------------------------------------------------------------------------- attack asks (the trial binds them)


@dataclass(frozen=True)
class Score(Ask[tuple[Feedback, ...]]):
    """How well would each candidate do?  (:class:`~robustjudge.nouns.Access` VERDICT or SCORE.)

    ``case`` (default: the case under attack) lets a universal attack score a text on another training case.
    """

    candidates: tuple[str, ...]
    case: Case | None = None


@dataclass(frozen=True)
class Write(Ask[tuple[Written, ...]]):
    """Texts of the attacker model for each prompt (role ``attacker``)."""

    prompts: tuple[tuple[Message, ...], ...]
    temperature: float = 1.0
    max_tokens: int = 512
    seed: int = 0


@dataclass(frozen=True)
class Odds(Ask[tuple[Feedback, ...]]):
    """Mean over the objective's slates of log P(own label) - log P(rival label) (pairwise, best-of-K) or of the
    expected score mapped to log-odds (pointwise), for each candidate text."""

    objective: Objective
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Losses(Ask[tuple[float, ...]]):
    """Loss of the target verdict for each token-id suffix appended to the objective's stem; lower is better for
    the attacker, ``inf`` marks an illegal candidate."""

    objective: Objective
    suffixes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Swaps(Ask[tuple[tuple[int, ...], ...]]):
    """For each position of ``suffix``, the ``k`` most promising token ids under the objective's gradient."""

    objective: Objective
    suffix: tuple[int, ...]
    k: int


@dataclass(frozen=True)
class Rate(Ask[tuple[float | None, ...]]):
    """Content quality of each candidate by the run's evaluator; ``None`` is unknown."""

    candidates: tuple[str, ...]
