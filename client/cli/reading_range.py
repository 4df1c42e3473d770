"""The range of offsets that `consume` reads from each partition.

| start | first record |
|---|---|
| `earliest`, `beginning` | the first of the partition |
| `latest`, `end` | the next one that is written |
| N | the one at offset N, or the first one after it that still exists |
| -N | the one N offsets before the end |
| a time | the first one at or after it; without such a record, the next one that is written |

Reading ends before the offset `to_offset`, or before the first record at or after `to_timestamp`. Unless it follows, it
ends at the end that the partition had when reading began. Ends are exclusive.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.record import TopicPartition

Start = int | Literal["earliest", "latest"]

_NO_END = (1 << 63) - 1
_NAMES: dict[str, Start] = {"earliest": "earliest", "beginning": "earliest", "latest": "latest", "end": "latest"}


def start(text: str) -> Start:
    """Parse a start; raises ArgumentTypeError."""
    if text in _NAMES:
        return _NAMES[text]
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not an offset: give a number, -N for N before the end, earliest or latest"
        ) from None


class ReadingRange(NamedTuple):
    """The range as given on the command line; `from_timestamp` takes precedence over `start`."""

    start: Start = "latest"
    from_timestamp: int | None = None
    to_offset: int | None = None
    to_timestamp: int | None = None
    follows: bool = True


class Bounds(NamedTuple):
    """The offsets of one partition where reading begins (inclusive) and ends (exclusive)."""

    start: int
    end: int

    @property
    def size(self) -> int | None:
        """The number of offsets in the range; None if it has no end."""
        return None if self.end == _NO_END else max(0, self.end - self.start)


async def find_bounds(
    consumer: Consumer, partitions: Sequence[TopicPartition], wanted: ReadingRange
) -> dict[TopicPartition, Bounds]:
    """Look up the bounds of the partitions in the cluster. Raises ClientError."""
    beginnings = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    at_time: dict[TopicPartition, int] = {}
    if wanted.from_timestamp is not None:
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, wanted.from_timestamp))
        at_time = {partition: record.offset for partition, record in found.items() if record is not None}
        at_time = {partition: at_time.get(partition, ends[partition]) for partition in partitions}
    bounds = {}
    for partition in partitions:
        start = at_time.get(partition)
        if start is None:
            start = first_offset(wanted.start, beginnings[partition], ends[partition])
        end = _NO_END if wanted.follows else ends[partition]
        bounds[partition] = Bounds(start, end if wanted.to_offset is None else min(end, wanted.to_offset))
    return bounds


def first_offset(start: Start, beginning: int, end: int) -> int:
    """Return the offset of a start in a partition from `beginning` (inclusive) to `end` (exclusive)."""
    if start == "earliest":
        return beginning
    if start == "latest":
        return end
    return max(beginning, start if start >= 0 else end + start)
