"""The bounded statement of a bias test: one sentence that says what was found *and* what is ruled out."""

from __future__ import annotations

from robustjudge.measures.bias_effects import decide
from robustjudge.nouns import Estimate


def bounded_statement(
    name: str,
    population: str,
    effect: Estimate,
    *,
    band: tuple[float, float],
    p_adjusted: float | None = None,
    retest: Estimate | None = None,
    coverage: Estimate | None = None,
    detectable: float | None = None,
    adjustment: str = "Holm",
    design: str = "",
) -> str:
    """Population, n, effect with interval, adjusted p, retest noise, what is ruled out, coverage, and the decision
    against the equivalence ``band``.  "No bias found" never stands alone."""
    head = f"{name}: {effect.n} cases of {population}{', ' + design if design else ''}. "
    if effect.value is None:
        return f"{head}Effect undefined ({effect.reason}): inconclusive."
    parts = [f"Effect {effect.value:+.3f}"]
    if effect.low is not None and effect.high is not None:
        parts[0] += f" (95 % interval {effect.low:+.3f} to {effect.high:+.3f})"
    if p_adjusted is not None:
        parts.append(f"{adjustment} p = {p_adjusted:.3g}")
    if retest is not None:
        parts.append("retest flip rate " + (f"{retest.value:.3f}" if retest.value is not None else "unknown"))
    found = decide(effect, band)
    if effect.low is not None and effect.high is not None:
        parts.append(f"an effect below {effect.low:+.3f} or above {effect.high:+.3f} is ruled out at 95 %")
    if detectable is not None:
        parts.append(f"the smallest effect seen with 80 % power is {detectable:.3f}")
    if coverage is not None and coverage.value is not None:
        parts.append(f"read {coverage.value:.1%}")
    told = {"bounded": "bounded by", "biased": "biased: outside", "inconclusive": "inconclusive against"}[found]
    return f"{head}{'; '.join(parts)}. {told.capitalize()} the band {band[0]:+g} to {band[1]:+g}."
