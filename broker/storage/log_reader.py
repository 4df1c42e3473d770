"""The reading half of a log: records by offset, offsets by time, leader epochs, aborted transactions, bounds.

Nothing here changes the log. `log.Log` is the other half; its docstring defines the bounds and the threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Final

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.leader_epochs import EpochStart, LeaderEpochs
from odradek.broker.storage.cleanable import Cleanable, cleanable_part
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.timestamp_lookup import (
    DecodingBudget,
    RecordPosition,
    find_by_timestamp,
    find_largest_timestamp,
    find_timestamp_at,
)
from odradek.broker.storage.index.transaction_index import AbortedTransaction, aborted_transactions
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_slice import LogSlice
from odradek.broker.storage.log_state import LogState, state_of
from odradek.broker.storage.producers.partition_producers import PartitionProducers
from odradek.broker.storage.producers.producer_snapshots import encode_snapshot
from odradek.broker.storage.producers.producer_state import NO_OFFSET, ProducerState
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.retention import segments_to_delete
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segmented_log import SegmentedLog
from odradek.broker.storage.segments import Segments
from odradek.protocol.errors import ErrorCode, KafkaError

_TRANSACTION_INDEX: Final = attrgetter("transaction_index")


class LogReader(ABC):
    """The reading half of a log.

    `_tail_is_checked` is false between a clean stop, or a truncation that failed, and the next use of the log.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        segmented: SegmentedLog,
        leader_epochs: LeaderEpochs,
        producers: PartitionProducers,
        log_start_offset: int,
        resources: LogResources,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = Path(segmented.directory)
        self.log_start_offset = log_start_offset
        self.log_end_offset = segmented.end.offset
        self.high_watermark = log_start_offset
        self.cleaned_offset: int | None = None
        self.had_segments = True
        self.cleaning = CleaningState()
        self._segmented = segmented
        self._leader_epochs = leader_epochs
        self._producers = producers
        self._resources = resources
        self._failure = resources.failure
        self._tail_is_checked = True
        self._is_released = False

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, [{self.log_start_offset}, {self.log_end_offset}))"

    # ------------------------------------------------------------------------------------------------------- attributes

    @property
    def config(self) -> LogConfig:
        return self._segmented.config

    @property
    def producers(self) -> ProducerState:
        """The idempotent producers of the log, for reading only."""
        return self._producers.state

    @property
    def recovery_point(self) -> int:
        return self._segmented.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """The end (exclusive) of what `read_committed` readers get."""
        unstable = self._producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        return self._segmented.segments.size_bytes

    @property
    def segments(self) -> Segments:
        """The segments, for reading only."""
        return self._segmented.segments

    @property
    def segments_count(self) -> int:
        return len(self._segmented.segments)

    @property
    def active_segment(self) -> Segment:
        return self._segmented.segments.active

    @property
    def first_base_offset(self) -> int:
        """The base offset of the first segment, at or below the start of the log."""
        return self._segmented.segments.first.base_offset

    @property
    def leader_epochs(self) -> list[EpochStart]:
        """The leader epochs with their start offsets, the oldest first."""
        return self._leader_epochs.entries

    @property
    def latest_leader_epoch(self) -> int:
        """The leader epoch of the last batch, or -1."""
        return self._leader_epochs.latest

    # ---------------------------------------------------------------------------------------------------------- reading

    def read(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool = True) -> LogSlice:
        """A slice that begins with the batch that holds `offset` and ends before `end_offset` (exclusive).

        It has at most `max_bytes` bytes. That limit may cut off its last batch but never its first: if the first batch
        is larger, the slice is this batch if `minimum_one_batch`, else empty (KIP-74). It ends with its segment at the
        latest. At the end of the log, or from `end_offset` on, it is empty. Raises OFFSET_OUT_OF_RANGE outside
        [log_start_offset, log_end_offset]. The caller must release the slice.
        """
        if self._failure.error is not None:
            self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside [{self.log_start_offset}, {self.log_end_offset}]",
            )
        try:  # as `_disk` does, which takes 1 µs more: this is every Fetch
            data = self._segmented.read(offset, max_bytes, end_offset, minimum_one_batch)
        except (OSError, CorruptBatchError, CorruptIndexError) as error:
            raise self._failed("reading", error) from error
        if offset < self.log_start_offset:  # retention has just deleted the segment, and the slice begins behind it
            data.release()
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is below {self.log_start_offset}")
        return data

    def place_of(self, offset: int) -> tuple[Segment, int]:
        """The segment and position where the first batch that ends after `offset` is or, at the end, will be.

        Raises KafkaError.
        """
        end = self._segmented.end
        if offset >= end.offset:
            return end.segment, end.position
        with self._disk("reading the index of"):
            return self._segmented.search(lambda segments: _place_in(segments.from_offset(offset)[0], offset))

    def bytes_of(self, data: LogSlice) -> bytes:
        """Read a slice of this log and release it. Raises KafkaError."""
        try:
            found = data.read()
        except OSError as error:
            raise self._failed("reading", error) from error
        finally:
            data.release()
        if len(found) < data.length:  # another process truncated the file; the disk works
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self} ends at {data.position + len(found)} of a file, inside a slice"
            )
        return found

    def offset_for_timestamp(self, timestamp: int, budget: DecodingBudget | None = None) -> RecordPosition | None:
        """Timestamp, offset and leader epoch of the first record with at least `timestamp`; None without one.

        Raises KafkaError UNKNOWN_SERVER_ERROR or INVALID_RECORD for a batch that cannot be decoded, and
        DecompressionLimitError when the search exceeds the budget: then the caller repeats it on a thread.
        """
        start = self.log_start_offset
        try:  # as `_disk` does, which takes 1 µs more
            return self._segmented.search(lambda segments: find_by_timestamp(segments, timestamp, start, budget))
        except (OSError, CorruptBatchError, CorruptIndexError) as error:
            raise self._failed("searching", error) from error

    def max_timestamp_offset(self, budget: DecodingBudget | None = None) -> RecordPosition | None:
        """The same for the first record with the largest timestamp in the log; None if no record has a timestamp."""
        with self._disk("searching"):
            start = self.log_start_offset
            return self._segmented.search(lambda segments: find_largest_timestamp(segments, start, budget))

    def timestamp_at(self, offset: int) -> int | None:
        """The largest timestamp of the batch that holds `offset`, or of the next one; None without a batch."""
        with self._disk("searching"):
            return self._segmented.search(lambda segments: find_timestamp_at(segments.from_offset(offset), offset))

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, or -1 if it is not known."""
        return self._leader_epochs.epoch_for(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to `leader_epoch` and its end (exclusive), `(-1, -1)` if unknown (KIP-101)."""
        return self._leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions with records in [start_offset, end_offset)."""
        with self._disk("reading the transaction index of"):
            return self._segmented.search(
                lambda segments: aborted_transactions(
                    map(_TRANSACTION_INDEX, segments.with_aborted(start_offset)),  # lazily
                    start_offset,
                    end_offset,
                )
            )

    def aborted_transactions_of(self, offset: int, data: LogSlice) -> list[tuple[int, int]]:
        """The same for the records that a Fetch from `offset` read into `data`."""
        if not any(self.segments.with_aborted(offset)):
            return []
        with self._disk("reading the index of"):
            end_offset = self._segmented.end_of(offset, data)
        return self.aborted_transactions(offset, end_offset)

    def end_of_segment(self, segment: Segment) -> int:
        """The end offset (exclusive) of `segment`: the base of the next one, or the end of the log."""
        behind = [base for base in self._segmented.segments.base_offsets if base > segment.base_offset]
        return behind[0] if behind else self.log_end_offset

    def cleanable_part(self) -> Cleanable:
        """The part of the log that compaction could clean now."""
        with self._disk("reading timestamps of"):
            return self._segmented.search(
                lambda segments: cleanable_part(
                    segments.from_offset(0),
                    self.config,
                    cleaned_offset=self.cleaned_offset,
                    log_start_offset=self.log_start_offset,
                    last_stable_offset=self.last_stable_offset,
                    log_end_offset=self.log_end_offset,
                    now_ms=self._resources.clock.time_ms(),
                )
            )

    def aborted_transactions_below(self, end_offset: int) -> list[AbortedTransaction]:
        """All entries of the transaction indexes for transactions that began below `end_offset`."""
        with self._disk("reading the transaction index of"):
            return self._segmented.search(
                lambda segments: [
                    entry
                    for segment in segments.with_aborted(self.log_start_offset)
                    for entry in segment.transaction_index.entries()
                    if entry.first_offset < end_offset
                ]
            )

    def segments_to_delete(self) -> list[Segment]:
        """The segments that have expired by now, oldest first; the active one only with all others."""
        with self._disk("reading timestamps of"):
            return self._segmented.search(
                lambda segments: segments_to_delete(
                    segments.from_offset(0),
                    self.config,
                    log_start_offset=self.log_start_offset,
                    high_watermark=self.high_watermark,
                    log_end_offset=self.log_end_offset,
                    now_ms=self._resources.clock.time_ms(),
                )
            )

    def state(self) -> LogState:
        """The log at this moment. The caller ensures that nothing is appended or truncated meanwhile."""
        opened = [each for each in self.producers if each.transaction_first_offset != NO_OFFSET]
        if self.log_start_offset == self.log_end_offset:
            opened = []  # a start on an empty log keeps none either: their records were deleted
        with self._disk("reading the indexes of"):
            return state_of(
                tuple(self.segments),
                self.log_start_offset,
                self.log_end_offset,
                self.cleaned_offset,
                encode_snapshot(opened),
                tuple(self._producers.snapshots_below(self.log_end_offset)),
            )

    # ------------------------------------------------------------------------------------------------------ preparation

    @property
    def end_is_checked(self) -> bool:
        """Whether `check_end` has nothing to do."""
        return self._tail_is_checked

    def check_end(self) -> None:
        """Check now, not at the first use, that the log ends where a clean stop left it. Raises KafkaError."""
        self._failure.check()
        if not self._tail_is_checked:
            self._check_tail()

    @abstractmethod
    def _check_tail(self) -> None:
        """At the first use after a clean stop, check that the log ends where the checkpoint says, and repair it."""

    @contextmanager
    def _disk(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (OSError, CorruptBatchError, CorruptIndexError) as error:
            raise self._failed(doing, error) from error

    def _failed(self, doing: str, error: OSError | CorruptBatchError | CorruptIndexError) -> KafkaError:
        """The error to raise because of `error`; a disk error takes the log directory offline."""
        if not isinstance(error, OSError):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))
        if self._is_released:  # its directory was renamed while a thread was reading
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self} was deleted")
        return self._failure.fail(f"{doing} {self}", error)


def _place_in(segment: Segment, offset: int) -> tuple[Segment, int]:
    location = segment.locate(offset)
    return segment, segment.size if location is None else location[0]
