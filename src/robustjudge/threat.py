"""Threat models as values: who answers the attacker, what it may see, what it may spend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from robustjudge.judges import Judge, undefended
from robustjudge.nouns import Budget
from robustjudge.spec import register

register("budget")(Budget)


def slug(label: str) -> str:
    """A threat model's label as a part of a file name."""
    return label.replace(",", "").replace(" ", "-")


@register("threat")
@dataclass(frozen=True)
class ThreatModel:
    """``answers`` says which judge gives feedback: the ``victim`` as deployed (adaptive; through a defended judge this
    is the defense-aware attack), the victim ``undefended`` (transfer), or a ``surrogate`` (transfer).

    ``draws`` = 1 asks every question under one fixed draw of the defense's randomness, which a search can overfit;
    m > 1 averages feedback over m draws, the same for all candidates of one ask and fresh for every ask (expectation
    over transformation).  ``penalty`` is what being blocked for sure costs a text in log-odds (``Odds``, ``Losses``:
    they are read on the branch where every detector let it pass); a blocked ``Score`` is worth 0 as it is.
    ``verdict_only`` reduces scores to win / not-win, ``rationale`` shows the judge's words.
    ``attacker`` is the model that writes for the attack, empty for none.  ``name`` tells threat
    models apart that the other settings do not (the surrogate's name).
    """

    answers: Literal["victim", "undefended", "surrogate"] = "victim"
    surrogate: Judge | None = None
    draws: int = 1
    verdict_only: bool = False
    rationale: bool = False
    attacker: str = ""
    budget: Budget = Budget()
    penalty: float = 10.0
    name: str = field(default="", metadata={"spec": False})

    @property
    def label(self) -> str:
        """What rows and reports call it: whose answers, and what else differs from the plain model."""
        parts = [f"{self.answers} {self.name}".rstrip()]
        parts += [f"{self.draws} draws"] if self.draws > 1 else []
        parts += ["win or not"] if self.verdict_only else []
        parts += ["rationale"] if self.rationale else []
        return ", ".join(parts)

    def oracle(self, victim: Judge) -> Judge:
        """The judge that answers the attacker."""
        if self.answers == "undefended":
            return undefended(victim)
        if self.answers == "surrogate" and self.surrogate is not None:
            return self.surrogate
        return victim
