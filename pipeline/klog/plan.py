"""Plan a query on `format("klog")`: from options and filters to pieces of segment files.

The driver decides everything from one view of the directory: offsets, the end of complete batches, aborted
transactions. It reads only the selected partitions, and of these file names, index entries and some batch headers. One
partition is read after the other, so few files are open at a time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import partial

from odradek.broker.storage.index.timestamp_lookup import find_by_timestamp
from odradek.broker.storage.offline.missing_offsets import MissingOffsets
from odradek.client.record import TopicPartition
from odradek.pipeline.klog.options import KlogOptions
from odradek.pipeline.klog.segment_ranges import segment_ranges
from odradek.pipeline.klog.segments import LogDirectory, PartitionLog, while_it_changes
from odradek.pipeline.klog.tasks import KlogPiece, KlogTask, tasks_of
from odradek.pipeline.options.bounds import EARLIEST, LATEST
from odradek.pipeline.options.log_filter import LogFilter
from odradek.pipeline.records.damage import Damage

_LOG = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class OffsetRangeError(Exception):
    """The log does not contain the topics, offsets or times of the query."""


def plan(options: KlogOptions, wanted: LogFilter) -> list[KlogTask]:
    """Return the tasks. Raises NoLogDirError, OffsetRangeError, DirectoryChangesError, ValueError and OSError."""
    pieces: list[KlogPiece] = []
    with LogDirectory(options.path) as directory:
        partitions = subscribed(directory, options)
        starts, ends = options.start.numbers_of(partitions, "starting"), options.end.numbers_of(partitions, "ending")
        for each in filter(wanted.matches, partitions):
            action = partial(_pieces, directory, each, options, wanted, starts[each], ends[each])
            pieces += while_it_changes(action, each, or_nothing=not options.fail_on_data_loss) or []
    return tasks_of(pieces, options.min_partitions, options.max_partition_bytes)


def _pieces(
    directory: LogDirectory, partition: TopicPartition, options: KlogOptions, wanted: LogFilter, first: int, last: int
) -> list[KlogPiece]:
    """Return the pieces of a partition between two bounds. Raises FileNotFoundError if it changes meanwhile."""
    if not directory.exists(partition):
        if options.fail_on_data_loss:
            raise OffsetRangeError(f"{partition} was deleted while the query was being planned")
        return []
    return directory.read(partition, partial(_pieces_of, options, wanted, first, last))


def _pieces_of(options: KlogOptions, wanted: LogFilter, first: int, last: int, log: PartitionLog) -> list[KlogPiece]:
    limit = log.last_stable_offset() if options.isolation_level == "read_committed" else log.end_offset
    if options.start.by_time or options.end.by_time or wanted.earliest_ms is not None:
        log.find_times()
    start = _resolve(log, limit, options.start.by_time, first, options)
    if start is None and options.start_fallback == "error":
        raise OffsetRangeError(f"{TopicPartition(*log.partition)} has no record as late as {first}")
    end = _resolve(log, limit, options.end.by_time, last, options)
    start, end = limit if start is None else start, limit if end is None else end
    reads_to_end = end == log.end_offset and wanted.start_offset <= end <= wanted.end_offset
    start = max(start, wanted.start_offset, _first_offset_since(log, wanted.earliest_ms))
    end = min(end, wanted.end_offset)
    return list(_pieces_between(log, start, end, options, reads_to_end=reads_to_end))


def subscribed(directory: LogDirectory, options: KlogOptions) -> list[TopicPartition]:
    """Return the partitions that the options select, in order. Raises OffsetRangeError for one that does not exist."""
    subscription = options.subscription
    if subscription is None or subscription.pattern is not None:
        pattern = re.compile(".*" if subscription is None else subscription.pattern or "")
        return directory.partitions({topic for topic in directory.topics() if _matches(pattern, topic)})
    if subscription.partitions:
        missing = [str(each) for each in subscription.partitions if not directory.contains(each)]
        chosen = sorted(subscription.partitions)
    else:
        chosen = directory.partitions(subscription.topics)
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
            f"offset {number} of {TopicPartition(*log.partition)} is out of range: "
            f"{log.directory} has {log.start_offset} to {limit}. Set failOnDataLoss to false to read what there is"
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


def _pieces_between(
    log: PartitionLog, start: int, end: int, options: KlogOptions, *, reads_to_end: bool
) -> Iterator[KlogPiece]:
    topic, partition = log.partition
    aborted: tuple[tuple[int, int, int], ...] = ()
    if options.isolation_level == "read_committed":
        entries = [entry for segment in log.segments for entry in segment.transaction_index.entries()]
        aborted = tuple(
            (entry.producer_id, entry.first_offset, entry.last_offset)
            for entry in entries
            if entry.first_offset < end and entry.last_offset >= start
        )
    for found in segment_ranges(log, start, end):
        if isinstance(found, MissingOffsets):
            yield KlogPiece(topic, partition, start, end, None, finding=found)
        else:
            yield KlogPiece(topic, partition, start, end, found, aborted, has_gaps=log.was_compacted)
    lost = log.lost_end() if reads_to_end else None
    if lost is not None:
        damage = Damage(lost.path, lost.position, lost.size, lost.offset, lost.reason)
        _LOG.warning("%s", damage)
        yield KlogPiece(topic, partition, start, end, None, finding=damage)
