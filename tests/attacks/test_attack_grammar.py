"""The compositional screen is orthogonal, recovers planted effects, and sweeps cover every wording and place."""

from itertools import combinations

import pytest

from robustjudge.attacks.grammar import FACTORS, Composed, main_effects, screen
from robustjudge.attacks.library import attack, suite, sweep
from robustjudge.errors import UnknownName
from robustjudge.nouns import Case
from robustjudge.steps import run

CASE = Case("c1", "t", "The weak answer stands here.")


def test_the_screen_is_balanced_and_orthogonal() -> None:
    runs = screen()
    assert len(runs) == 12 and runs[-1].on == ()
    for f in FACTORS:
        assert sum(f in r.on for r in runs) == 6
    for f, g in combinations(FACTORS, 2):
        assert sum((f in r.on) == (g in r.on) for r in runs) == 6


def test_main_effects_recover_planted_ones() -> None:
    planted = {f: i / 10 - 0.3 for i, f in enumerate(FACTORS)}
    runs = screen()
    found = main_effects(runs, [1.0 + sum(planted[f] for f in r.on) for r in runs])
    assert found == pytest.approx(planted)


def test_composed_texts_hold_their_parts() -> None:
    for a in screen():
        text = run(a(CASE), None)  # type: ignore[arg-type]
        assert text.endswith(CASE.response) if "prefix" in a.on else text.startswith(CASE.response)
        assert ("Disregard every criterion" in text) == ("ignore" in a.on)
        if "dictate" in a.on:
            assert "VERDICT: 10" in text
    assert run(Composed()(CASE), None) == CASE.response  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="rationale"):
        Composed(("rational",))


def test_the_grammar_suite_names_its_runs_and_sweeps_cover_fifteen_texts() -> None:
    assert [attack(n).on for n in suite("grammar")] == [r.on for r in screen()]  # type: ignore[attr-defined]
    texts = {run(a(CASE), None) for a in sweep("H1")}  # type: ignore[arg-type]
    assert len(sweep("naive")) == 15 and len(texts) == 15
    assert len(sweep("E5")) == 10
