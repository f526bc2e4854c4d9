"""Which rows run together, and the store of prefixes."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from robustjudge.models.whitebox.bundles import Row, bundles, chunks, common, covered, homes, packs
from robustjudge.models.whitebox.prefix import MOST, Store, Stretch

ids = st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple)


@given(ids, ids)
@settings(max_examples=200, deadline=None)
def test_common_prefix(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    n = common(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


@given(st.lists(ids, min_size=1, max_size=30), st.integers(1, 20), st.data())
@settings(max_examples=200, deadline=None)
def test_every_row_is_in_one_bundle_that_shares_its_prefix(
    sequences: list[tuple[int, ...]], worth: int, data: st.DataObject
) -> None:
    rows = [Row(s, (data.draw(st.integers(0, len(s) - 1)),)) for s in sequences]
    found = bundles(rows, worth)
    assert sorted(i for b in found for i in b.rows) == list(range(len(rows)))
    for b in found:
        assert len({rows[i].ids[: b.shared] for i in b.rows}) == 1
        assert all(b.shared <= rows[i].reads[0] for i in b.rows)
    assert sorted(i for c in chunks(rows, range(len(rows)), 8, 4) for i in c) == list(range(len(rows)))


@given(st.lists(ids, min_size=1, max_size=12), st.lists(ids, max_size=4), st.integers(1, 9), st.data())
@settings(max_examples=200, deadline=None)
def test_every_row_has_one_home_and_no_known_sequence_saves_much_more(
    sequences: list[tuple[int, ...]], known: list[tuple[int, ...]], worth: int, data: st.DataObject
) -> None:
    rows = [Row(s, (data.draw(st.integers(0, len(s) - 1)),)) for s in sequences]
    found = homes(rows, known, worth)
    assert sorted(i for members in found.values() for i in members) == list(range(len(rows)))
    depth = {i: covered(known[at], rows[i]) if at >= 0 else 0 for at, members in found.items() for i in members}
    for other in known:
        more = sum(max(0, covered(other, row) - depth[i]) for i, row in enumerate(rows))
        assert more < (worth if any(depth.values()) else 1)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 29)), min_size=1, max_size=30), st.integers(20, 90))
@settings(max_examples=200, deadline=None)
def test_packs_hold_every_row_once_within_the_limit(sizes: list[tuple[int, int]], tokens: int) -> None:
    rows = [Row((1,) * n, (n - 1,)) for n, _ in sizes]
    starts = {i: start % len(rows[i].ids) for i, (_, start) in enumerate(sizes)}
    found = packs(rows, starts, tokens, 5)
    assert sorted(i for pack in found for i in pack) == list(range(len(rows)))
    new = [[len(rows[i].ids) - starts[i] for i in pack] for pack in found]
    assert all(len(pack) <= 5 and (sum(pack) <= tokens or len(pack) == 1) for pack in new)


def test_swaps_of_one_suffix_fall_into_bins() -> None:
    """A row with a swap late in the suffix shares the suffix up to there."""
    stem, suffix, after = tuple(range(100)), tuple(range(200, 220)), (7, 8, 9)
    rows = []
    for at in range(20):
        for token in range(25):
            swapped = (*suffix[:at], 1000 + token, *suffix[at + 1 :])
            ids = (*stem, *swapped, *after)
            rows.append(Row(ids, (len(ids) - 1,)))
    found = bundles(rows, 512)
    assert 3 <= len(found) <= 10
    assert min(b.shared for b in found) == 100
    assert max(b.shared for b in found) > 110
    computed = sum(len(rows[i].ids) - b.shared for b in found for i in b.rows)
    assert computed < 0.75 * sum(len(r.ids) - 100 for r in rows)


def test_swaps_of_a_known_suffix_need_no_bins() -> None:
    """Each row is run from its swap on, in one call, when the incumbent is known."""
    here = tuple(range(140))
    rows = [Row((*here[:at], 1000 + token, *here[at + 1 :]), (139,)) for at in range(100, 120) for token in range(5)]
    assert list(homes(rows, [here[:90], here], 64)) == [1]
    assert [b.shared for b in bundles(rows, 64, here)] == [100]
    starts = {i: covered(here, row) for i, row in enumerate(rows)}
    assert sorted(starts.values()) == [at for at in range(100, 120) for _ in range(5)]
    sizes = [sum(140 - starts[i] for i in pack) for pack in packs(rows, starts, 1024, 999)]
    assert sum(sizes) == 5 * sum(range(21, 41)) and max(sizes) <= 1.1 * min(sizes)


def test_two_orders_are_two_bundles() -> None:
    first = [Row((*range(50), 900 + i, *range(60, 100)), (90,)) for i in range(30)]
    second = [Row((*range(500, 590), 900 + i, 1, 2), (92,)) for i in range(30)]
    found = bundles([*first, *second], 512)
    assert sorted(b.shared for b in found) == [50, 90]


def test_chunks_hold_rows_of_equal_length() -> None:
    rows = [Row((1,) * n, (n - 1,)) for n in (4, 5, 4, 5, 4)]
    assert chunks(rows, range(5), 8, 100) == [(0, 2), (4,), (1,), (3,)]
    assert chunks(rows, (0, 2, 4), 1000, 2) == [(0, 2), (4,)]


def test_the_store_finds_the_longest_prefix_and_forgets_the_oldest() -> None:
    store = Store(1 << 20)
    store.keep(Stretch((1, 2)))
    store.keep(Stretch((1, 2, 3, 4)))  # extends the first, which is dropped
    store.keep(Stretch((1, 9)))
    assert store.longest((1, 2, 3, 7)).ids == (1, 2, 3) and store.longest((1, 9, 9)).ids == (1, 9)
    assert store.longest((5,)).ids == ()
    for i in range(MOST - 1):
        store.keep(Stretch((100 + i,)))
    assert store.longest((1, 2, 3, 4)).ids == (1,)  # only (1, 9), used later, is left
