"""The division of a query's work into tasks.

```
pieces   | large segment          | medium | s | s | s | s |     in the order of topics, partitions and offsets
cut      | part | part | part |   | medium | s | s | s | s |     at index entries, where longer than the aim
tasks    [ part ][ part ][ part + medium  ][ s + s + s + s ]     neighbours together, up to the aim
```
A task costs 0.03 s of processor time, reading 64 MiB twice that; so thousands of small partitions must share tasks.

The aim is `maxPartitionBytes`, or the share of a task if there are `minPartitions`. By default it is the share of a
processor of the driver, but not below 32 MiB and not above 256 MiB.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.offline.missing_offsets import MissingOffsets
from odradek.pipeline.klog.segment_ranges import SegmentRange, divided
from odradek.pipeline.records.damage import Damage

_MOST_BYTES: Final = 256 << 20
_FEWEST_BYTES: Final = 32 << 20
# A piece counts at least as much: opening and decoding the smallest one costs as much as reading this.
_LEAST_PIECE: Final = 128 << 10
_MOST_OPEN: Final = 4


@dataclass(frozen=True)
class KlogPiece:
    """The records of `range` with offsets in [start_offset, end_offset), or else a `finding` of the driver.

    `aborted`: producer id, first and last offset of the transactions to leave out. With `has_gaps`, compaction has
    removed records of the partition.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    range: SegmentRange | None
    aborted: tuple[tuple[int, int, int], ...] = ()
    finding: Damage | MissingOffsets | None = None
    has_gaps: bool = False

    @property
    def weight(self) -> int:
        return max(_LEAST_PIECE, 0 if self.range is None else self.range.size)


@dataclass(frozen=True)
class KlogTask(InputPartition):
    """The pieces of one task, to be read in this order."""

    pieces: tuple[KlogPiece, ...]


def tasks_of(pieces: list[KlogPiece], min_partitions: int | None, max_partition_bytes: int | None) -> list[KlogTask]:
    """Divide the pieces into tasks."""
    total = sum(piece.weight for piece in pieces)
    if min_partitions is not None:
        aim = max(min(total // min_partitions, max_partition_bytes or _MOST_BYTES), 1)
    else:
        aim = max_partition_bytes or min(max(total // (os.cpu_count() or 1), _FEWEST_BYTES), _MOST_BYTES)
    return list(_together(_cut(pieces, aim), aim))


def _cut(pieces: Iterable[KlogPiece], aim: int) -> Iterator[KlogPiece]:
    descriptors = DescriptorCache(ReadOnlyFiles(), _MOST_OPEN)
    try:
        for piece in pieces:
            if piece.range is None or piece.range.size <= aim:
                yield piece
            else:
                for part in divided(piece.range, aim, descriptors):
                    yield KlogPiece(
                        piece.topic, piece.partition, piece.start_offset, piece.end_offset, part, piece.aborted,
                        has_gaps=piece.has_gaps,
                    )  # fmt: skip
    finally:
        descriptors.close()


def _together(pieces: Iterable[KlogPiece], aim: int) -> Iterator[KlogTask]:
    gathered: list[KlogPiece] = []
    weight = 0
    for piece in pieces:
        if gathered and weight + piece.weight > aim + aim // 8:  # pieces are cut behind the aim, not before it
            yield KlogTask(tuple(gathered))
            gathered, weight = [], 0
        gathered.append(piece)
        weight += piece.weight
    if gathered:
        yield KlogTask(tuple(gathered))
