"""The experiment: which cells measure which bias, all of them on one plan with one ledger and one table.

Scores: the edited answer and its twin are scored beside the untouched one.  Pairs: the edited answer stands against the
untouched one, in both orders; the untouched one against itself is the cleanest test of position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from robustjudge.attacks.base import Attack, Channel, NoCandidate, Plugin
from robustjudge.attacks.controls import Identity
from robustjudge.bias.edits import Edit, pair, probe_names
from robustjudge.bias.finding import Report
from robustjudge.bias.findings import findings
from robustjudge.bias.policy import DEFAULT, ITSELF, BiasPolicy
from robustjudge.bias.variants import MARK, VARIANTS, variants
from robustjudge.errors import DataError
from robustjudge.execution import Options, execute
from robustjudge.judges import Judge
from robustjudge.nouns import Case, Severity
from robustjudge.plan import Plan, Source, prompted
from robustjudge.protocols import Pairwise, Pointwise, Protocol
from robustjudge.spec import register
from robustjudge.trial import Cell

BOTH: tuple[Protocol, ...] = (Pairwise(), Pointwise())


@register("bias_reference")
@dataclass(frozen=True)
class Reference(Plugin):
    """The reference in place of the answer: how the judge scores what is known to be right."""

    name: ClassVar[str] = "bias/reference"
    family: ClassVar[str] = "bias"
    category: ClassVar[str] = "bias"
    severity: ClassVar[Severity] = "low"
    channel: ClassVar[Channel] = "replace"
    control: ClassVar[str] = "reference"
    reads_reference: ClassVar[bool] = True

    async def __call__(self, case: Case) -> str:
        if not case.references:
            raise NoCandidate("the case has no reference")
        return case.reference


def itself(case: Case) -> Case:
    """The case whose answer is compared with itself."""
    return replace(
        case,
        id=case.id + ITSELF,
        references=(case.response,),
        distractors=(),
        cluster=case.cluster or case.id,
    )


def bias_plan(
    cases: Source,
    judges: Iterable[tuple[str, Judge]],
    protocols: Iterable[Protocol] = BOTH,
    names: Iterable[str] = (),
    seeds: tuple[int, ...] = (0,),
) -> Plan:
    """Every cell of the probes ``names`` (default: all, and the variants of the prompt) for ``judges``.

    A protocol that no judge has a prompt for is left out.
    """
    held = tuple(judges)
    wanted = tuple(p for p in protocols if all(_asks(j, p) for _, j in held))
    if not wanted:
        raise DataError("no protocol is left that every judge has a prompt for (pointwise or pairwise)")
    chosen = tuple(names) or (*probe_names(), *VARIANTS)
    edits: tuple[Attack, ...] = tuple(e for name in chosen if name not in VARIANTS for e in pair(name))
    varied = tuple(v for name, judge in held for v in variants(name, judge, tuple(n for n in chosen if n in VARIANTS)))

    def both() -> Iterator[Case]:
        pairs = any(p.kind == "pairwise" for p in wanted)
        for case in cases():
            yield case
            if pairs:
                yield itself(case)

    return Plan(
        cases=both,
        judges=(*held, *varied),
        protocols=wanted,
        attacks=(Identity(), Reference(), *edits),
        seeds=seeds,
        keep=_keep,
    )


def _asks(judge: Judge, protocol: Protocol) -> bool:
    """Whether a judge's prompts have a form for the protocol (services answer whatever they are shown)."""
    return all(getattr(p.template, protocol.kind, None) is not None for p in prompted(judge))


def _keep(cell: Cell) -> bool:
    """Pairs of an answer with itself take the edits; scores and real pairs take the untouched answers."""
    twin = cell.case.id.endswith(ITSELF)
    if MARK in cell.judge_name:  # a variant of the prompt judges the untouched answers only
        paired = cell.protocol.kind != "pairwise" or bool(cell.case.references)
        return isinstance(cell.attack, Identity) and not twin and paired
    if cell.protocol.kind == "pairwise":
        edited = isinstance(cell.attack, Edit)
        return twin if edited else isinstance(cell.attack, Identity) and (twin or bool(cell.case.references))
    if isinstance(cell.attack, Reference):
        return not twin and bool(cell.case.references)
    return not twin


def facts_of(cases: Iterable[Case]) -> Mapping[str, Any]:
    """What the findings need to know of the cases beyond the table: lengths, who wrote what, what people preferred."""
    out: dict[str, dict[str, Any]] = {}
    for case in cases:
        out[case.id] = {
            "longer": len(case.response) - len(case.reference),
            "reference": bool(case.references),
            "generator": case.get("generator"),
            "reference_generator": case.get("reference_generator"),
            "human": case.get("human_winner"),
            "expected": case.expected,
        }
    return out


def probe(
    cases: Source,
    judges: Iterable[tuple[str, Judge]],
    *,
    names: Iterable[str] = (),
    protocols: Iterable[Protocol] = BOTH,
    policy: BiasPolicy = DEFAULT,
    families: Mapping[str, str] | None = None,
    population: str = "the given cases",
    options: Options | None = None,
) -> Report:
    """Run the probes and read off the findings.  ``families`` names the model family of each judge (self-preference);
    the run folder stays, with its table and ledger."""
    held = tuple(judges)
    plan = bias_plan(cases, held, protocols, names)
    run = execute(plan, options or Options(slug="bias"))
    return findings(
        run.table(), facts_of(cases()), policy, families=families or {}, population=population, run=run.path
    )
