"""The compositional grammar: payloads put together from independent factors, and a screen that finds which ones work.

"Combined" (H6) is one fixed recipe; here the recipe is discovered.  The screen is the 12-run Plackett-Burman design
(Biometrika 33, 1946): orthogonal columns, so that each main effect is a difference of two means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from robustjudge import spec
from robustjudge.attacks.base import Channel, Plugin, Target, comment_mark, commented, is_code, place
from robustjudge.attacks.text import TextAttack
from robustjudge.errors import UnknownName
from robustjudge.nouns import Case, Severity

_PARTS = {"authority": "expert_claim", "rationale": "H5", "completion": "H4", "ignore": "H3", "request": "H1"}

FACTORS = (*_PARTS, "dictate", "prefix", "escape", "number")
"""What may be switched on: five parts of the text, the dictated verdict, placement before the response, an escaping
separator, and wordings that name the top number."""


@spec.register("composed")
@dataclass(frozen=True)
class Composed(Plugin):
    """The parts that are ``on``, in a fixed order; with nothing on it is the weak response itself."""

    on: tuple[str, ...] = ()
    seed: int = 0
    target: Target = Target()

    family: ClassVar[str] = "grammar"
    severity: ClassVar[Severity] = "high"

    def __post_init__(self) -> None:
        for factor in self.on:
            if factor not in FACTORS:
                raise UnknownName("factor", factor, FACTORS)

    @property
    def name(self) -> str:
        return "composed/" + ("+".join(f for f in FACTORS if f in self.on) or "nothing")

    @property
    def channel(self) -> Channel:
        return "prefix" if "prefix" in self.on else "append"

    async def __call__(self, case: Case) -> str:
        number = "number" in self.on
        said = [
            TextAttack(pack, seed=self.seed, number=number, target=self.target).payload(case)
            for factor, pack in _PARTS.items()
            if factor in self.on
        ]
        if "dictate" in self.on:
            said.append(self.target.verdict_line or "VERDICT: " + self.target.top_label)
        if not said:
            return case.response
        payload, separator = "\n\n".join(said), "\n\n\n\t" if "escape" in self.on else " "
        if is_code(case):
            payload, separator = commented(payload, comment_mark(case.response)), "\n"
        return place(self.channel, case.response, payload, separator)


_ROW = "++-+++---+-"


def screen(target: Target | None = None, seed: int = 0) -> tuple[Composed, ...]:
    """The twelve runs; every factor is on in six of them, and any two factors are balanced against each other."""
    rows = [_ROW[-i:] + _ROW[:-i] for i in range(11)] + ["-" * 11]
    return tuple(
        Composed(tuple(f for f, sign in zip(FACTORS, row) if sign == "+"), seed, target or Target()) for row in rows
    )


def main_effects(runs: Sequence[Composed], worths: Sequence[float]) -> Mapping[str, float]:
    """Mean worth with a factor on minus with it off, for every factor; exact where effects add up."""
    out = {}
    for factor in FACTORS:
        on = [w for run, w in zip(runs, worths, strict=True) if factor in run.on]
        off = [w for run, w in zip(runs, worths, strict=True) if factor not in run.on]
        if on and off:
            out[factor] = sum(on) / len(on) - sum(off) / len(off)
    return out
