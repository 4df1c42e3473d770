"""The new offsets of `groups reset-offsets`: for each partition, the committed offset and the one that replaces it.

| scenario | new offset |
|---|---|
| `earliest`, `latest` | the beginning of the partition, its end |
| `current` | the committed offset; without one, the end |
| to an offset | that offset |
| shift by N | the committed offset plus N, which may be negative |
| to a time | that of the first record at or after the time; without one, the end |
| from a file | the offset in the file |

A new offset is moved to the beginning or the end of its partition if it lies outside. Source: Kafka
`ConsumerGroupCommand`.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odradek.client.cli.arguments.argument_types import not_negative
from odradek.client.record import TopicPartition
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

Offsets = Mapping[TopicPartition, int]


class Scenario(NamedTuple):
    """The scenario given on the command line; exactly one member is set."""

    name: str | None = None  # "earliest", "latest" or "current"
    offset: int | None = None
    shift: int | None = None
    timestamp: int | None = None  # ms
    offsets: Offsets | None = None  # of a file


class Move(NamedTuple):
    """A partition's committed offset (None: there is none) and its new one."""

    partition: TopicPartition
    committed: int | None
    new: int


async def plan(admin: Admin, partitions: Iterable[TopicPartition], committed: Offsets, wanted: Scenario) -> list[Move]:
    """Return the moves of these partitions. Raises ClientError; ValueError for a shift without a committed offset."""
    from odradek.client.admin.arguments import OffsetSpec

    selected = sorted(partitions)
    begins = (await admin.list_offsets(dict.fromkeys(selected, OffsetSpec.EARLIEST))).values_or_raise()
    ends = (await admin.list_offsets(dict.fromkeys(selected, OffsetSpec.LATEST))).values_or_raise()
    at_time = {}
    if wanted.timestamp is not None:
        found = (await admin.list_offsets(dict.fromkeys(selected, wanted.timestamp))).values_or_raise()
        at_time = {partition: record.offset for partition, record in found.items() if record.offset >= 0}
    moves = []
    for partition in selected:
        begin, end = begins[partition].offset, ends[partition].offset
        if wanted.timestamp is not None:
            new = at_time.get(partition, end)
        else:
            new = _new_offset(partition, committed.get(partition), begin, end, wanted)
        moves.append(Move(partition, committed.get(partition), min(max(new, begin), end)))
    return moves


def read_offsets(path: str) -> dict[str | None, dict[TopicPartition, int]]:
    """Read the offsets of a file by group: CSV of `topic,partition,offset`, as `--export` prints them.

    The group may be in front of the topic; lines without one, of any group, are under None. Skips a heading. Raises
    OSError, ValueError.
    """
    offsets: dict[str | None, dict[TopicPartition, int]] = {}
    lines = csv.reader(io.StringIO(Path(path).read_bytes().decode(), newline=""))
    try:
        for fields in lines:
            if not any(map(str.strip, fields)) or (lines.line_num == 1 and "offset" in fields[-1].lower()):
                continue
            group, partition, offset = _row(fields)
            offsets.setdefault(group, {})[partition] = offset
    except (ValueError, argparse.ArgumentTypeError, csv.Error) as error:
        raise ValueError(
            f"line {lines.line_num} of {path} is not of the form topic,partition,offset: {error}"
        ) from None
    if not offsets:
        raise ValueError(f"{path} has no line of the form topic,partition,offset")
    return offsets


def _row(fields: Sequence[str]) -> tuple[str | None, TopicPartition, int]:
    """Return group, partition and offset of a line. Raises ValueError, ArgumentTypeError."""
    if not 3 <= len(fields) <= 4:
        raise ValueError(f"it has {pluralize(len(fields), 'field')}")
    *group, topic, partition, offset = fields
    return group[0] if group else None, TopicPartition(topic.strip(), not_negative(partition)), not_negative(offset)


def _new_offset(partition: TopicPartition, committed: int | None, begin: int, end: int, wanted: Scenario) -> int:
    if wanted.offsets is not None:
        return wanted.offsets[partition]
    if wanted.offset is not None:
        return wanted.offset
    if wanted.shift is not None:
        if committed is None:
            raise ValueError(f"{partition} cannot be shifted: the group has committed no offset of it")
        return committed + wanted.shift
    if wanted.name == "earliest":
        return begin
    return end if committed is None or wanted.name == "latest" else committed
