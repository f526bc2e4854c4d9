"""Attack, shield and calibrate LLM judges, and decide whether a judge prompt may ship.

The names below are the public API; each is imported when it is first used, so that ``import robustjudge`` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustjudge.attacks.library import attack as attack, expand as attack_names
    from robustjudge.datasets.builtin_cases import builtin as builtin_cases
    from robustjudge.datasets.registry import load as load_cases
    from robustjudge.defenses.library import defense_of as defense
    from robustjudge.execution import Options as Options, Run as Run, execute as run
    from robustjudge.exports import compare as compare, export as export
    from robustjudge.judges import (
        Guarded as Guarded,
        Panel as Panel,
        Prompted as Prompted,
        Repeated as Repeated,
        Service as Service,
    )
    from robustjudge.models.service import open_service as open_service
    from robustjudge.nouns import (
        Access as Access,
        Budget as Budget,
        Case as Case,
        Estimate as Estimate,
        Sampling as Sampling,
        Slate as Slate,
        Verdict as Verdict,
        Weak as Weak,
    )
    from robustjudge.plan import Plan as Plan
    from robustjudge.profile import calibrate_judge as calibrate_judge
    from robustjudge.prompts.declare import declare as judge_prompt
    from robustjudge.prompts.library import template as template
    from robustjudge.prompts.lint import lint as lint
    from robustjudge.protocols import BestOf as BestOf, Pairwise as Pairwise, Pointwise as Pointwise
    from robustjudge.scales import Scale as Scale, read as read
    from robustjudge.spec import register as register
    from robustjudge.threat import ThreatModel as ThreatModel

    __version__: str

_PUBLIC = {
    "Access": "nouns:Access",
    "BestOf": "protocols:BestOf",
    "Budget": "nouns:Budget",
    "Case": "nouns:Case",
    "Estimate": "nouns:Estimate",
    "Guarded": "judges:Guarded",
    "Options": "execution:Options",
    "Pairwise": "protocols:Pairwise",
    "Panel": "judges:Panel",
    "Plan": "plan:Plan",
    "Pointwise": "protocols:Pointwise",
    "Prompted": "judges:Prompted",
    "Repeated": "judges:Repeated",
    "Run": "execution:Run",
    "Sampling": "nouns:Sampling",
    "Scale": "scales:Scale",
    "Service": "judges:Service",
    "Slate": "nouns:Slate",
    "ThreatModel": "threat:ThreatModel",
    "Verdict": "nouns:Verdict",
    "Weak": "nouns:Weak",
    "attack": "attacks.library:attack",
    "attack_names": "attacks.library:expand",
    "builtin_cases": "datasets.builtin_cases:builtin",
    "calibrate_judge": "profile:calibrate_judge",
    "compare": "exports:compare",
    "defense": "defenses.library:defense_of",
    "export": "exports:export",
    "judge_prompt": "prompts.declare:declare",
    "lint": "prompts.lint:lint",
    "load_cases": "datasets.registry:load",
    "open_service": "models.service:open_service",
    "read": "scales:read",
    "register": "spec:register",
    "run": "execution:execute",
    "template": "prompts.library:template",
}
"""Public name -> module and the name it has there."""

__all__ = [
    "Access",
    "BestOf",
    "Budget",
    "Case",
    "Estimate",
    "Guarded",
    "Options",
    "Pairwise",
    "Panel",
    "Plan",
    "Pointwise",
    "Prompted",
    "Repeated",
    "Run",
    "Sampling",
    "Scale",
    "Service",
    "Slate",
    "ThreatModel",
    "Verdict",
    "Weak",
    "attack",
    "attack_names",
    "builtin_cases",
    "calibrate_judge",
    "compare",
    "defense",
    "export",
    "judge_prompt",
    "lint",
    "load_cases",
    "open_service",
    "read",
    "register",
    "run",
    "template",
]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("robustjudge")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        globals()[name] = found = _version()
        return found
    place = _PUBLIC.get(name)
    if place is None:
        raise AttributeError(f"module 'robustjudge' has no attribute {name!r}; public names: {', '.join(_PUBLIC)}")
    from importlib import import_module

    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"robustjudge.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
