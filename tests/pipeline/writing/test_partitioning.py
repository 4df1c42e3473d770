from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.partitioner import murmur2 as murmur2_of_one
from odradek.client.producer.partitioner import partition_of_key
from odradek.pipeline.writing.partitioning import StickyPartitions, murmur2, partitions_of_keys


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(0, 3))
def test_keys_together_have_the_same_hashes_as_alone(keys: list[bytes | None], skipped: int) -> None:
    array = pa.array(keys, pa.binary()).slice(skipped)
    assert murmur2(array).tolist() == [murmur2_of_one(key or b"") for key in keys[skipped:]]


def test_hashes_equal_those_of_kafka() -> None:
    # From Kafka's UtilsTest, as signed numbers.
    keys = [b"21", b"foobar", b"a-little-bit-long-string", b"a-little-bit-longer-string", b"abc"]
    expected = [-973932308, -790332482, -985981536, -1486304829, 479470107]
    assert murmur2(pa.array(keys)).astype(np.int32).tolist() == expected


@given(st.lists(st.binary(max_size=9), min_size=1), st.integers(1, 50))
def test_partitions_equal_those_of_the_client(keys: list[bytes], count: int) -> None:
    assert partitions_of_keys(pa.array(keys, pa.binary()), count).tolist() == [
        partition_of_key(key, count) for key in keys
    ]


def test_records_without_a_key_fill_a_batch_of_one_partition() -> None:
    sticky = StickyPartitions(3, batch_bytes=100)
    sizes = np.full(30, 20, dtype=np.int64)
    chosen = [*sticky.choose(sizes[:7]), *sticky.choose(sizes[7:])]
    runs = [chosen[at : at + 5] for at in range(0, 30, 5)]
    assert all(len(set(run)) == 1 for run in runs)
    assert {run[0] for run in runs[:3]} == {run[0] for run in runs[3:]} == {0, 1, 2}
