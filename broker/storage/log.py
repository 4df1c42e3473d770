"""One partition's log: a sequence of record batches, appended at the end, read from anywhere, cut at either end.

```
log_start_offset        last_stable_offset   high_watermark     log_end_offset (exclusive)
      |                          |                  |                 |
------+-----------+--------------+---------+--------+--------+--------+
 gone | segment 0 | segment 57             | segment 3120 (active)    |
------+-----------+------------------------+--------------------------+
                         ^ recovery_point: all below it is on the disk for certain
              ^ cleaned_offset: all below it is compacted; None for a log that never was
```

Offsets: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, recovery_point <= log_end_offset.
The last stable offset is where the earliest transaction begins that is open, or whose end is not below the high
watermark; without any it is the high watermark.

Threads: one appender at a time, in any thread (the same for `truncate_to`, `roll`, `close`); readers beside it, for
whom `log_end_offset` moves after everything below it can be read; beside both `flush`, and what works on old segments
(`update_log_start_offset`, `delete_segments`, `swap_in`), one at a time as `cleaning` says (`cleaning_state`).

Errors: `KafkaError` for what a client or follower is to be told. An `OSError` takes the log directory offline: it and
everything later is KAFKA_STORAGE_ERROR (`disk_failure`); a transient one is the same error once, and the log is as
before. A failed append leaves at most bytes behind the end of the segment, which the log does not count, and which
recovery cuts off.

`append_as_leader` and `read` are the broker's hot paths: 6 µs for a small batch, 7 with idempotence, 3 for a read at
the tail (`benchmarks.storage`; a fifth of it is the system call). Attributes that they use are plain, and looked up
once.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from threading import Lock, RLock
from typing import Final

from odradek.broker.storage.append.append_info import AppendInfo, duplicate_of
from odradek.broker.storage.append.follower_batches import follower_batches
from odradek.broker.storage.append.refusals import WritableBatch
from odradek.broker.storage.append.validation import validator_for
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.durability import Durability
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_reader import LogReader
from odradek.broker.storage.names import CLEANED_SUFFIX
from odradek.broker.storage.opening.leftovers import remove_cleaned
from odradek.broker.storage.producers.partition_producers import PartitionProducers
from odradek.broker.storage.producers.producer_state import AppendedBatch
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segmented_log import SegmentedLog
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import TIMESTAMP_TYPE_BIT, assign_offsets

_LOG = logging.getLogger(__name__)

_LAST_OFFSET_DELTA: Final = slice(23, 27)  # where a batch has it (`batch_scan`)


class Log(LogReader):
    """See the module; what only looks is `LogReader`'s.

    Logs are made and opened by `LogDir`; the constructor takes the parts that opening found.
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
        super().__init__(
            topic,
            partition,
            topic_id,
            segmented=segmented,
            leader_epochs=leader_epochs,
            producers=producers,
            log_start_offset=log_start_offset,
            resources=resources,
            tail_is_checked=tail_is_checked,
        )
        self._validator = validator_for(segmented.config)
        segmented.before_roll = producers.snapshot_at
        self._durability = Durability(
            segmented, leader_epochs, producers, resources, identity_is_synced=identity_is_synced
        )
        self._tail_lock = Lock()
        self._is_closed = False
        self._bounds_lock = RLock()  # held while the start moves or segments go, except by the appender's rolls

    @property
    def decodes_records(self) -> bool:
        """Whether appending decodes the records of batches, and not only their headers."""
        return self._validator.decodes_records

    def configure(self, config: LogConfig) -> None:
        """Take new properties, for what comes next. Compaction ends that cleanup.policy no longer asks for."""
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
        *,
        from_client: bool = True,
        max_decompressed: int | None = None,
    ) -> AppendInfo:
        """Append one batch, giving it offsets, the leader epoch and what else the topic's configuration says.

        `records` is changed in place, so it must be the caller's own. Afterwards it need not hold what was
        appended, which may have been compressed anew.

        `from_client` is false for the coordinators' batches, which may be control batches and have no sequences. Raises
        `KafkaError` with the codes of `validation` and `producer_state`, and DecompressionLimitError if records that
        must be decoded expand to more than `max_decompressed` bytes; nothing was appended then.
        """
        if self._failure.error is not None:
            self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        data, header, records_converted = self._validator.validate(records, now_ms, from_client, max_decompressed)
        marker = None
        if header.producer_id >= 0:
            judged = self._producers.judge(data, header, from_client)
            if isinstance(judged, AppendedBatch):
                return duplicate_of(judged, self.log_start_offset, len(records), records_converted)
            marker = judged
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        assign_offsets(data, 0, base_offset, leader_epoch)
        try:
            if leader_epoch != self._leader_epochs.latest and leader_epoch >= 0:
                self._leader_epochs.assign(leader_epoch, base_offset)
            segment = self._segmented.append(data, base_offset, last_offset, header.max_timestamp, now_ms)
            if header.producer_id >= 0:
                self._producers.note(header, marker, base_offset, segment)
            self.log_end_offset = last_offset + 1
        except OSError as error:
            raise self._failure.fail(f"appending to {self}", error) from error
        return AppendInfo(
            base_offset,
            last_offset,
            header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else -1,
            self.log_start_offset,
            header.records_count,
            len(records),
            False,
            records_converted,
        )

    def append_as_follower(self, records: WritableBatch) -> AppendInfo | None:
        """Append the whole batches of `records` as the leader has them, offsets and epochs kept; None without any.

        An incomplete batch at the end is left out. Raises `KafkaError`: CORRUPT_MESSAGE for a wrong checksum,
        OFFSET_OUT_OF_RANGE for offsets that go back, in `records` or against the end of the log.
        """
        self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        data, headers = follower_batches(records, self.log_end_offset)
        if not headers:
            return None
        first, last = headers[0][1], headers[-1][1]
        with self._disk("appending to"):
            for _, header in headers:
                if header.partition_leader_epoch != self._leader_epochs.latest and header.partition_leader_epoch >= 0:
                    self._leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            segment = self._segmented.append_batches(data, headers, self._resources.clock.time_ms())
            for position, header in headers:
                self._producers.follow(header, data[position : position + header.size], segment)
            self.log_end_offset = last.next_offset
        records_count = sum(header.records_count for _, header in headers)
        return AppendInfo(first.base_offset, last.last_offset, -1, self.log_start_offset, records_count, len(data))

    # ----------------------------------------------------------------------------------------------------------- bounds

    def advance_high_watermark(self, high_watermark: int) -> None:
        """All in-sync replicas have everything below `high_watermark`. It is kept within the log, and may fall."""
        if not self.log_start_offset <= high_watermark <= self.log_end_offset:
            high_watermark = max(self.log_start_offset, min(high_watermark, self.log_end_offset))
        self.high_watermark = high_watermark
        if self._producers.first_unstable_offset is not None:
            self._producers.replicated_up_to(high_watermark)

    def update_log_start_offset(self, offset: int) -> bool:
        """Make the log start at `offset` if it starts lower; True if so. Segments below it become deletable.

        Raises OFFSET_OUT_OF_RANGE above the high watermark.
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
        """Take out segments wholly below the start of the log; their files go after file.delete.delay.ms.

        Those that are not of the log any more are passed over.
        """
        self._failure.check()
        with self._bounds_lock, self._disk("deleting segments of"):
            if self._is_closed:
                return
            mine = self._segmented.segments
            ends = zip(mine.base_offsets[1:], mine, strict=False)
            below = {segment for end, segment in ends if end <= self.log_start_offset}
            removed = [segment for segment in segments if segment in below]
            if removed:
                self._segmented.delete(removed)
                self._delete_snapshots_of(removed)

    def swap_in(self, replaced: list[Segment], sizes: dict[str, int]) -> bool:
        """Let the segment that compaction made of `replaced` take their place: `.cleaned` files of these sizes.

        False, and nothing has changed, if compaction was aborted, or the files are not those that it wrote.
        """
        self._failure.check()
        with self._bounds_lock, self._disk("swapping segments of"):
            if self._is_closed or self.cleaning.is_aborted:
                return False
            cleaned = Segment(
                self._segmented.directory,
                replaced[0].base_offset,
                self._resources.descriptors,
                self.config,
                sizes=sizes,
                created_ms=0,
                ending=CLEANED_SUFFIX,
            )
            if not self._segmented.swap_in(cleaned, replaced):
                return False
            self._delete_snapshots_of(replaced[1:])
            return True

    def discard_cleaned(self) -> None:
        """Remove what compaction wrote and did not finish; to be called by compaction, when its worker has ended."""
        with self._bounds_lock, self._disk("removing what compaction left of"):
            if not self._is_closed:
                remove_cleaned(self._resources.files, self._segmented.directory)

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch that holds `offset` and all later ones; False if the log ends there or before.

        The log ends behind the last batch that is left then, at `offset` or before it. Below the active segment,
        compaction is aborted first, and waited for.
        """
        self._failure.check()
        is_old = offset < self.active_segment.base_offset
        with self.cleaning.paused() if is_old else nullcontext(), self._bounds_lock, self._disk("truncating"):
            if offset >= self.log_end_offset:
                self._leader_epochs.truncate_from_end(self.log_end_offset)
                return False
            now_ms = self._resources.clock.time_ms()
            self.log_end_offset = offset  # readers must not go beyond it from here on
            removed = self._segmented.truncate_to(offset, now_ms)
            end_offset = self.log_end_offset = self._segmented.end.offset
            self._leader_epochs.truncate_from_end(end_offset)
            self._after_cut(min(end_offset, self.log_start_offset), now_ms, removed)
            return True

    def start_over_at(self, offset: int) -> None:
        """Drop everything and let the log begin, and end, at `offset`: a follower whose leader starts above its end."""
        self._failure.check()
        with self.cleaning.paused(), self._bounds_lock, self._disk("truncating"):
            self.log_end_offset = offset
            removed = self._segmented.start_over(offset)
            self._leader_epochs.clear()
            self._after_cut(offset, self._resources.clock.time_ms(), removed)

    def _after_cut(self, log_start_offset: int, now_ms: int, removed: list[Segment]) -> None:
        self.log_start_offset = log_start_offset
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, self.log_end_offset)
        self._delete_snapshots_of(removed)
        self._learn_producers(self.log_end_offset, now_ms)
        self.advance_high_watermark(self.high_watermark)

    def _delete_snapshots_of(self, removed: list[Segment]) -> None:
        snapshots = self._producers.forget_snapshots_of(removed)
        if snapshots:
            self._resources.deletions.add(self.config.file_delete_delay_ms, files=snapshots)

    def _learn_producers(self, end_offset: int, now_ms: int) -> None:
        self._producers.rebuild(
            self._segmented.segments,
            self.log_start_offset,
            end_offset,
            now_ms=now_ms,
            expiration_ms=self.config.producer_id_expiration_ms,
        )

    def _check_tail(self) -> None:
        """At the first use after a clean stop, see whether the last segment ends where the checkpoint says.

        If not, somebody changed the directory; then the segment is recovered as after an unclean stop.
        """
        with self._tail_lock, self._disk("opening"):
            if not self._tail_is_checked:
                segmented = self._segmented
                if not segmented.ends_where_it_says():
                    _LOG.error("%s does not end where a clean stop left it: recovering its last segment", self)
                    now_ms = self._resources.clock.time_ms()
                    self._learn_producers(self.active_segment.base_offset, now_ms)
                    self.log_end_offset = segmented.recover_end(self.producers, self._leader_epochs)
                    self._leader_epochs.truncate_from_end(self.log_end_offset)
                    self._after_cut(self.log_start_offset, now_ms, [])
                self._tail_is_checked = True

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
        """Whether appending `records` may begin a new segment; they take `largest` bytes at most in the log."""
        last_offset = self.log_end_offset + int.from_bytes(records[_LAST_OFFSET_DELTA], "big", signed=True)
        return self._segmented.may_roll(records, largest, last_offset, self._resources.clock.time_ms())

    def flush_target(self) -> int | None:
        """What to `flush` up to by now, as configuration and rolled segments ask; None if nothing is due."""
        return self._durability.target(self.config)

    def flush(self, up_to: int | None = None) -> None:
        """Sync everything below `up_to` (exclusive), by default all there is now. Blocks: call it from a thread."""
        self._failure.check()
        with self._disk("syncing"):
            self._durability.flush(self.log_end_offset if up_to is None else up_to)

    def adopt(self, topic_id: bytes) -> None:
        """Take `topic_id`, where a power cut right after the log's creation has lost it."""
        with self._disk("naming"):
            self._durability.write_topic_id(topic_id)
        self.topic_id = topic_id

    def remove_expired_producers(self, producer_ids: list[int] | None = None) -> int:
        """Forget producers, of these or of all, that were idle for too long; return how many. Not beside an append."""
        now_ms = self._resources.clock.time_ms()
        return self._producers.remove_expired(now_ms, self.config.producer_id_expiration_ms, producer_ids)

    def close(self) -> None:
        """Leave the files as a clean stop does: trimmed, synced, with a snapshot of the producers at the end.

        Compaction is aborted first, and waited for.
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
        """Close the files as they are, before the log's directory is renamed because it is deleted.

        Compaction is aborted first, and waited for: it works in the directory by its name.
        """
        self.cleaning.pause()
        with self._bounds_lock:
            self._is_closed = self._is_released = True
            self._segmented.release()
