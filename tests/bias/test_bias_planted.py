"""Planted biases of known size are recovered within their intervals; a judge without them gets "bounded by"."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from robustjudge.bias import BiasPolicy, Finding, Report, probe
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.registry import load
from robustjudge.execution import Options
from robustjudge.judges import Judge, Prompted
from robustjudge.models import scripted
from robustjudge.models.families import family_of
from robustjudge.models.scripted.base import Scripted
from robustjudge.models.scripted.view import View
from robustjudge.nouns import Case
from robustjudge.prompts.library import template
from robustjudge.protocols import Pairwise, Pointwise, Protocol
from robustjudge.spec import register

CASES = tuple(
    Case(
        f"c{i}",
        f"Task {i}: why does it rain in valley {i}?",
        f"Clouds of kind {i} cool down there. Water falls as rain. That is why it rains.",
        (f"Moist air rises over hill {i} and cools. The vapour condenses, and drops fall as rain.",),
    )
    for i in range(64)
)


def run(
    judge: Scripted,
    tmp: Path,
    names: tuple[str, ...] = ("padding", "markdown", "authority"),
    protocols: tuple[Protocol, ...] = (Pairwise(), Pointwise()),
    cases: tuple[Case, ...] = CASES,
    policy: BiasPolicy = BiasPolicy(),
    **more: Any,
) -> Report:
    name = "scripted/under_test"
    held: tuple[tuple[str, Judge], ...] = (("j", Prompted(name, template("robustjudge"))),)
    options = Options(root=tmp, ledger=None, mode="off", models={name: judge})
    return probe(lambda: iter(cases), held, names=names, protocols=protocols, policy=policy, options=options, **more)


def find(report: Report, name: str, protocol: str = "pointwise") -> Finding:
    return next(f for f in report.findings if (f.name, f.protocol) == (name, protocol))


def holds(f: Finding, true: float) -> bool:
    e = f.effect
    return e.low is not None and e.high is not None and e.low - 1e-9 <= true <= e.high + 1e-9


def test_formatting_and_authority_bonus_are_recovered(tmp_path: Path) -> None:
    judge = scripted.Biased(judge=scripted.Constant(value=4 / 9), markdown=2 / 9, authority=3 / 9)
    report = run(judge, tmp_path)
    marked, cited, padded = (find(report, n) for n in ("markdown", "authority", "padding"))
    assert marked.decision == "biased" and holds(marked, 2 / 9), marked.effect
    assert cited.decision == "biased" and holds(cited, 3 / 9), cited.effect
    assert padded.decision == "bounded" and holds(padded, 0.0), padded.effect
    assert marked.p_adjusted is not None and marked.p_adjusted < 0.01
    assert holds(find(report, "markdown", "pairwise"), 0.5)  # a coin before, a win after
    assert report.exit_code == 1 and "biased: outside" in marked.statement.lower()


def test_length_slope_is_recovered(tmp_path: Path) -> None:
    judge = scripted.Biased(judge=scripted.Constant(value=0.1), length=0.8)
    padded = find(run(judge, tmp_path, ("padding",)), "padding")
    added = 45  # words at least; rounding to a label moves it by half a label at most
    assert padded.decision == "biased"
    assert padded.effect.value is not None and padded.effect.value == pytest.approx(0.8 * added / 100, abs=0.12)


def test_first_slot_preference_is_recovered(tmp_path: Path) -> None:
    inner = scripted.perfect(CASES)
    found = run(scripted.Biased(judge=inner, first=0.3), tmp_path, ("markdown",), (Pairwise(),))
    position = find(found, "position", "pairwise")
    assert holds(position, 0.3) and position.decision == "biased", position.effect
    assert position.more["consistency"].low is not None and position.more["consistency"].low < 0.7
    clean = find(run(inner, tmp_path / "clean", ("markdown",), (Pairwise(),)), "position", "pairwise")
    assert clean.decision == "bounded" and clean.p == 1.0 and "bounded by" in clean.statement.lower()


def test_near_tie_slot_preference_shows_on_identical_candidates(tmp_path: Path) -> None:
    judge = scripted.Biased(judge=scripted.perfect(CASES), near_tie=0.05)
    report = run(judge, tmp_path, ("markdown",), (Pairwise(),))
    assert find(report, "position", "pairwise").effect.value == 0.0
    same = find(report, "position_identical", "pairwise")
    assert same.effect.value == 1.0 and same.decision == "biased"


def test_leniency_shift_is_recovered(tmp_path: Path) -> None:
    inner = scripted.perfect(CASES)
    lenient = find(run(scripted.Biased(judge=inner, leniency=0.4), tmp_path, ("markdown",), (Pointwise(),)), "leniency")
    assert lenient.effect.value == pytest.approx(0.5) and lenient.decision == "biased"  # every bad answer passes
    fair = find(run(inner, tmp_path / "fair", ("markdown",), (Pointwise(),)), "leniency")
    assert fair.effect.value == 0.0 and fair.decision == "bounded"
    assert fair.more["youden_j"].value == 1.0


def test_noise_alone_is_no_bias(tmp_path: Path) -> None:
    judge = scripted.NoisyFlip(judge=scripted.perfect(CASES), rate=0.1)
    report = run(judge, tmp_path, policy=BiasPolicy(band=0.2))
    assert all(f.decision in ("bounded", "inconclusive") for f in report.findings if f.gating), [
        (f.name, f.protocol, f.effect) for f in report.findings
    ]
    retest = find(report, "markdown").retest
    assert retest.value is not None and 0.05 < retest.value < 0.35


def test_constant_judge_is_degenerate_never_unbiased(tmp_path: Path) -> None:
    report = run(scripted.Constant(), tmp_path, ("markdown",), (Pointwise(),))
    assert {f.decision for f in report.findings} == {"degenerate"} and report.exit_code == 1
    assert "no absence of bias" in report.findings[0].statement


def test_unread_verdicts_are_counted_and_an_unequal_share_is_told(tmp_path: Path) -> None:
    judge = scripted.BadParser(judge=scripted.perfect(CASES), rate=0.3)
    report = run(judge, tmp_path, ("markdown",), (Pointwise(),))
    f = find(report, "markdown")
    assert f.coverage.value is not None and 0.3 < f.coverage.value < 0.7
    assert f.worst.high is not None and f.effect.high is not None and f.worst.high > f.effect.high
    silent = run(scripted.Refuser(rate=1.0), tmp_path / "none", ("markdown",), (Pointwise(),))
    nothing = find(silent, "markdown")
    assert nothing.effect.value is None and nothing.decision == "inconclusive" and silent.exit_code == 3


def test_a_judge_that_takes_the_longer_text_is_found_on_answers_of_one_sentence(tmp_path: Path) -> None:
    """The twin of a lone sentence must not be longer by a character, or it wins over the untouched answer as padding does."""
    cases = tuple(replace(c, response=f"Clouds of kind {i} cool down there and fall.") for i, c in enumerate(CASES))
    report = run(scripted.LengthBiased(), tmp_path, ("padding",), (Pairwise(),), cases)
    f = find(report, "padding", "pairwise")
    assert f.decision == "biased" and f.effect.low is not None and f.effect.low > 0.3, f.statement


def test_few_cases_decide_nothing(tmp_path: Path) -> None:
    judge = scripted.Biased(judge=scripted.Constant(value=4 / 9), markdown=0.5)
    report = run(judge, tmp_path, ("markdown",), (Pointwise(),), CASES[:20])
    f = find(report, "markdown")
    assert f.decision == "inconclusive" and "Not decided, fewer than 60 cases" in f.statement and f.needed == 60


def test_own_family_bonus_is_recovered_at_equal_human_preference(tmp_path: Path) -> None:
    cases = tuple(
        replace(
            c,
            response=c.response + (" Certainly!" if i % 2 else ""),
            references=(c.reference + ("" if i % 2 else " Certainly!"),),
            meta=(
                ("generator", "openai/gpt-4o" if i % 2 else "anthropic/claude-3-haiku"),
                ("human_winner", "response" if i % 4 < 2 else "reference"),
                ("reference_generator", "anthropic/claude-3-haiku" if i % 2 else "openai/gpt-4o"),
            ),
        )
        for i, c in enumerate(CASES)
    )
    own = scripted.Biased(judge=scripted.Constant(), family=0.3, own=("Certainly!",))
    family = family_of("openai/gpt-4o")
    report = run(own, tmp_path, ("markdown",), (Pairwise(),), cases, families={"j": family})
    f = find(report, "self_preference", "pairwise")
    assert f.effect.value == 1.0 and f.decision == "biased"
    assert f.more["picks_own"].value == 1.0


@register("scripted/test_by_author")
@dataclass(frozen=True)
class ByAuthor(Scripted):
    """Ninths: 2 to 4 by the case, 2 more for answers signed A, and of its own ``love`` for one signature."""

    love: str = ""
    lenient: int = 0

    def merit(self, view: View, i: int) -> float:
        text = view.candidates[i]
        base = 2 + len(text.split("hill")[-1].split()[0]) + 2 * text.endswith("[A]")
        return (base + 2 * bool(self.love and text.endswith(self.love)) + self.lenient) / 9


def authored(writers: tuple[str, ...]) -> tuple[Case, ...]:
    """Answers to the same tasks by each writer in turn, against one by the next writer."""
    models = {"A": "openai/gpt-4o", "B": "anthropic/claude-3-haiku", "C": "mistral/mistral-large"}
    return tuple(
        replace(
            c,
            response=f"{c.response} On hill {i} too. [{one}]",
            references=(f"{c.reference} On hill {i} too. [{two}]",),
            meta=(("generator", models[one]), ("reference_generator", models[two])),
        )
        for i, c in enumerate(CASES)
        for one, two in [(writers[i % len(writers)], writers[(i + 1) % len(writers)])]
    )


def test_a_second_judge_takes_quality_and_leniency_out_of_self_preference(tmp_path: Path) -> None:
    """Answers of A are better for both judges, and one judge is lenient: only the planted 2/9 is left."""
    names = {"loving": ByAuthor(love="[A]"), "fair": ByAuthor(lenient=1)}
    held = tuple((n, Prompted(f"scripted/{n}", template("robustjudge"))) for n in names)
    families = {"loving": family_of("openai/gpt-4o"), "fair": family_of("anthropic/claude-3-haiku")}

    def found(writers: tuple[str, ...], protocols: tuple[Protocol, ...], at: str) -> dict[tuple[str, str], Finding]:
        options = Options(
            root=tmp_path / at, ledger=None, mode="off", models={f"scripted/{n}": j for n, j in names.items()}
        )
        cases = authored(writers)
        report = probe(
            lambda: iter(cases), held, names=("markdown",), protocols=protocols, families=families, options=options
        )
        return {(f.judge, f.protocol): f for f in report.findings if f.name == "self_preference_crossed"}

    three = found(("A", "C", "B", "C"), (Pointwise(),), "three")
    loving, fair = three["loving", "pointwise"], three["fair", "pointwise"]
    assert holds(loving, 2 / 9) and loving.effect.n == 32 and not loving.flags[:1]
    assert holds(fair, 0.0) and "fair sees" in loving.claim and not loving.gating
    two = found(("A", "B"), (Pointwise(), Pairwise()), "two")
    assert holds(two["loving", "pointwise"], 2 / 9) and two["loving", "pointwise"].effect.n == 64
    assert two["loving", "pointwise"].effect.low is not None and two["loving", "pointwise"].effect.low > 0
    assert holds(two["fair", "pointwise"], 2 / 9), "between two families alone nobody can tell whose preference it is"
    assert any("no third family" in flag for flag in two["fair", "pointwise"].flags)
    assert two["loving", "pairwise"].effect.value == 0.0, "both judges take the better answer of A every time"


def test_who_wrote_an_answer_is_read_from_a_plain_file(tmp_path: Path) -> None:
    row = {"task": "t", "response": "r", "reference": "q", "generator": "openai/gpt-4o", "human_winner": "response"}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"task": "t2", "response": "r"}) + "\n")
    first, second = load(str(tmp_path / "c.jsonl"))
    assert isinstance(first, Case) and isinstance(second, Case)
    assert (first.get("generator"), first.get("human_winner")) == ("openai/gpt-4o", "response") and second.meta == ()


def test_built_in_cases_serve(tmp_path: Path) -> None:
    cases = tuple(builtin(limit=4))
    report = run(scripted.perfect(cases), tmp_path, ("padding", "authority"), cases=cases)
    assert {f.protocol for f in report.findings} == {"pairwise", "pointwise"}
    assert all(f.decision == "inconclusive" or f.effect.n >= 60 for f in report.findings)


def test_a_judge_that_hangs_on_its_prompt_is_found_and_another_is_not(tmp_path: Path) -> None:
    both = ("prompt_order", "chain_of_thought")
    moved = run(scripted.Noisy(seed=4), tmp_path, both, (Pointwise(),))
    for name in both:  # pure noise flips as often when asked again: no excess
        f = find(moved, name)
        assert f.effect.low is not None and f.effect.high is not None and f.effect.low <= 0 <= f.effect.high
        assert f.more["flips"].value is not None and f.more["flips"].value > 0.7 and not f.gating
    steady = run(PromptBound(), tmp_path / "b", both, (Pointwise(),))
    assert find(steady, "prompt_order").decision == "biased" and find(steady, "prompt_order").effect.value == 1.0
    assert find(steady, "chain_of_thought").effect.value == 0.0


@register("scripted/test_prompt_bound")
@dataclass(frozen=True)
class PromptBound(Scripted):
    """Scores by the first word of the prompt, and a little by the answer."""

    def merit(self, view: View, i: int) -> float:
        return 0.6 * view.trusted.lstrip().startswith("You") + 0.3 * ("hill" in view.candidates[i])
