"""Small ranges share a task: a task costs as much processor time as reading 32 MiB (docs/pipeline.md).

```
cost of a range = the largest of   bytes / 8 MiB,   offsets / 100,000 (or maxRecordsPerPartition),   1 / 64
cost of a group ≤ 1, halved until there are at least `minPartitions` groups, and two for each processor
```
The bounds keep the work of a group below that of a few tasks, so little is lost if its rows are expensive to process.
Bytes are those of the partition on the broker's disk, in proportion to the offsets. The last term bounds the number of
requests that a task sends one after another. A range of unknown size has a task of its own.

A query with few ranges is not grouped, and requests no sizes. The driver's processors stand for those of the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import ReadOptions
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.reading.ranges import OffsetRange

Group = tuple[OffsetRange, ...]

_BYTES: Final = 8 << 20
_OFFSETS: Final = 100_000
_RANGES: Final = 64


def grouped(options: ReadOptions, offsets: ClusterOffsets, ranges: Sequence[OffsetRange]) -> list[Group]:
    """Return the ranges of each task, in their order. Raises ClientError."""
    fewest = max(options.min_partitions or 1, 2 * (os.cpu_count() or 1))
    if len(ranges) <= fewest:
        return [(one,) for one in ranges]
    partitions = sorted({one.partition for one in ranges})
    sizes = offsets.bytes_on_disk(partitions)
    starts = offsets.earliest(sorted(sizes))
    most = min(_OFFSETS, options.max_records or _OFFSETS)
    return groups(ranges, [_cost(one, sizes, starts, most) for one in ranges], fewest)


def groups(ranges: Sequence[OffsetRange], costs: Sequence[float], fewest: int) -> list[Group]:
    """Return groups whose cost is at most 1; a larger range is alone. `fewest` groups, if there are as many ranges."""
    room = 1.0
    while len(found := list(_filled(ranges, costs, room))) < min(fewest, len(ranges)):
        room /= 2
    return found


def _filled(ranges: Sequence[OffsetRange], costs: Sequence[float], room: float) -> Iterator[Group]:
    group: list[OffsetRange] = []
    total = 0.0
    for one, cost in zip(ranges, costs, strict=True):
        if group and total + cost > room:
            yield tuple(group)
            group, total = [], 0.0
        group.append(one)
        total += cost
    if group:
        yield tuple(group)


def _cost(
    one: OffsetRange, sizes: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], most: int
) -> float:
    size = sizes.get(one.partition)
    if size is None:
        return float("inf")
    share = one.size / max(one.end - starts[one.partition], one.size)
    return max(size * share / _BYTES, one.size / most, 1 / _RANGES)
