"""The producers of one log, updated with every append, and rebuilt from snapshots and the log.

`ProducerState` has the rules and `ProducerSnapshots` the files. This module joins both with the log's segments, and
keeps `first_unstable_offset` (the first offset of the earliest transaction that is not settled) up to date for readers.

The appender calls everything but `replicated_up_to`, which another thread may call at the same time. Another thread may
call `remove_expired` while no append is under way.

A rebuild loads the latest snapshot and replays the batches behind it. It reads only headers, and the records of control
batches. It rejects nothing, because the leader has checked what is in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Lock

from odradek.broker.storage.append.refusals import WritableBatch
from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.producers.batch_replay import aborted_entry, read_marker, replay_batch
from odradek.broker.storage.producers.producer_snapshots import ProducerSnapshots
from odradek.broker.storage.producers.producer_state import (
    BATCHES_KEPT,
    AppendedBatch,
    CompletedTransaction,
    ProducerEntry,
    ProducerState,
)
from odradek.broker.storage.producers.verification_state import Verification
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import EndTxnMarker

_LOG = logging.getLogger(__name__)

_WINDOWS = (1 << 20, 4 << 20, 16 << 20)
"""Bytes before a snapshot to read, in turn until they are enough: for five batches of 16 KiB of a dozen producers, of
fifty, of two hundred. Reading the heads of 16 MiB of such batches takes 3 ms."""

_MOST_BATCHES = 10_000
"""A window that would have more is not read; this many, five of two thousand producers, are read in 30 ms. With batches
of 100 bytes the first window has six thousand."""


class PartitionProducers:
    """The producers of one log; see the module. `state` is the current one."""

    def __init__(self, state: ProducerState, snapshots: ProducerSnapshots) -> None:
        self.state = state
        self.first_unstable_offset = state.first_unstable_offset
        self._snapshots = snapshots
        self._transactions_lock = Lock()  # the appender opens and ends transactions, the high watermark settles them

    # -------------------------------------------------------------------------------------------------------- appending

    def check(
        self,
        data: WritableBatch,
        header: BatchHeader,
        from_client: bool,
        transaction_version: int,
        verification: Verification | None,
    ) -> AppendedBatch | EndTxnMarker | None:
        """Check a batch with a producer id before a leader appends it.

        Returns the first batch if this is a duplicate: nothing must be appended. Returns the marker of a control batch,
        and None for data; both are passed to `record_append` afterwards. Raises `KafkaError` as `ProducerState.check`
        and `check_marker` do, and INVALID_RECORD for any other control batch.
        """
        if not header.is_control:
            return self.state.check(header, from_client, transaction_version, verification)
        marker = read_marker(data, header)
        if marker is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a control batch with a producer id must end a transaction")
        self.state.check_marker(header, marker, transaction_version)
        return marker

    def record_append(
        self, header: BatchHeader, marker: EndTxnMarker | None, base_offset: int, segment: Segment
    ) -> None:
        """Record a batch with a producer id that was appended to `segment` at `base_offset`."""
        if not header.is_transactional:
            self.state.add_batch(header, base_offset)
            return
        with self._transactions_lock:
            if marker is None:
                self.state.add_batch(header, base_offset)
            else:
                self._complete(self.state.add_marker(header, marker, base_offset), segment)
            self.first_unstable_offset = self.state.first_unstable_offset

    def record_follower_append(self, header: BatchHeader, data: memoryview, segment: Segment) -> None:
        """Record a leader's batch that was appended to `segment` unchanged."""
        marker = read_marker(data, header) if header.is_control else None
        with self._transactions_lock:
            self._complete(replay_batch(self.state, header, marker), segment)
            self.first_unstable_offset = self.state.first_unstable_offset

    def _complete(self, completed: CompletedTransaction | None, segment: Segment) -> None:
        if completed is not None:
            if completed.is_aborted:
                segment.transaction_index.append(aborted_entry(self.state, completed))
            self.state.complete(completed)

    # --------------------------------------------------------------------------------------------------------- settling

    def replicated_up_to(self, offset: int) -> None:
        """Settle the transactions with markers below `offset`, which is replicated or deleted."""
        if self.first_unstable_offset is not None:
            with self._transactions_lock:
                self.state.replicated_up_to(offset)
                self.first_unstable_offset = self.state.first_unstable_offset

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: list[int] | None = None) -> int:
        """Remove producers, of these or of all, that have been idle too long; return how many."""
        return self.state.remove_expired(now_ms, expiration_ms, producer_ids)

    # -------------------------------------------------------------------------------------------------------- snapshots

    def snapshot_at(self, offset: int) -> None:
        """Write a snapshot of the state, which is that at `offset`; not yet synced."""
        self.state.end_offset = offset
        self._snapshots.write(self.state)

    def flush(self) -> None:
        """Sync the snapshots written since the last time."""
        self._snapshots.flush()

    def rebuild(
        self, segments: Segments, log_start_offset: int, end_offset: int, *, now_ms: int, expiration_ms: int
    ) -> None:
        """Rebuild the state at `end_offset` from snapshots and the log, after a truncation or damage."""
        with self._transactions_lock:
            rebuild_producer_state(
                self.state,
                self._snapshots,
                segments,
                log_start_offset,
                end_offset,
                now_ms=now_ms,
                expiration_ms=expiration_ms,
            )
            self.first_unstable_offset = self.state.first_unstable_offset

    def replace(self, producers: list[ProducerEntry], end_offset: int) -> None:
        """Make these the producers at `end_offset`, the end of the log, also in the snapshots from there on."""
        with self._transactions_lock:
            self.state.load(producers, end_offset)
            self.first_unstable_offset = self.state.first_unstable_offset
        outdated = [offset for offset in self._snapshots.offsets if offset >= end_offset]
        for offset in outdated:
            self._snapshots.remove(offset)
        if outdated:
            self._snapshots.write(self.state)

    def snapshots_below(self, end_offset: int) -> list[str]:
        """The paths of the snapshots at lower offsets. Nobody writes to these files any more."""
        return [self._snapshots.path(offset) for offset in self._snapshots.offsets if offset < end_offset]

    def forget_snapshots_of(self, removed: list[Segment]) -> list[str]:
        """Rename the snapshots of removed segments for deletion; return the files to remove."""
        paths = [self._snapshots.mark_deleted(segment.base_offset) for segment in removed]
        return [path for path in paths if path is not None]


def rebuild_producer_state(
    state: ProducerState,
    snapshots: ProducerSnapshots,
    segments: Segments,
    log_start_offset: int,
    end_offset: int,
    *,
    now_ms: int,
    expiration_ms: int,
    may_read_log: bool = True,
) -> None:
    """Make `state` that at `end_offset`, and write snapshots so that the next rebuild is quick.

    As Kafka's `UnifiedLog.rebuildProducerState`: snapshots are also written at the bases of the last two segments,
    where the next truncation or recovery is likely to begin. Unless `may_read_log`, the log is read only from the
    latest snapshot on, and each producer has only its last batch.
    """
    snapshots.remove_outside(log_start_offset, end_offset)
    snapshots.load_latest(state, log_start_offset, now_ms, expiration_ms)
    if may_read_log:
        complete_batches(state, segments, log_start_offset)
    if state.end_offset < end_offset:
        last_bases = segments.base_offsets[-2:]
        for segment in segments.from_offset(state.end_offset):
            if segment.base_offset >= end_offset:
                break
            state.end_offset = max(segment.base_offset, state.end_offset, log_start_offset)
            if segment.base_offset in last_bases:
                snapshots.write(state)
            start = segment.locate(state.end_offset)
            if start is None:
                continue
            for batch, header in segment.log.headers(start[0]):
                if batch.base_offset >= end_offset:
                    break
                marker = read_marker(segment.log.read(batch), header) if header.is_control else None
                completed = replay_batch(state, header, marker)
                if completed is not None:
                    state.complete(completed)
    state.end_offset = end_offset
    snapshots.write(state)


def complete_batches(state: ProducerState, segments: Segments, log_start_offset: int) -> None:
    """Complete each producer of `state`, just loaded from a snapshot, with the batches before its last one.

    A snapshot holds one batch of each producer, but a client may retry any of its last five. After a crash it retries
    the requests that were not answered, the oldest first, and a log that has only the last batch would reject the
    others as out of order. So where the log is read anyway, after an unclean stop or a truncation, this reads the
    batches before the snapshot as well. A producer that last wrote long before the snapshot keeps its one batch.

    Differs from Kafka: there only one batch of each producer survives a crash. The snapshots are the same.
    """
    if not len(state):
        return
    try:
        for window in _WINDOWS:
            parts = _parts_before(segments, state.end_offset, window)
            found, count = _producers_in(parts, state.end_offset, log_start_offset)
            known = [(state.entries[each], found.entries[each]) for each in found.entries if each in state.entries]
            for entry, other in known:
                if (other.epoch, other.last_offset) == (entry.epoch, entry.last_offset):
                    entry.batches = other.batches
            if parts[0][0] is segments.first and not parts[0][1]:
                return
            if count * 4 > _MOST_BATCHES or all(_is_complete(entry) for entry, _ in known):
                return
    except (CorruptBatchError, CorruptIndexError) as error:
        _LOG.warning("retries of batches before offset %d may not be known: %s", state.end_offset, error)


def _producers_in(
    parts: list[tuple[Segment, int]], end_offset: int, log_start_offset: int
) -> tuple[ProducerState, int]:
    """The producers in these parts of the log, and the number of batches."""
    found = ProducerState()
    count = 0
    for segment, position in parts:
        for batch, header in _headers(segment, position, end_offset):
            count += 1
            if header.has_producer_id and not header.is_control and batch.last_offset >= log_start_offset:
                found.add_batch(header, header.base_offset)
    return found, count


def _headers(segment: Segment, position: int, end_offset: int) -> Iterator[tuple[StoredBatch, BatchHeader]]:
    for batch, header in segment.log.headers(position):
        if batch.base_offset >= end_offset:
            return
        yield batch, header


def _parts_before(segments: Segments, end_offset: int, size: int) -> list[tuple[Segment, int]]:
    """The segments with the last `size` bytes or so before `end_offset`, oldest first, and where to begin in each."""
    parts: list[tuple[Segment, int]] = []
    for segment in reversed([each for each in segments if each.base_offset < end_offset]):
        found = segment.locate(end_offset)
        end = segment.size if found is None else found[0]
        begin = 0
        if end > size:
            offsets = segment.indexes.offsets
            begin = (offsets.first_at_position(end - size) or offsets.last()).position
        parts.append((segment, begin))
        size -= end
        if size <= 0:
            break
    return parts[::-1]


def _is_complete(entry: ProducerEntry) -> bool:
    return not entry.batches or len(entry.batches) == BATCHES_KEPT or entry.batches[0].first_sequence == 0
