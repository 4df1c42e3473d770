from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.record import TopicPartition
from odradek.pipeline.reading.ranges import OffsetRange, divide, limited_ends

A, B, C = (TopicPartition("t", index) for index in range(3))

ranges = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), max_size=5).map(
    lambda pairs: [
        OffsetRange(TopicPartition("t", index), start, start + size) for index, (start, size) in enumerate(pairs)
    ]
)
some = st.none() | st.integers(1, 30)


@given(ranges, some, some)
def test_the_parts_cover_the_ranges(
    whole: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> None:
    parts = divide(whole, min_partitions, max_records)
    assert all(part.size > 0 for part in parts)
    assert max_records is None or all(part.size <= max_records for part in parts)
    for one in whole:
        own = sorted(part for part in parts if part.partition == one.partition)
        covered = [offset for part in own for offset in range(part.start, part.end)]
        assert covered == list(range(one.start, one.end))


def test_by_default_a_task_reads_a_partition() -> None:
    whole = [OffsetRange(A, 0, 10), OffsetRange(B, 5, 5), OffsetRange(C, 0, 1000)]
    assert divide(whole, None, None) == [whole[0], whole[2]]


def test_longer_ranges_are_divided_into_more_parts() -> None:
    parts = divide([OffsetRange(A, 0, 10), OffsetRange(B, 0, 300), OffsetRange(C, 0, 690)], 10, None)
    assert [sum(part.partition == partition for part in parts) for partition in (A, B, C)] == [1, 3, 6]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), min_size=1, max_size=5), st.integers(1, 200))
def test_limited_ends_advance_every_partition_with_a_backlog(pairs: list[tuple[int, int]], limit: int) -> None:
    partitions = [TopicPartition("t", index) for index in range(len(pairs))]
    starts = {partition: start for partition, (start, _) in zip(partitions, pairs, strict=True)}
    ends = {partition: start + size for partition, (start, size) in zip(partitions, pairs, strict=True)}
    limited = limited_ends(starts, ends, limit)
    for partition in partitions:
        assert starts[partition] <= limited[partition] <= ends[partition]
        assert limited[partition] > starts[partition] or starts[partition] == ends[partition]
    assert sum(limited[one] - starts[one] for one in partitions) <= max(limit + len(pairs), len(pairs))
