"""Where reading a partition begins and ends.

| begins | with the record |
|---|---|
| `earliest`, `beginning` | first in the partition |
| `latest`, `end` | next to be written |
| N | at offset N, or the first behind it that is still there |
| -N | N before the end |
| a time | first at or after it; where there is none, next to be written |

It ends before the offset `to_offset`, before the first record at or after `to_timestamp`, or, unless it follows, at the
end of the partition as it was when reading began. Ends are exclusive.
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
    """Where to begin, for argparse."""
    if text in _NAMES:
        return _NAMES[text]
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not an offset: give a number, -N for N before the end, earliest or latest"
        ) from None


class ReadingRange(NamedTuple):
    """What the command line says; `from_timestamp` goes before `start`."""

    start: Start = "latest"
    from_timestamp: int | None = None
    to_offset: int | None = None
    to_timestamp: int | None = None
    follows: bool = True


class Bounds(NamedTuple):
    """The offsets of one partition at which reading begins (inclusive) and ends (exclusive)."""

    start: int
    end: int

    @property
    def size(self) -> int | None:
        """How many offsets lie between; None if there is no end."""
        return None if self.end == _NO_END else max(0, self.end - self.start)


async def find_bounds(
    consumer: Consumer, partitions: Sequence[TopicPartition], wanted: ReadingRange
) -> dict[TopicPartition, Bounds]:
    """Ask the cluster where reading begins and ends. Raises ClientError."""
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
            start = _start(wanted.start, beginnings[partition], ends[partition])
        end = _NO_END if wanted.follows else ends[partition]
        bounds[partition] = Bounds(start, end if wanted.to_offset is None else min(end, wanted.to_offset))
    return bounds


def _start(start: Start, beginning: int, end: int) -> int:
    if start == "earliest":
        return beginning
    if start == "latest":
        return end
    return max(beginning, start if start >= 0 else end + start)
