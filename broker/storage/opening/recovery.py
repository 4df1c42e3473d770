"""Recover a log after an unclean stop: check everything from the recovery point on.

Everything below the recovery point was synced. From the segment that holds it on, each batch is read whole. The log
ends before the first batch that is cut off, has a wrong checksum or an offset that does not ascend, and before a hole
between two segments: that batch, everything behind it and the segments behind it are dropped. On the way everything
derived from the log is rebuilt: the indexes, the leader epochs that the checkpoint lacks, the transaction index, the
producers' snapshots. The state of the producers is carried from segment to segment, and becomes the log's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.producers.batch_replay import aborted_entry, read_marker, replay_batch
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET, Segment
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import read_batch_header

_LOG = logging.getLogger(__name__)

# Called with the bytes of the segment that were read so far.
SegmentProgress = Callable[[int], None]


class RecoverySummary(msgspec.Struct):
    """Counts of one recovery: the logs and segments that were read, their bytes, the bytes that were cut off."""

    logs: int = 0
    segments: int = 0
    bytes: int = 0
    bytes_cut: int = 0

    def add(self, other: RecoverySummary) -> None:
        self.logs += other.logs
        self.segments += other.segments
        self.bytes += other.bytes
        self.bytes_cut += other.bytes_cut

    def __str__(self) -> str:
        return (
            f"logs recovered: {self.logs}, segments: {self.segments}, "
            f"bytes read: {self.bytes}, bytes cut off: {self.bytes_cut}"
        )


def recover_segment(
    segment: Segment, producers: ProducerState, leader_epochs: LeaderEpochs, progress: SegmentProgress
) -> int:
    """Validate `segment`, rebuild its indexes and cut off what is not valid; return the bytes that were cut off.

    `producers` must be the state at the segment's base offset; it becomes the state at its end.
    """
    size = segment.size
    segment.indexes.reset()
    segment.transaction_index.reset()
    valid = 0
    next_offset = segment.base_offset
    try:
        for batch, data in segment.log.whole_batches():
            _check_offsets(segment, batch, next_offset)
            segment.indexes.record_batch(batch.last_offset, batch.max_timestamp, batch.position, batch.size)
            _replay(segment, batch, data, producers, leader_epochs)
            next_offset = batch.last_offset + 1
            valid = batch.position + batch.size
            progress(valid)
    except CorruptBatchError as error:
        _LOG.warning("cutting off %s: %s", pluralize(size - valid, "byte"), error)
        segment.log.truncate(valid)
    producers.end_offset = next_offset
    segment.finish()
    return size - valid


def _check_offsets(segment: Segment, batch: StoredBatch, next_offset: int) -> None:
    if batch.base_offset < next_offset or batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        raise CorruptBatchError(segment.log.path, batch.position, f"offset {batch.base_offset} after {next_offset - 1}")


def _replay(
    segment: Segment, batch: StoredBatch, data: memoryview, producers: ProducerState, leader_epochs: LeaderEpochs
) -> None:
    """Update epochs, producers and transactions for a batch."""
    if batch.magic < 2:
        producers.end_offset = batch.last_offset + 1
        return
    if batch.leader_epoch > leader_epochs.latest:
        leader_epochs.assign(batch.leader_epoch, batch.base_offset)
    header = read_batch_header(data)
    marker = read_marker(data, header) if header.is_control else None
    completed = replay_batch(producers, header, marker)
    if completed is not None:
        if completed.is_aborted:
            segment.transaction_index.append(aborted_entry(producers, completed))
        producers.complete(completed)
