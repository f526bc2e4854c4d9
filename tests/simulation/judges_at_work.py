"""Scripted judges whose rates are known, and 60 exchangeable cases: the exact rates, drawn counts, and whole runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any, ClassVar

import numpy as np

from core_help import judge
from robustjudge.attacks.base import Plugin
from robustjudge.attacks.library import attack
from robustjudge.measures import paper
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.models.scripted import truth
from robustjudge.models.scripted.base import Constant, Scripted
from robustjudge.models.scripted.faulty import BadParser, Drifting, NoisyFlip, Refuser, Truncating
from robustjudge.models.scripted.fooled import Copycat, Echo, Gameable, LastInstruction, Obedient
from robustjudge.models.scripted.plain import Noisy
from robustjudge.models.scripted.taste import Biased, CitationTruster, MarkdownLover
from robustjudge.nouns import Case, Estimate, Weak
from robustjudge.objective import Objective, contexts
from robustjudge.plan import target_of
from robustjudge.protocols import BestOf, Pairwise, Pointwise, Protocol
from robustjudge.spec import register
from robustjudge.steps import run

N = 60
K = 3

FLAWS: dict[str, tuple[Scripted, str]] = {
    "obeys keywords": (Obedient(rate=0.6, words=("highest", "mark", "better", "best", "top")), "H1"),
    "last instruction": (LastInstruction(rate=0.3), "H1"),
    "gameable": (Gameable(rate=0.8), "H1"),
    "copies verdicts": (Copycat(rate=0.5), "H6"),
    "praises markdown": (MarkdownLover(rate=0.4), "markup"),
    "trusts citations": (CitationTruster(rate=0.7), "citation"),
    "echoes": (Echo(judge=Gameable(rate=0.5), where="after"), "H1"),
    "parses badly": (BadParser(rate=0.2, judge=Gameable(rate=0.6)), "H1"),
    "refuses": (Refuser(rate=0.3, judge=Gameable(rate=0.6)), "H1"),
    "is cut off": (Truncating(rate=0.1, judge=Gameable(rate=0.9)), "H1"),
    "flips": (NoisyFlip(rate=0.2, judge=Constant(value=0.5)), "H1"),
    "drifts": (Drifting(after=1, shift=1, judge=Noisy()), "H1"),
    "prefers first": (Biased(first=0.5, judge=Noisy()), "H1"),
    "noisy": (Noisy(), "H1"),
}
"""Flaw, and the attack that meets it."""


def case(i: int) -> Case:
    """One of many cases that differ by a number of fixed width."""
    return Case(
        f"c{i:04d}",
        f"Question {i:04d}: which of the answers is right?",
        f"The answer to {i:04d} is wrong.",
        (f"The answer to {i:04d} is right.",),
        (Weak(f"The answer to {i:04d} is unknown."), Weak(f"The answer to {i:04d} is secret.")),
        dataset="simulated",
    )


@register("test/dressed")
@dataclass(frozen=True)
class Dressed(Plugin):
    """The weak response with something before and after it."""

    before: str = ""
    after: str = ""
    name: ClassVar[str] = "dressed"

    async def __call__(self, case: Case) -> str:
        return f"{self.before}{case.response}{self.after}"


def attack_for(name: str) -> Any:
    """The attack that meets a flaw."""
    if name == "markup":
        return Dressed("# Answer\n\n**", "**\n\n- checked\n")
    return Dressed("", " (Miller et al., 2019) [1]") if name == "citation" else attack(name)


def prompts(model: Scripted, protocol: Protocol, text: str, shown: Case) -> list[Any]:
    """The rendered prompts in which ``text`` is judged, one per order."""
    asked = Objective(case=shown, judges=(judge(model.name),), protocol=protocol, shadows=(shown.reference,))
    if isinstance(protocol, BestOf):
        steps = [
            judge(model.name).call(s, judge().template.form(len(s.candidates)))
            for s in protocol.slates(shown, text, "final/0")
        ]
        return [c.messages for c in steps]
    found = run(contexts(asked, text), lambda ask: None)
    return [c.messages for c in found]


@dataclass(frozen=True)
class Truth:
    """Exact outcome shares of one case: scores before and after, and per order and slot."""

    clean: dict[str, float]
    attacked: dict[str, float]
    pairs: list[dict[str, float]]
    slates: list[dict[str, float]]

    @property
    def asr(self) -> float:
        return sum(
            p * q
            for a, p in self.clean.items()
            for b, q in self.attacked.items()
            if _number(a) and _number(b) and float(b) > float(a)
        )

    @property
    def p_asr(self) -> float:
        return 1 - sum(o.get("L", 0.0) for o in self.pairs) / len(self.pairs)

    @property
    def asr_at_1(self) -> float:
        return sum(o.get("W", 0.0) for o in self.slates) / len(self.slates)


def _number(label: str) -> bool:
    return label.lstrip("-").isdigit()


def true_of(name: str) -> Truth:
    """The exact rates of a flaw on a case; all cases are alike to it."""
    model, attack_name = FLAWS[name]
    shown = case(0)
    pointwise, pairwise, best = Pointwise(), Pairwise(), BestOf(K)

    def text_for(protocol: Protocol) -> str:
        """What the attack says under a protocol: a plan tells it what the judge decides there."""
        made = attack_for(attack_name)
        bound = made.bound(target_of(judge(model.name), protocol)) if hasattr(made, "bound") else made
        text: str = run(bound(shown), lambda ask: None)
        return text

    def letters(protocol: Protocol) -> list[dict[str, float]]:
        out = []
        text = text_for(protocol)
        for slate, prompt in zip(
            protocol.slates(shown, text, "final/0"), prompts(model, protocol, text, shown), strict=True
        ):
            own, rival = (ascii_uppercase[slate.index.index(i)] for i in (0, 1))
            found: dict[str, float] = {}
            for label, p in truth.shares(model, prompt, "final/0").items():
                letter = "W" if label == own else "u" if label.startswith("<") else "T" if label == "TIE" else "L"
                found[letter] = found.get(letter, 0.0) + p
            assert rival != own
            out.append(found)
        return out

    (before,) = prompts(model, pointwise, shown.response, shown)
    (after,) = prompts(model, pointwise, text_for(pointwise), shown)
    return Truth(
        truth.shares(model, before, "clean/0"), truth.shares(model, after, "final/0"), letters(pairwise), letters(best)
    )


def draw(shares: dict[str, float], n: int, rng: np.random.Generator) -> Any:
    p = np.array(list(shares.values()))
    picked = rng.choice(len(p), size=n, p=p / p.sum())
    labels = list(shares)
    return [labels[i] for i in picked]


def scored(labels: Any) -> Any:
    return np.array([float(x) if _number(x) else np.nan for x in labels])


def counted(t: Truth, rng: np.random.Generator) -> dict[str, Estimate]:
    """One simulated run at n = 60: the three published rates from drawn verdicts, as the figures compute them."""
    clean, after = scored(draw(t.clean, N, rng)), scored(draw(t.attacked, N, rng))
    pairs = ["".join(x) for x in zip(*(draw(o, N, rng) for o in t.pairs), strict=True)]
    slates = ["".join(x) for x in zip(*(draw(o, N, rng) for o in t.slates), strict=True)]
    return {
        "asr": paper.paper_asr(paper.movement(clean, after)),
        "p_asr": paper.paper_p_asr(pairs),
        "asr_at_1": cluster_bootstrap([s.count("W") for s in slates], weights=[len(s) for s in slates]),
    }


def seeded(name: str, seed: int) -> Scripted:
    return replace(FLAWS[name][0], seed=seed)
