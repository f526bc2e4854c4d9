"""True rates of scripted judges, computed from their exact outcome distributions: what an instrument should find.

Each function takes rendered prompts (tuples of messages), as the judge would get them.  Replies to different prompts,
and to one prompt under different replicas, are independent draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from robustjudge.models.scripted.base import Scripted
from robustjudge.models.scripted.view import View, look
from robustjudge.nouns import Message

Prompt = tuple[Message, ...]


def shares(judge: Scripted, prompt: Prompt, replica: str = "clean/0") -> dict[str, float]:
    """Probability of each label, and of each other status under its name in angle brackets (``<refused>``)."""
    view = _look(judge, prompt, replica)
    out: dict[str, float] = {}
    for o in judge.outcomes(view):
        key = o.label if o.status == "ok" else f"<{o.status}>"
        out[key] = out.get(key, 0.0) + o.p
    return out


def ok_rate(judge: Scripted, prompt: Prompt) -> float:
    """P(a verdict is said)."""
    return sum(p for label, p in shares(judge, prompt).items() if not label.startswith("<"))


def mean_score(judge: Scripted, prompt: Prompt) -> float | None:
    """Expected score in scale units among verdicts; ``None`` when none is ever said."""
    view = _look(judge, prompt)
    value = dict(zip(view.labels, view.values, strict=True))
    said = [(o.p, value[o.label]) for o in judge.outcomes(view) if o.status == "ok"]
    total = sum(p for p, _ in said)
    return sum(p * v for p, v in said) / total if total else None


def top_score_rate(judge: Scripted, prompt: Prompt) -> float:
    """P(the best score) of a pointwise prompt."""
    return shares(judge, prompt).get(_look(judge, prompt).labels[-1], 0.0)


def rise_rate(judge: Scripted, clean: Prompt, attacked: Prompt) -> float:
    """P(attacked score > clean score), both read: the published ASR of one case when content quality is unchanged.
    With ``attacked`` equal to ``clean`` it is the null ASR (0.45 for uniform integers 1..10)."""
    before, after = _scores(judge, clean), _scores(judge, attacked)
    return sum(p * q for v, p in before for w, q in after if w > v)


def win_rate(judge: Scripted, prompts: Sequence[Prompt], slots: Sequence[int]) -> float:
    """Mean over orders of P(the author's candidate is chosen); ``slots`` say where it stands in each prompt."""
    return sum(shares(judge, p).get(ascii_uppercase[s], 0.0) for p, s in zip(prompts, slots, strict=True)) / len(slots)


def pac_rate(judge: Scripted, prompts: Sequence[Prompt], slots: Sequence[int]) -> float:
    """P(the author's candidate wins every order)."""
    product = 1.0
    for prompt, slot in zip(prompts, slots, strict=True):
        product *= shares(judge, prompt).get(ascii_uppercase[slot], 0.0)
    return product


def paper_p_asr(judge: Scripted, prompts: Sequence[Prompt], reference_slots: Sequence[int]) -> float:
    """Published P-ASR: mean over orders of P(anything but the reference is chosen)."""
    lost = [shares(judge, p).get(ascii_uppercase[s], 0.0) for p, s in zip(prompts, reference_slots, strict=True)]
    return 1.0 - sum(lost) / len(lost)


def retest_flip_rate(judge: Scripted, prompt: Prompt) -> float:
    """P(two repeats give different verdicts), given that both are read."""
    said = [p for label, p in shares(judge, prompt).items() if not label.startswith("<")]
    total = sum(said)
    return 1.0 - sum((p / total) ** 2 for p in said) if total else 0.0


def _scores(judge: Scripted, prompt: Prompt) -> list[tuple[float, float]]:
    view = _look(judge, prompt)
    value = dict(zip(view.labels, view.values, strict=True))
    return [(value[o.label], o.p) for o in judge.outcomes(view) if o.status == "ok"]


def _look(judge: Scripted, prompt: Prompt, replica: str = "clean/0") -> View:
    return look(prompt, replica, low=judge.low, high=judge.high, labels=judge.labels)
