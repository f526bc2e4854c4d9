"""Draws are seeded, their probabilities right, repeats hidden and late."""

from __future__ import annotations

import pytest

from robustjudge.errors import DataError
from robustjudge.measures.intervals import newcombe
from robustjudge.measures.statement import bounded_statement
from robustjudge.nouns import Estimate
from robustjudge.profile.frame import draw, sitting


def test_draws() -> None:
    items = [f"i{k}" for k in range(100)]
    drawn = draw(items, 20, seed=3)
    assert drawn == draw(list(reversed(items)), 20, seed=3) and drawn != draw(items, 20, seed=4)
    assert {d.inclusion_prob for d in drawn} == {0.2} and len({d.item for d in drawn}) == 20
    strata = {i: "yes" if k < 10 else "no" for k, i in enumerate(items)}
    over = draw(items, 20, strata=strata, sizes={"yes": 10, "no": 10})
    assert sum(1 / d.inclusion_prob for d in over) == pytest.approx(100)
    assert sum(d.stratum == "yes" for d in draw(items, 20, strata=strata)) == 2
    for bad in ({"n": 200}, {"n": 20, "strata": strata, "sizes": {"yes": 11, "no": 9}}):
        with pytest.raises(DataError):
            draw(items, **bad)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="twice"):
        draw(["a", "a"], 1)


def test_hidden_repeats_come_late() -> None:
    order = sitting(draw([f"i{k}" for k in range(60)], 60), seed=1)
    again = [d for d in order if d.repeat]
    assert len(again) == 6 and [d.position for d in order] == list(range(66))
    for d in again:
        first = next(x for x in order if x.item == d.item and not x.repeat)
        assert d.position - first.position > 10 and d.position >= 30


def test_the_sentence_names_what_is_ruled_out() -> None:
    e = newcombe(5, 100, 2, 100)
    told = bounded_statement(
        "Position", "pairs", e, band=(-0.1, 0.1), p_adjusted=0.4, coverage=Estimate(1, 0.9, 1, 9, "")
    )
    assert "ruled out at 95 %" in told and "Bounded by the band" in told and "Holm p = 0.4" in told
    none = bounded_statement("Position", "pairs", Estimate.undefined("no readable pair"), band=(-0.1, 0.1))
    assert none.endswith("Effect undefined (no readable pair): inconclusive.")
