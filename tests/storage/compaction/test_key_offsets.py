"""The table of the last offset of each key."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.storage.compaction import key_offsets
from odradek.broker.storage.compaction.key_offsets import KeyOffsets


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 1 << 62)), max_size=40))
def test_it_behaves_as_a_dictionary(pairs: list[tuple[bytes, int]]) -> None:
    keys = KeyOffsets(24 * 50, 1.0)
    for key, offset in pairs:
        keys.put(key, offset)
    wanted = dict(pairs)
    assert {key: keys.get(key) for key in wanted} == wanted
    assert keys.get(b"never put") == -1
    assert keys.size == len(wanted)


def test_it_is_full_at_the_load_factor_and_still_finds_everything() -> None:
    keys = KeyOffsets(24 * 1000, 0.9)
    count = 0
    while not keys.is_full:
        keys.put(b"%d" % count, count)
        count += 1
    assert (count, keys.slots, keys.utilization) == (900, 1000, 0.9)
    assert all(keys.get(b"%d" % index) == index for index in range(count))


def test_its_memory_is_bounded() -> None:
    tracemalloc.start()
    keys = KeyOffsets(1 << 18, 0.9)
    for index in range(keys.capacity):
        keys.put(b"%d" % index, index)
    own = tracemalloc.Filter(inclusive=True, filename_pattern=key_offsets.__file__)
    taken = sum(each.size for each in tracemalloc.take_snapshot().filter_traces([own]).statistics("filename"))
    tracemalloc.stop()
    assert 1 << 17 < taken < (1 << 18) + 10_000


def test_a_full_table_finds_no_missing_key() -> None:
    keys = KeyOffsets(24 * 5, 1.0)
    while not keys.is_full:
        keys.put(b"%d" % keys.size, keys.size)
    assert keys.size == 4
    assert all(keys.get(b"no %d" % index) == -1 for index in range(50))


def test_one_key_fits_into_any_memory() -> None:
    keys = KeyOffsets(1, 0.1)
    assert keys.put(b"k", 3) == -1
    assert keys.put(b"k", 5) == 3
    assert (keys.get(b"k"), keys.get(b"j"), keys.is_full) == (5, -1, True)
