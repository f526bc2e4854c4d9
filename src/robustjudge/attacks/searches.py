"""The optimisation attacks by name: O1-O7 of the paper, and the searches among the extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from robustjudge.attacks.adaptive import Adaptive
from robustjudge.attacks.adveval import AdvEval
from robustjudge.attacks.autodan import AutoDAN
from robustjudge.attacks.base import Attack, Plugin, Target
from robustjudge.attacks.beast import Beast
from robustjudge.attacks.best_of_n import BestOfN
from robustjudge.attacks.cheating import Cheating
from robustjudge.attacks.gcg import GCG
from robustjudge.attacks.greedy import Greedy
from robustjudge.attacks.judge_deceiver import JudgeDeceiver
from robustjudge.attacks.random_search import RandomSearch
from robustjudge.attacks.resubmit import Resubmit
from robustjudge.attacks.text import TextAttack
from robustjudge.attacks.tree import Pair, Tap
from robustjudge.errors import ConfigError, UnknownName


def _plain(cls: Any) -> Callable[..., Attack]:
    def make(target: Target, seed: int, quick: bool) -> Attack:
        made: Attack = (cls.quick if quick else cls.reference)(seed=seed, target=target)
        return made

    return make


def _ruled(cls: Any, words: tuple[str, ...] = ("rules",)) -> Callable[..., Attack]:
    """An attack with variants by name: ``NAME/rules`` for one that writes without an attacker model."""

    def make(target: Target, seed: int, quick: bool, variant: str = "") -> Attack:
        if variant and variant not in words:
            raise UnknownName("variant", variant, words)
        flags = {variant: True} if variant else {}
        made: Attack = (cls.quick if quick else cls.reference)(seed=seed, target=target, **flags)
        return made

    return make


def _best_of_n(target: Target, seed: int, quick: bool, variant: str = "") -> Attack:
    inner = TextAttack(variant or "H1", seed=seed, target=target)
    return (BestOfN.quick if quick else BestOfN.reference)(inner=inner, seed=seed)


def _adaptive(target: Target, seed: int, quick: bool, variant: str = "") -> Attack:
    """``E8/NAME``: the search NAME started from the best heuristic text (default: random search)."""
    from robustjudge.attacks.library import attack

    inner = attack(variant or "E3", target, quick=quick)
    if not isinstance(inner, Plugin):
        raise ConfigError(f"{inner.name} is not a built-in attack; build its adaptive form with Adaptive(inner=...)")
    return Adaptive(inner, tuple(TextAttack(h, target=target) for h in STARTS), seed)


STARTS = ("H1", "H2", "H3", "H4", "H5", "H6")
"""The text attacks among which an adaptive search looks for its static winner."""

SEARCHES: Mapping[str, Callable[..., Attack]] = {
    "O1": _ruled(AdvEval),
    "O2": _ruled(Pair),
    "O3": _ruled(Tap),
    "O4": _plain(Cheating),
    "O5": _plain(GCG),
    "O6": _plain(AutoDAN),
    "O7": _plain(Greedy),
    "E1": _plain(JudgeDeceiver),
    "E2": _plain(Beast),
    "E3": _ruled(RandomSearch, ("transfer",)),
    "E4": _best_of_n,
    "E8": _adaptive,
    "Resubmit": _ruled(Resubmit, ("rules", "same")),
}

ALIASES: Mapping[str, str] = {
    "adveval": "O1",
    "pair": "O2",
    "tap": "O3",
    "cheating": "O4",
    "null model": "O4",
    "gcg": "O5",
    "autodan": "O6",
    "greedy": "O7",
    "greedy universal phrase": "O7",
    "universal phrase": "O7",
    "judgedeceiver": "E1",
    "judge deceiver": "E1",
    "beast": "E2",
    "random search": "E3",
    "best-of-n": "E4",
    "best of n": "E4",
    "adaptive": "E8",
    "defense-aware": "E8",
}

OPTIMISATION = ("O1", "O2", "O3", "O4", "O5", "O6", "O7")
EXTENSIONS = ("E1", "E2", "E3", "E4", "E8", "Resubmit")
