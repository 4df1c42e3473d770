"""One partition of a log directory that no broker serves: offsets, segments, records, producers, times."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.storage.batch_scan import StoredBatch
from odradek.broker.storage.checkpoints.leader_epochs import EpochStart
from odradek.broker.storage.index.timestamp_lookup import RecordPosition
from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.broker.storage.log import Log
from odradek.broker.storage.producers.producer_state import NO_OFFSET, ProducerEntry
from odradek.broker.storage.segment import Segment
from odradek.protocol.records.batch_header import BatchHeader, read_batch_header
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_iterator import Record, iter_records


class StoredPartition:
    """One partition. `log_start_offset` is inclusive, `log_end_offset` and `last_stable_offset` are exclusive.

    Methods that read the log raise KafkaError KAFKA_STORAGE_ERROR or `OSError` if the disk fails, KafkaError
    CORRUPT_MESSAGE or `CorruptBatchError` where there is no batch, `RemoteProtocolError` for malformed records.
    """

    def __init__(self, log: Log) -> None:
        self.topic = log.topic
        self.partition = log.partition
        self.topic_id = log.topic_id
        self.directory = log.directory
        self._log = log

    def __repr__(self) -> str:
        return f"StoredPartition({self.topic}-{self.partition})"

    @property
    def log_start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the earliest open transaction; the end of the log without one."""
        return self._log.last_stable_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of batches."""
        return self._log.size_bytes

    @property
    def segments(self) -> list[Segment]:
        """The segments, the oldest first; their indexes are read on first use."""
        return list(self._log.segments)

    @property
    def leader_epochs(self) -> list[EpochStart]:
        return self._log.leader_epochs

    @property
    def producers(self) -> list[ProducerEntry]:
        """The idempotent producers at the end of the log, also expired ones."""
        return list(self._log.producers)

    def offset_for_timestamp(self, timestamp: int) -> RecordPosition | None:
        """Timestamp (ms), offset and leader epoch of the first record with at least `timestamp`; None without one."""
        return self._log.offset_for_timestamp(timestamp)

    def max_timestamp_offset(self) -> RecordPosition | None:
        """The same for the first record with the largest timestamp; None if no record has one."""
        return self._log.max_timestamp_offset()

    def batches(self, start_offset: int | None = None) -> Iterator[tuple[StoredBatch, bytes]]:
        """The batches with all their bytes, from the one that holds `start_offset`, or the next one, on.

        Raises KafkaError OFFSET_OUT_OF_RANGE outside the log.
        """
        start = self.log_start_offset if start_offset is None else start_offset
        with self._log.read(start, 1, self.log_end_offset) as found:
            first, position = found.segment_base_offset, found.position
        for segment in self._log.segments.from_offset(start):
            if segment.base_offset >= first >= 0:
                for batch in segment.log.batches(position):
                    yield batch, segment.log.read(batch)
                position = 0

    def records(
        self, start_offset: int | None = None, end_offset: int | None = None, *, decided_only: bool = False
    ) -> Iterator[Record]:
        """The records with offsets in [start, end), by default all, without markers of transactions.

        With `decided_only`, omits those of aborted and of open transactions. That is more than a `read_committed`
        consumer gets, which stops at the last stable offset.
        """
        found = self.records_with_headers(start_offset, end_offset, decided_only=decided_only)
        return (record for _, record in found)

    def records_with_headers(
        self, start_offset: int | None = None, end_offset: int | None = None, *, decided_only: bool = False
    ) -> Iterator[tuple[BatchHeader | None, Record]]:
        """As `records`, each with the header of its batch; None for the formats before Kafka 0.11."""
        start = self.log_start_offset if start_offset is None else start_offset
        end = self.log_end_offset if end_offset is None else end_offset
        undecided = _Undecided(self._log) if decided_only else None
        for batch, data in self.batches(start):
            if batch.base_offset >= end:
                return
            header = read_batch_header(data) if batch.magic == 2 else None
            if header is not None and (header.is_control or (undecided is not None and undecided.holds(header))):
                continue
            for record in iter_messages(data) if header is None else iter_records(data, 0, header):
                if start <= record.offset < end:
                    yield header, record


class _Undecided:
    """The batches of transactions that were aborted, or not ended."""

    def __init__(self, log: Log) -> None:
        self._open = {each.producer_id: each.transaction_first_offset for each in log.producers}
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for segment in log.segments:
            for aborted in segment.transaction_index.entries():
                self._aborted.setdefault(aborted.producer_id, []).append(aborted)

    def holds(self, header: BatchHeader) -> bool:
        if not header.is_transactional:
            return False
        offset, since = header.base_offset, self._open.get(header.producer_id, NO_OFFSET)
        if since != NO_OFFSET and offset >= since:
            return True
        aborted = self._aborted.get(header.producer_id, ())
        return any(each.first_offset <= offset <= each.last_offset for each in aborted)
