"""The collector's settings are what they were, whatever happened in between."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from robustjudge.engine.collector import YOUNG, paused, rare


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    kept, on = gc.get_threshold(), gc.isenabled()
    yield
    gc.set_threshold(*kept)
    (gc.enable if on else gc.disable)()


@pytest.mark.parametrize(("given", "within"), [(700, YOUNG), (0, 0), (50_000, 50_000)])
def test_it_looks_less_often_for_a_while(given: int, within: int) -> None:
    gc.set_threshold(given, 11, 12)
    with pytest.raises(ValueError), rare():
        assert gc.get_threshold() == (within, 11, 12)
        raise ValueError
    assert gc.get_threshold() == (given, 11, 12)


def test_of_two_runs_that_overlap_none_leaves_its_setting_behind() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = rare(), rare()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_a_pause_ends_and_nests() -> None:
    gc.enable()
    with paused():
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
