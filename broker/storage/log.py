"""One partition's log: a sequence of record batches, appended at the end, read anywhere, truncated at either end.

```
log_start_offset        last_stable_offset   high_watermark     log_end_offset (exclusive)
      |                          |                  |                 |
------+-----------+--------------+---------+--------+--------+--------+
 gone | segment 0 | segment 57             | segment 3120 (active)    |
------+-----------+------------------------+--------------------------+
                         ^ recovery_point: everything below it is synced to the disk
              ^ cleaned_offset: everything below it is compacted; None for a log that was never compacted
```

Offsets: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, recovery_point <= log_end_offset.
The last stable offset is the first offset of the earliest transaction that is open, or whose end is not below the high
watermark; without such a transaction it is the high watermark.

Threads: one appender at a time, in any thread; `truncate_to`, `roll` and `close` count as the appender. Readers may run
at the same time: `log_end_offset` moves only after everything below it can be read. So may `flush`, and what works on
old segments (`update_log_start_offset`, `delete_segments`, `swap_in`), one at a time as `cleaning` allows
(`cleaning_state`).

Errors: `KafkaError` is for the client or follower. An `OSError` takes the log directory offline: this call and all
later ones raise KAFKA_STORAGE_ERROR (`disk_failure`). A transient `OSError` raises the same code once and leaves the
log unchanged. A failed append leaves at most bytes behind the end of the segment; the log does not count them, and
recovery cuts them off.

`append_as_leader` and `read` are hot paths (`benchmarks.storage`): their attributes are plain, and read once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock, RLock
from typing import Final

from odradek.broker.storage.append.append_info import AppendInfo, duplicate_of
from odradek.broker.storage.append.follower_batches import follower_batches
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.append.refusals import WritableBatch
from odradek.broker.storage.append.validation import validator_for
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.durability import Durability
from odradek.broker.storage.log_config import NO_LIMIT, LogConfig
from odradek.broker.storage.log_reader import LogReader
from odradek.broker.storage.log_state import LogState
from odradek.broker.storage.opening.leftovers import remove_cleaned
from odradek.broker.storage.producers.partition_producers import PartitionProducers
from odradek.broker.storage.producers.producer_state import AppendedBatch
from odradek.broker.storage.producers.verification_state import Verification
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segmented_log import SegmentedLog
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import LAST_OFFSET_DELTA_POSITION, assign_offsets

_LOG = logging.getLogger(__name__)

_CLIENT: Final = Origin.CLIENT
_LAST_OFFSET_DELTA: Final = slice(LAST_OFFSET_DELTA_POSITION, LAST_OFFSET_DELTA_POSITION + 4)


class Log(LogReader):
    """The log of one partition; `LogReader` has the methods that change nothing.

    `LogDir` creates and opens logs; the constructor takes the parts that opening found.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        *,
        segmented: SegmentedLog,
        leader_epochs: LeaderEpochs,
        producers: PartitionProducers,
        log_start_offset: int,
        resources: LogResources,
        tail_is_checked: bool = True,
        identity_is_synced: bool = True,
    ) -> None:
        super().__init__(topic, partition, topic_id, segmented, leader_epochs, producers, log_start_offset, resources)
        self._tail_is_checked, self._is_half_truncated = tail_is_checked, False
        self._validator = validator_for(segmented.config)
        segmented.before_roll = producers.snapshot_at
        self._durability = Durability(
            segmented, leader_epochs, producers, resources, identity_is_synced=identity_is_synced
        )
        self._tail_lock = Lock()
        self._is_closed = False
        self._bounds_lock = RLock()  # for changes of the start and removals of segments, except rolls

    @property
    def decodes_records(self) -> bool:
        """Whether appending decodes the records of batches, and not only their headers."""
        return self._validator.decodes_records

    def configure(self, config: LogConfig) -> None:
        """Apply new properties from now on. Aborts a compaction that cleanup.policy no longer allows."""
        self._segmented.config = config
        if not config.is_compacted:
            self.cleaning.abort()
        self._validator = validator_for(config)

    # -------------------------------------------------------------------------------------------------------- appending

    def append_as_leader(
        self,
        records: WritableBatch,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = None,
        max_decompressed: int | None = None,
    ) -> AppendInfo:
        """Append one batch; assign its offsets, the leader epoch and what the topic's configuration sets.

        Changes `records` in place, so they must be the caller's own. Afterwards they may differ from what was appended,
        which may have been compressed again.

        Batches of coordinators (`origin`) may be control batches and have no sequences. `transaction_version` is that
        of the transaction that a marker ends, and of the producer of a transactional batch; 0 where it is not known.
        `verification`: see `verification_state`; without one any transactional batch may open a transaction.

        Raises `KafkaError` with the codes of `validation` and `producer_state`, and DecompressionLimitError if records
        that must be decoded expand to more than `max_decompressed` bytes; nothing was appended then.
        """
        if self._failure.error is not None:
            self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        from_client = origin is _CLIENT
        data, header, records_converted = self._validator.validate(records, now_ms, from_client, max_decompressed)
        marker = None
        if header.producer_id >= 0:
            checked = self._producers.check(data, header, from_client, transaction_version, verification)
            if isinstance(checked, AppendedBatch):
                return duplicate_of(checked, self.log_start_offset, len(records), records_converted)
            marker = checked
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        assign_offsets(data, 0, base_offset, leader_epoch)
        try:
            if leader_epoch != self._leader_epochs.latest and leader_epoch >= 0:
                self._leader_epochs.assign(leader_epoch, base_offset)
            segment = self._segmented.append(data, base_offset, last_offset, header.max_timestamp, now_ms)
            if header.producer_id >= 0:
                self._producers.record_append(header, marker, base_offset, segment)
            self.log_end_offset = last_offset + 1
        except OSError as error:
            raise self._failure.fail(f"appending to {self}", error) from error
        append_time, count = header.max_timestamp if header.has_append_time else -1, header.records_count
        start, size = self.log_start_offset, len(records)
        return AppendInfo(base_offset, last_offset, append_time, start, count, size, False, records_converted)

    def append_as_follower(self, records: WritableBatch, last_epoch: int = NO_LIMIT) -> AppendInfo | None:
        """Append the whole batches of `records` with the leader's offsets and epochs; return None if there is none.

        Stops at an incomplete batch, or one of an epoch after `last_epoch`. Raises `KafkaError`: CORRUPT_MESSAGE for a
        wrong checksum, OFFSET_OUT_OF_RANGE for offsets that do not ascend, in `records` or from the end of the log.
        """
        self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        data, headers = follower_batches(records, self.log_end_offset, last_epoch)
        if not headers:
            return None
        first, last = headers[0][1], headers[-1][1]
        with self._disk("appending to"):
            for _, header in headers:
                if header.partition_leader_epoch != self._leader_epochs.latest:
                    self._leader_epochs.follow(header)
            segment = self._segmented.append_batches(data, headers, self._resources.clock.time_ms())
            for position, header in headers:
                self._producers.record_follower_append(header, data[position : position + header.size], segment)
            self.log_end_offset = last.next_offset
        records_count = sum(header.records_count for _, header in headers)
        return AppendInfo(first.base_offset, last.last_offset, -1, self.log_start_offset, records_count, len(data))

    def begin_epoch(self, leader_epoch: int) -> int:
        """Begin a leader epoch at the end of the log, and return that offset. Counts as an append."""
        self._leader_epochs.begin(leader_epoch, self.log_end_offset)
        return self.log_end_offset

    # ----------------------------------------------------------------------------------------------------------- bounds

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Set the high watermark, kept within the log: all in-sync replicas have what is below it. It may fall."""
        if not self.log_start_offset <= high_watermark <= self.log_end_offset:
            high_watermark = max(self.log_start_offset, min(high_watermark, self.log_end_offset))
        self.high_watermark = high_watermark
        if self._producers.first_unstable_offset is not None:
            self._producers.replicated_up_to(high_watermark)

    def update_log_start_offset(self, offset: int) -> bool:
        """Raise the start of the log to `offset`; return False if it starts there or higher already.

        Segments below the start can then be deleted. Raises OFFSET_OUT_OF_RANGE above the high watermark.
        """
        self._failure.check()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is above the high watermark {self.high_watermark}"
            )
        with self._bounds_lock, self._disk("advancing the start of"):
            if offset <= self.log_start_offset or self._is_closed:
                return False
            self._leader_epochs.truncate_from_start(offset)
            self.log_start_offset = offset
        self._producers.replicated_up_to(offset)
        return True

    def delete_segments(self, segments: list[Segment]) -> None:
        """Delete the segments that lie wholly below the start of the log; files are removed after file.delete.delay.ms.

        Ignores segments that are not part of the log any more.
        """
        self._failure.check()
        with self._bounds_lock, self._disk("deleting segments of"):
            if self._is_closed:
                return
            mine = self._segmented.segments
            ends = zip(mine.base_offsets[1:], mine, strict=False)
            below = {segment for end, segment in ends if end <= self.log_start_offset}
            if removed := [segment for segment in segments if segment in below]:
                self._segmented.delete(removed)
                self._delete_snapshots_of(removed)

    def swap_in(self, replaced: list[Segment], sizes: dict[str, int]) -> bool:
        """Replace `replaced` with the segment that compaction made of them: `.cleaned` files of these sizes.

        Returns False and changes nothing if compaction was aborted, or if the files are not the ones it wrote.
        """
        self._failure.check()
        with self._bounds_lock, self._disk("swapping segments of"):
            if self._is_closed or self.cleaning.is_aborted:
                return False
            if not self._segmented.swap_in(replaced[0].cleaned(self.config, sizes), replaced):
                return False
            self._delete_snapshots_of(replaced[1:])
            return True

    def discard_cleaned(self) -> None:
        """Remove the incomplete output of a compaction; compaction calls this when its worker has ended."""
        with self._bounds_lock, self._disk("removing what compaction left of"):
            if not self._is_closed:
                remove_cleaned(self._resources.files, self._segmented.directory)

    def truncate_to(self, offset: int, state: LogState | None = None) -> bool:
        """Truncate the batch that holds `offset` and all later ones; return False if the log ends at or below `offset`.

        Afterwards the log ends behind its last batch, at `offset` or below. To truncate below the active segment, this
        aborts compaction first and waits for it. With its `state` when it ended at `offset`, it need not be read.
        """
        self._failure.check()
        is_old = offset < self.active_segment.base_offset
        with self.cleaning.paused() if is_old else nullcontext(), self._bounds_lock, self._disk("truncating"):
            if offset >= self.log_end_offset:
                self._leader_epochs.truncate_from_end(self.log_end_offset)
                if state is not None:
                    self._producers.replace(state.open_producers(), self.log_end_offset)
                self._resources.on_lowered((self.topic, self.partition), self)  # if it could not be done before
                return False
            now_ms = self._resources.clock.time_ms()
            self.log_end_offset = offset  # readers must stop there from now on
            with self._truncating():
                removed = self._segmented.truncate_to(offset, now_ms, state)
                end_offset = self.log_end_offset = self._segmented.end.offset
                self._leader_epochs.truncate_from_end(end_offset)
                self._finish_truncation(min(end_offset, self.log_start_offset), now_ms, removed, state)
            return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete all batches and begin at `offset`: for a follower whose leader's log starts above its own end."""
        self._failure.check()
        with self.cleaning.paused(), self._bounds_lock, self._disk("truncating"):
            self.log_end_offset = offset
            with self._truncating():
                removed = self._segmented.truncate_fully_and_start_at(offset)
                self._leader_epochs.clear()
                self._finish_truncation(offset, self._resources.clock.time_ms(), removed)

    @contextmanager
    def _truncating(self) -> Iterator[None]:
        """If a truncation fails half-way, let the next use of the log find out where it ends, as after a kill."""
        try:
            yield
        except OSError:
            self._tail_is_checked, self._is_half_truncated = False, True
            self.log_end_offset = self._segmented.end.offset
            raise

    def _finish_truncation(
        self, log_start_offset: int, now_ms: int, removed: list[Segment], state: LogState | None = None
    ) -> None:
        self.log_start_offset = log_start_offset
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, self.log_end_offset)
        self._delete_snapshots_of(removed)
        if state is None:
            self._rebuild_producers(self.log_end_offset, now_ms)
        else:
            self._producers.replace(state.open_producers(), self.log_end_offset)
        self.advance_high_watermark(self.high_watermark)
        self._resources.on_lowered((self.topic, self.partition), self)

    def _delete_snapshots_of(self, removed: list[Segment]) -> None:
        if snapshots := self._producers.forget_snapshots_of(removed):
            self._resources.deletions.add(self.config.file_delete_delay_ms, files=snapshots)

    def _rebuild_producers(self, end_offset: int, now_ms: int) -> None:
        segments, start = self._segmented.segments, self.log_start_offset
        expiration_ms = self.config.producer_id_expiration_ms
        self._producers.rebuild(segments, start, end_offset, now_ms=now_ms, expiration_ms=expiration_ms)

    def _check_tail(self) -> None:
        """At the first use after a clean stop, check that the last segment ends where the checkpoint says.

        If not (the directory was changed from outside, a truncation failed), recover it as after an unclean stop.
        """
        with self._tail_lock, self._disk("opening"):
            if not self._tail_is_checked:
                if self._is_half_truncated or not self._segmented.ends_where_it_says():
                    _LOG.error("%s does not end where it should: recovering its last segment", self)
                    now_ms = self._resources.clock.time_ms()
                    self._rebuild_producers(self.active_segment.base_offset, now_ms)
                    self.log_end_offset = self._segmented.recover_end(self.producers, self._leader_epochs)
                    self._leader_epochs.truncate_from_end(self.log_end_offset)
                    self._finish_truncation(max(self.log_start_offset, self.segments.base_offsets[0]), now_ms, [])
                self._tail_is_checked, self._is_half_truncated = True, False

    # ------------------------------------------------------------------------------------------------------ maintenance

    def roll(self) -> None:
        """Begin a new segment at the end of the log, unless the active one is empty."""
        self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        if self.active_segment.size:
            with self._disk("rolling"):
                self._segmented.roll(self.log_end_offset)

    def may_roll(self, records: WritableBatch, largest: int) -> bool:
        """Whether appending `records` may begin a new segment, if they grow to at most `largest` bytes."""
        last_offset = self.log_end_offset + int.from_bytes(records[_LAST_OFFSET_DELTA], "big", signed=True)
        return self._segmented.may_roll(records, largest, last_offset, self._resources.clock.time_ms())

    def flush_target(self) -> int | None:
        """The offset up to which a `flush` is due, by the configuration or for rolled segments; None if none is due."""
        return self._durability.target(self.config)

    def flush(self, up_to: int | None = None) -> None:
        """Sync everything below `up_to` (exclusive; by default all). Blocks, so call it from a thread."""
        self._failure.check()
        with self._disk("syncing"):
            self._durability.flush(self.log_end_offset if up_to is None else up_to)

    def sync_identity(self) -> None:
        """Sync the name of the directory and the topic id, so that a power loss leaves a log; beside all other work."""
        with self._bounds_lock, self._disk("naming"):
            if not self._is_closed:
                self._durability.sync_identity()

    def adopt(self, topic_id: bytes) -> None:
        """Set the topic id of a log that lost it in a power cut right after its creation."""
        with self._disk("naming"):
            self._durability.write_topic_id(topic_id)
        self.topic_id = topic_id

    def remove_expired_producers(self, producer_ids: list[int] | None = None) -> int:
        """Remove producers, of these or of all, that have been idle too long; return how many. Not during an append."""
        now_ms = self._resources.clock.time_ms()
        return self._producers.remove_expired(now_ms, self.config.producer_id_expiration_ms, producer_ids)

    def close(self) -> None:
        """Close the log as a clean stop does: trim and sync the files, with a snapshot of the producers at the end.

        Aborts compaction first, and waits for it.
        """
        self.cleaning.pause()
        with self._bounds_lock:
            self._is_closed = True
        if self._failure.error is not None:
            self._segmented.release()
            return
        with self._disk("closing"):
            self._durability.close(self.log_end_offset)

    def release(self) -> None:
        """Close the files unchanged, before the log's directory is renamed for deletion.

        Aborts compaction first, and waits for it, because it works in the directory by its name.
        """
        self.cleaning.pause()
        with self._bounds_lock:
            self._is_closed = self._is_released = True
            self._segmented.release()
