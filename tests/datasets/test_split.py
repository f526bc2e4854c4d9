"""Splits: seeded, by cluster, blind to the order of the file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import spec
from robustjudge.datasets import Split
from robustjudge.errors import ConfigError, DataError
from robustjudge.nouns import Case


def made(sizes: list[int]) -> list[Case]:
    return [Case(f"{k}-{i}", "q", "r", cluster=f"k{k}") for k, size in enumerate(sizes) for i in range(size)]


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=10, max_size=40), seed=st.integers(0, 5), turn=st.randoms())
def test_split_is_a_partition_by_cluster_and_order_free(sizes: list[int], seed: int, turn: object) -> None:
    cases = made(sizes)
    parts = Split(seed=seed)(cases)
    assert sorted(c.id for part in (parts.train, parts.validation, parts.test) for c in part) == sorted(
        c.id for c in cases
    )
    sides = [{c.cluster for c in part} for part in (parts.train, parts.validation, parts.test)]
    assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])
    assert abs(len(sides[0]) - 0.6 * len(sizes)) <= 1
    turned = Split(seed=seed)(cases[::-1])
    assert {c.id for c in turned.train} == {c.id for c in parts.train}


def test_seeds_differ_and_missing_clusters_are_the_case() -> None:
    cases = [Case(f"c{i}", "q", "r") for i in range(30)]
    assert Split(seed=1)(cases).train != Split(seed=2)(cases).train
    assert len(Split(0.5, 0.0, 0.5)(cases).test) == 15


def test_a_share_that_would_be_empty_is_refused() -> None:
    with pytest.raises(DataError, match="too few"):
        Split()(made([5]))


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5), (1.5, -0.5, 0.0), (float("nan"), 0.5, 0.5)])
def test_shares_must_be_shares(shares: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError):
        Split(*shares)


def test_spec_round_trip() -> None:
    assert spec.load(spec.dump(Split(0.8, 0.0, 0.2, seed=7))) == Split(0.8, 0.0, 0.2, seed=7)
