"""Ranges of offsets, and their division into tasks.

Without `minPartitions` a task reads the whole range of one partition. With it, or with `maxRecordsPerPartition`, long
ranges are divided into even parts, in proportion to the offsets that they span (even if some have no record).
Source: Spark `KafkaOffsetRangeCalculator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.client.record import TopicPartition


class OffsetRange(NamedTuple):
    """Offsets of a partition, from `start` inclusive to `end` exclusive; `topic_id` is empty if it has none."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: str = ""

    @property
    def size(self) -> int:
        return self.end - self.start


def divide(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Divide the ranges that are not empty into at least `min_partitions` parts of at most `max_records`."""
    parts = [one for one in ranges if one.size > 0]
    if max_records is not None:
        parts = [part for one in parts for part in _in_parts(one, -(-one.size // max_records))]
    if min_partitions is None or min_partitions <= len(parts):
        return parts
    total = sum(one.size for one in parts)
    # Ranges smaller than an even share stay whole; the others share the remaining parts.
    small = {one for one in parts if one.size / total * min_partitions < 1}
    parts_left = min_partitions - len(small)
    size_left = sum(one.size for one in parts if one not in small)
    return [
        part
        for one in parts
        for part in _in_parts(one, 1 if one in small else max(round(one.size / size_left * parts_left), 1))
    ]


def limited_ends(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Return end offsets that limit the batch to about `limit` offsets, in proportion to each partition's backlog.

    A share below one is rounded up, so that every partition with a backlog makes progress and a stream with
    `availableNow` ends. `starts` and `ends` have the same partitions. Source: Spark `KafkaMicroBatchStream`.
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
        yield whole._replace(start=start, end=end)
        start = end
