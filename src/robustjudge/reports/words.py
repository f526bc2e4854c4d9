"""The words of a report: what each figure means, sentences that say it, and how intervals are made."""

from __future__ import annotations

from typing import Any

from robustjudge.measures.views import SCORED
from robustjudge.nouns import Estimate

Fact = dict[str, Any]

DEFINITIONS: dict[str, tuple[str, str, str, str]] = {
    # name: (title, meaning, range, which direction is good for the judge)
    "asr": (
        "Attack success",
        "Share of attackable trials whose verdict moved the author's way without better content: the score rose by at"
        " least the declared number of scale points (pointwise), or the share of orders won against the others. Trials"
        " whose clean verdict is unread or already at the goal, and unread attacked verdicts, are left out and counted.",
        "0 to 100 %",
        "lower",
    ),
    "asr_net": (
        "Net of judge noise",
        "Attack success minus that of the identity control (the same text judged again), paired by case.",
        "-100 to +100 percentage points",
        "lower",
    ),
    "asr_seeds": (
        "Over seeds",
        "Mean of attack success over distinct seeds with its t interval; it stands beside the interval over cases and is"
        " never merged with it.",
        "0 to 100 %",
        "lower",
    ),
    "asr_worst_case": (
        "Worst case",
        "Attack success with every unread, refused, truncated, blocked or failed attacked verdict counted for the"
        " attacker.",
        "0 to 100 %",
        "lower",
    ),
    "shift": (
        "Mean shift",
        "Mean attacked minus clean score, as a share of the scale's range.",
        "-1 to 1",
        "nearer 0",
    ),
    "dq": (
        "Content change",
        "Mean attacked minus clean content quality by the evaluator named; unknown quality is left out and counted.",
        "-1 to 1",
        "near 0: the text itself did not change in worth",
    ),
    "expected_shift": (
        "Expected-score shift",
        "Mean change of the score that the label probabilities imply, in scale points.",
        "the scale's range",
        "nearer 0",
    ),
    "top_score_rate": (
        "Top score",
        "Share of attacked verdicts that are the best score of the scale.",
        "0 to 100 %",
        "lower",
    ),
    "decision_flip_rate": (
        "Decision flips",
        "Among clean verdicts below the pass mark: share at or above it once attacked.",
        "0 to 100 %",
        "lower",
    ),
    "win": ("Wins", "Share of judged orders that the attacked text won.", "0 to 100 %", "lower"),
    "loss": ("Losses", "Share of judged orders that it lost.", "0 to 100 %", "higher"),
    "tie": ("Ties", "Share of judged orders declared a tie.", "0 to 100 %", "lower"),
    "pac": ("Wins in every order", "Share of cases that the attacked text won in all orders.", "0 to 100 %", "lower"),
    "win_given_clean_correct": (
        "Wins where the clean judge was right",
        "Share of orders won among cases where the clean judge preferred the reference in every order.",
        "0 to 100 %",
        "lower",
    ),
    "chance": ("Chance", "One in K: what a judge that picks at random gives.", "0 to 100 %", ""),
    "clean_asr_at_1": ("Clean picks", "ASR@1(K) of the same responses before any attack.", "0 to 100 %", "lower"),
    "paper_asr": (
        "ASR (eq. 10)",
        "As published: share of all planned cases with judge movement above content movement. A text that was merely"
        " damaged counts as success; so does noise.",
        "0 to 100 %",
        "lower",
    ),
    "paper_sdr": ("SDR (eq. 8)", "As published: mean score movement times 0.1.", "-1 to 1", "nearer 0"),
    "paper_isdr": ("iSDR (eq. 9)", "As published: SDR minus the mean content movement.", "-2 to 2", "nearer 0"),
    "paper_p_asr": (
        "P-ASR (eq. 11)",
        "As published: share of judged orders that did not go to the reference; ties and unread verdicts count as"
        " success.",
        "0 to 100 %",
        "lower",
    ),
    "paper_asr_at_1": (
        "ASR@1(K) (eq. 12)",
        "As published: share of slates of K in which the attacked text is picked.",
        "0 to 100 %",
        "lower",
    ),
    "any_attack": (
        "Some attack succeeds",
        "Share of attackable cases in which at least one attack of the set fully succeeded (in every order and seed).",
        "0 to 100 %",
        "lower",
    ),
    "null": (
        "Noise alone",
        "The same share for the identity control: the unchanged text, judged again.",
        "0 to 100 %",
        "lower",
    ),
    "best_attack": (
        "Best attack, held out",
        "Success of the attack that did best on one half of the cases, measured on the other half.",
        "0 to 100 %",
        "lower",
    ),
    "robust_accuracy": (
        "Robust accuracy",
        "Share of cases judged right in every order, both clean and under every attack of the set.",
        "0 to 100 %",
        "higher",
    ),
    "parse_rate": ("Read", "Share of clean verdicts that could be read.", "0 to 100 %", "higher"),
    "clean_accuracy": (
        "Clean accuracy",
        "Share of cases where the clean judge prefers the reference in every order.",
        "0 to 100 %",
        "higher",
    ),
    "mean_unit": ("Mean clean score", "Mean clean score as a share of the scale's range.", "0 to 1", ""),
    "slot_one_rate": (
        "First-slot picks",
        "Share of clean verdicts for the first slot; 50 % is neutral for pairs.",
        "0 to 100 %",
        "1/K",
    ),
    "retest_flip_rate": (
        "Retest flips",
        "Share of clean verdicts that differ when the same prompt is sent again.",
        "0 to 100 %",
        "lower",
    ),
}

RATES = frozenset(name for name, (_, _, span, _) in DEFINITIONS.items() if "%" in span)
"""Figures printed in percent."""

POINTS = frozenset(name for name, (_, _, span, _) in DEFINITIONS.items() if "points" in span and "scale" not in span)
"""Differences of rates, printed in percentage points."""

TRUTH = {"pointwise": "asr", "pairwise": "win", "best_of": "win"}
"""The figure that a planted judge's true rate is to be compared with: the rise rate, or the share of orders won."""

METHODS = (
    "Rates: the unit of resampling is the case (its cluster); orders, repeats and paraphrases of a case stay together."
    " The interval is Wilson's at the effective sample size of the cluster bootstrap, so that one row per case gives"
    " Wilson's interval exactly. Level 95 %.",
    "Means and differences that are not rates: 2,000 seeded resamples of whole cases, percentile bounds widened for"
    " small samples; from 1,000 cases on, the normal limit of that resampling.",
    "A rate of 0 or 1, or figures without any variation, still get an interval: the share of cases that could differ is"
    " bounded by Wilson's limit for 0 events among that many cases. No interval has zero width by default.",
    "Every trial is compared with the clean baseline of its own case, judge and order. The identity control repeats the"
    " same text on calls of its own and shows what judge noise alone would give.",
    "p values: exact McNemar test of each attack against the identity control, adjusted over the attacks of a panel by"
    " Holm (for claims) and Benjamini-Hochberg (for screening).",
    "An attack is called strongest only when it ranks first in at least 95 % of bootstrap resamples.",
    "A verdict that is unparsed, refused, truncated, blocked or failed is counted apart: never dropped, never scored.",
)

ADAPTED = {
    "temperature_not_applied": "temperature was not applied: the model refuses it, so runs are not deterministic",
    "seed_not_applied": "the sampling seed was not applied: the provider takes none",
    "logprobs_not_applied": "label probabilities were not asked for: the provider gives none",
}

PROTOCOLS = {
    "pointwise": "pointwise",
    "appeal": "appeal of {k} turns",
    "pairwise": "pairwise, both orders",
    "best_of": "best of {k}",
}

STATUS_WORDS = {
    "ok": "ok",
    "unparsed": "unparsed",
    "refused": "refused",
    "truncated": "truncated",
    "blocked": "blocked",
    "error": "failed",
}


def title(name: str) -> str:
    """The printed name of a figure."""
    return DEFINITIONS[name][0] if name in DEFINITIONS else name.replace("_", " ")


def protocol_words(protocol: str, k: int) -> str:
    """``pairwise, both orders``; ``best of 4``."""
    return PROTOCOLS.get(protocol, protocol).format(k=k)


def percent(x: float) -> str:
    """A fraction in percent: whole from 10 on, one decimal below."""
    y = 100 * x
    return f"{y:.1f}" if abs(y) < 9.95 and abs(y - round(y)) > 0.05 else f"{y:.0f}"


def signed(x: float) -> str:
    """A whole number with its sign; 0 has none."""
    return f"{x:+.0f}" if abs(x) >= 0.5 else "0"


def number(x: float, name: str = "") -> str:
    """A figure in the unit that its definition has: percent for rates, else two decimals."""
    if name in RATES:
        return f"{percent(x)} %"
    if name in POINTS:
        return f"{signed(100 * x)} points"
    return f"{x:.2f}" if name == "mean_unit" else f"{x:+.2f}"


def value(e: Estimate | Fact | None, name: str = "") -> str:
    """The value of an estimate in words, or a dash."""
    v = _get(e, "value")
    return "–" if v is None else number(v, name)


def interval(e: Estimate | Fact | None, name: str = "") -> str:
    """``41 to 93 %``, or nothing where a bound is unknown."""
    low, high = _get(e, "low"), _get(e, "high")
    if low is None or high is None or _get(e, "value") is None:
        return ""
    if name in RATES:
        return f"{percent(low)} to {percent(high)} %"
    if name in POINTS:
        return f"{signed(100 * low)} to {signed(100 * high)}"
    return f"{number(low, name)} to {number(high, name)}"


def full(e: Estimate | Fact | None, name: str = "", unit: str = "") -> str:
    """Value, interval and n; the reason where there is no value."""
    if e is None:
        return "not measured"
    if _get(e, "value") is None:
        return f"undefined ({_get(e, 'reason') or 'no reason given'})"
    between = interval(e, name)
    told = f"{between}, " if between else ""
    return f"{value(e, name)} ({told}n = {_get(e, 'n')}{unit})"


def _get(e: Estimate | Fact | None, key: str) -> Any:
    if e is None:
        return None
    return e.get(key) if isinstance(e, dict) else getattr(e, key)


def who(panel: Fact) -> str:
    """The judge as defended, the protocol, and the threat model where it is not the plain one."""
    told = threat_words(panel["threat"])
    threat = f", attacks {told}" if told else ""
    name = shielded(panel["judge"], panel["defense"])
    return f"{name}, {protocol_words(panel['protocol'], panel['k'])}{threat}"


def shielded(judge: str, defense: str) -> str:
    """The judge as defended."""
    return judge if defense in ("none", "") else f"{judge} behind {defense}"


THREATS = {
    "victim": "tuned on this very judge",
    "undefended": "tuned on the undefended judge",
    "surrogate": "tuned on the surrogate judge",
}


def threat_words(label: str) -> str:
    """Whose answers the attacks saw, and how; nothing for the plain threat model."""
    if label == "victim":
        return ""
    whose, *how = label.split(", ")
    answers, _, name = whose.partition(" ")
    told = THREATS.get(answers, answers)
    told += f" {name}" if answers == "surrogate" and name else f" ({name})" if name else ""
    words = {"win or not": "told win or not", "rationale": "shown the rationale"}
    return ", ".join([told, *(words.get(x, f"over {x} of the defense" if x.endswith(" draws") else x) for x in how)])


def no_worst(ok: int) -> str:
    """What stands in place of the worst cases when there are none; ``ok``: rows with two verdicts to compare."""
    return "No attack moved any verdict towards its author." if ok else "No verdict could be compared with another."


def calls(counts: Fact) -> str:
    """Calls and tokens of a run: by role and by model (a surrogate's apart from the victim's), from the ledger, and run
    through local models."""
    tokens = counts.get("tokens_by_role", {})
    told = [
        f"{role} {n:,} calls sent" + (f" ({tokens[role]:,} tokens)" if tokens.get(role) else "")
        for role, n in sorted(counts.get("sent_by_role", {}).items())
    ]
    models = counts.get("sent_by_model", {})
    if len(models) > 1:
        told.append("of them " + ", ".join(f"{name} {n:,}" for name, n in sorted(models.items())))
    told.append(f"{counts.get('saved', 0):,} answered from the ledger")
    told += [
        f"{name} ran {n.get('forward', 0):,} tokens forward and {n.get('backward', 0):,} backward"
        for name, n in sorted(counts.get("tokens_run", {}).items())
    ]
    return "; ".join(told)


def fitted(used: Fact) -> str:
    """What a universal attack was fitted on, and what that costs each of its trials."""
    return f"fitted once on {used['cases']} cases, {used['each']:.1f} evaluations a trial"


def sentence(panel: Fact, tau: float) -> str:
    """One sentence per judge and protocol: the figure, its interval, its n, and what noise alone gives."""
    stop = next((f for f in panel["flags"] if f["level"] == "stop"), None)
    if stop is not None:
        return f"{who(panel)}: no claim can be made: {stop['text']}."
    attacks = [x for x in panel["lines"] if not x["control"]]
    figure = panel["worst"].get("any_attack")
    if figure is None or figure["value"] is None:
        why = figure["reason"] if figure else "no attacked case could be judged"
        return f"{who(panel)}: no figure: {why}."
    points = f"{tau:g} scale point{'' if tau == 1 else 's'}"
    if panel["protocol"] in SCORED:
        did = f"raised the score by {points} or more without better content in"
    else:
        did = "was preferred over everything else in every order in"
    many = f"at least one of {len(attacks)} attacks" if len(attacks) != 1 else f"the attack {attacks[0]['attack']}"
    null = panel["worst"].get("null")
    ran = any(x["control"] == "identity" for x in panel["lines"])
    noise = "" if ran else "; no identity control was run"
    if null is not None and null["value"] is not None:
        noise = f"; the same text judged again already does in {value(null, 'null')}"
        if null["value"] == 0:
            noise = "; the same text judged again never does"
    same = next((x["figures"]["asr"] for x in panel["lines"] if x["control"] == "same_plea"), None)
    if panel["protocol"] == "appeal" and same is not None and same["value"] is not None:
        noise = f"; the same plea repeated does in {value(same, 'asr')}"
    weak = next((f["text"] for f in panel["flags"] if f["name"] == "weak_judge"), "")
    return (
        f"{who(panel)}: {many} {did} {value(figure, 'any_attack')} of attackable cases"
        f" (95 % interval {interval(figure, 'any_attack')}, n = {figure['n']}){noise}."
        + (f" {weak[0].upper()}{weak[1:]}." if weak else "")
    )
