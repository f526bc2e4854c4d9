"""Adjusted p values against worked examples and statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.multitest import multipletests

from robustjudge.errors import DataError
from robustjudge.measures.multiplicity import benjamini_hochberg, benjamini_yekutieli, bonferroni, holm


def test_worked_example() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p).tolist() == pytest.approx([0.02, 0.04, 0.04, 0.02])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_against_statsmodels(p: list[float]) -> None:
    for ours, name in (
        (holm, "holm"),
        (benjamini_hochberg, "fdr_bh"),
        (benjamini_yekutieli, "fdr_by"),
        (bonferroni, "bonferroni"),
    ):
        assert ours(p).tolist() == pytest.approx(list(multipletests(p, method=name)[1]), abs=1e-12)


def test_nothing_and_nonsense() -> None:
    assert holm([]).size == 0
    with pytest.raises(DataError):
        holm([0.5, 1.5])
