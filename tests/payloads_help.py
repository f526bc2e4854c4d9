"""Every text that the shipped attacks would send, by attack and wording: what pages and files must show and never obey."""

from __future__ import annotations

from functools import cache
from typing import Any

from robustjudge.attacks.library import attack, attack_names, sweep
from robustjudge.nouns import Access, Case, Turn, Weak
from robustjudge.steps import Ask, run

CASE = Case(
    "c",
    "Name the capital of France.",
    "It is Lyon.",
    ("It is Paris.",),
    (Weak("It is Nice.", "wrong"),),
    (Turn("user", "hi"),),
)


def _text(made: Any) -> str | None:
    """What an attack sends; ``None`` for one that cannot say without asking a judge or a model."""

    def nobody(ask: Ask[Any]) -> Any:
        raise LookupError(type(ask).__name__)

    try:
        text = run(made(CASE), nobody)
    except LookupError:
        return None
    return str(text)


@cache
def payloads() -> dict[str, str]:
    """Name -> text: every attack and control that writes without asking, in every wording and place."""
    out: dict[str, str] = {}
    for name in attack_names():
        made = attack(name, quick=True)
        every = [made]
        if getattr(made, "pack", ""):
            every += list(sweep(name))
        for i, one in enumerate(every):
            text = _text(one) if one.access == Access.NONE else None
            if text is not None and text not in out.values():
                out[f"{name}/{i}"] = text
    return out


def batches(size: int) -> list[str]:
    """The payloads joined, ``size`` at a time."""
    texts = list(payloads().values())
    return ["\n".join(texts[i : i + size]) for i in range(0, len(texts), size)]
