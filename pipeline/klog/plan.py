"""Plan the tasks of a query on `format("klog")`: from options and filters to pieces of segment files.

The driver decides everything from one view of the directory: offsets, the end of complete batches, aborted
transactions. It reads only the selected partitions, and of these file names, index entries and some batch headers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from odradek.broker.storage.index.timestamp_lookup import find_by_timestamp
from odradek.client.record import TopicPartition
from odradek.pipeline.klog.filters import LogFilter
from odradek.pipeline.klog.options import KlogOptions
from odradek.pipeline.klog.segment_ranges import SegmentRange, segment_ranges
from odradek.pipeline.klog.segments import LogDirectory, PartitionLog
from odradek.pipeline.options.bounds import EARLIEST, LATEST
from odradek.pipeline.records.damage import Damage

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# Bytes of a task by default. A task itself costs 0.03 s of processor time, and reading 64 MiB costs twice that.
_MOST_BYTES: Final = 256 << 20
_FEWEST_BYTES: Final = 32 << 20
_ATTEMPTS: Final = 5  # a broker changes a directory rarely: when it rolls, compacts or deletes a segment


class OffsetRangeError(Exception):
    """The log does not contain the topics, offsets or times of the query."""


@dataclass(frozen=True)
class KlogPartition(InputPartition):
    """The work of a task: read the records of `range` with offsets in [start_offset, end_offset), or report `damage`.

    `aborted`: producer id, first and last offset of the transactions to leave out.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    range: SegmentRange | None
    aborted: tuple[tuple[int, int, int], ...] = ()
    damage: Damage | None = None


def plan(options: KlogOptions, wanted: LogFilter) -> list[KlogPartition]:
    """Return the tasks. Raises NoLogDirError, OffsetRangeError, ValueError and OSError."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return _plan(options, wanted)
        except FileNotFoundError:
            continue  # a segment was deleted or replaced between listing the directory and opening the file
    return _plan(options, wanted)


def _plan(options: KlogOptions, wanted: LogFilter) -> list[KlogPartition]:
    directory = LogDirectory(options.path)
    partitions = _subscribed(directory, options)
    starts, ends = options.start.numbers_of(partitions, "starting"), options.end.numbers_of(partitions, "ending")
    found = []
    for partition in filter(wanted.matches, partitions):
        log = directory.open(partition)
        limit = log.last_stable_offset() if options.isolation_level == "read_committed" else log.end_offset
        start = _resolve(log, limit, options.start.by_time, starts[partition], options)
        if start is None and options.start_fallback == "error":
            raise OffsetRangeError(f"{partition} has no record as late as {starts[partition]}")
        end = _resolve(log, limit, options.end.by_time, ends[partition], options)
        start, end = limit if start is None else start, limit if end is None else end
        start = max(start, wanted.start_offset, _first_offset_since(log, wanted.earliest_ms))
        found.append((log, start, min(end, wanted.end_offset)))
    pieces = list(_pieces(options, found, options.max_partition_bytes or _MOST_BYTES))
    total = sum(piece.range.end - piece.range.begin for piece in pieces if piece.range is not None)
    fewest = options.min_partitions
    if fewest is None:
        fewest = 1 if options.max_partition_bytes else min(os.cpu_count() or 1, total // _FEWEST_BYTES)
    if 0 < len(pieces) < fewest:
        pieces = list(_pieces(options, found, max(total // fewest, 1)))
    return pieces


def _subscribed(directory: LogDirectory, options: KlogOptions) -> list[TopicPartition]:
    subscription = options.subscription
    if subscription is None or subscription.pattern is not None:
        pattern = re.compile(".*" if subscription is None else subscription.pattern or "")
        return [each for each in directory.partitions if _matches(pattern, each.topic)]
    if subscription.partitions:
        missing = [str(each) for each in subscription.partitions if each not in directory.partitions]
        chosen = sorted(subscription.partitions)
    else:
        chosen = [each for each in directory.partitions if each.topic in subscription.topics]
        missing = [topic for topic in subscription.topics if topic not in {each.topic for each in chosen}]
    if missing:
        raise OffsetRangeError(f"{directory.path} does not contain {', '.join(missing)}")
    return chosen


def _matches(pattern: re.Pattern[str], topic: str) -> bool:
    return topic not in INTERNAL_TOPICS and pattern.fullmatch(topic) is not None


def _resolve(log: PartitionLog, limit: int, by_time: bool, number: int, options: KlogOptions) -> int | None:
    """Return the offset that a number of a bound stands for; None for a time after the last record."""
    if by_time:
        record = find_by_timestamp(log.segments, number, log.start_offset)
        return None if record is None or record.offset >= limit else record.offset
    if number in (EARLIEST, LATEST):
        return log.start_offset if number == EARLIEST else limit
    if not log.start_offset <= number <= limit and options.fail_on_data_loss:
        raise OffsetRangeError(
            f"offset {number} of {log.partition} is out of range: {log.directory} has {log.start_offset} to {limit}. "
            f"Set failOnDataLoss to false to read what there is"
        )
    return min(max(number, log.start_offset), limit)


def _first_offset_since(log: PartitionLog, earliest_ms: int | None) -> int:
    """Return an offset below which all records are older than `earliest_ms`, according to the time indexes."""
    if earliest_ms is None:
        return log.start_offset
    for segment in log.segments:
        if segment.largest_timestamp().timestamp >= earliest_ms:
            indexed = segment.indexes.lookup_time(earliest_ms - 1)
            return indexed.offset + 1 if indexed.timestamp >= 0 else segment.base_offset
    return log.end_offset


def _pieces(
    options: KlogOptions, found: list[tuple[PartitionLog, int, int]], piece_bytes: int
) -> Iterator[KlogPartition]:
    for log, start, end in found:
        topic, partition = log.partition
        aborted: tuple[tuple[int, int, int], ...] = ()
        if options.isolation_level == "read_committed":
            entries = [entry for segment in log.segments for entry in segment.transaction_index.entries()]
            aborted = tuple(
                (entry.producer_id, entry.first_offset, entry.last_offset)
                for entry in entries
                if entry.first_offset < end and entry.last_offset >= start
            )
        for range_ in segment_ranges(log, start, end, piece_bytes):
            yield KlogPartition(topic, partition, start, end, range_, aborted)
        if log.is_cut_short and start < end and end > log.last_end:
            reason = f"the log ends at offset {log.last_end - 1}, below its high watermark {log.end_offset}"
            damage = Damage(log.segments.active.log.path, log.readable_size, 0, log.last_end, reason)
            yield KlogPartition(topic, partition, start, end, None, damage=damage)
