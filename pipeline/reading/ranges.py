"""Ranges of offsets, and how they are cut for Spark's tasks.

Without `minPartitions` a task reads one partition of a topic from its start to its end. With it, or with
`maxRecordsPerPartition`, long ranges are cut into even parts, in proportion to the offsets that they span (whether or
not there is a record at each of them). Source: Spark `KafkaOffsetRangeCalculator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.client.record import TopicPartition


class OffsetRange(NamedTuple):
    """Offsets of a partition, from `start` inclusive to `end` exclusive."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def cut(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """The ranges with something in them, cut into parts of at most `max_records`, at least `min_partitions` of them."""
    parts = [one for one in ranges if one.size > 0]
    if max_records is not None:
        parts = [part for one in parts for part in _in_parts(one, -(-one.size // max_records))]
    if min_partitions is None or min_partitions <= len(parts):
        return parts
    total = sum(one.size for one in parts)
    # Ranges smaller than an even share stay whole; the others have the remaining parts among themselves.
    small = {one for one in parts if one.size / total * min_partitions < 1}
    parts_left = min_partitions - len(small)
    size_left = sum(one.size for one in parts if one not in small)
    return [
        part
        for one in parts
        for part in _in_parts(one, 1 if one in small else max(round(one.size / size_left * parts_left), 1))
    ]


def share(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """The ends of about `limit` offsets in all, shared in proportion to what each partition has.

    Rounded up where a share is below one, so that every partition with something left gets on, and a stream that is
    read until it ends does end. `starts` and `ends` have the same partitions. Source: Spark `KafkaMicroBatchStream`.
    """
    sizes = {partition: max(end - starts[partition], 0) for partition, end in ends.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    limited = {}
    for partition, size in sizes.items():
        part = limit * size / total
        limited[partition] = starts[partition] + min(-(-limit * size // total) if part < 1 else int(part), size)
    return limited


def _in_parts(whole: OffsetRange, count: int) -> Iterator[OffsetRange]:
    count = min(count, whole.size)
    start = whole.start
    for left in range(count, 0, -1):
        end = start + (whole.end - start) // left
        yield OffsetRange(whole.partition, start, end)
        start = end
