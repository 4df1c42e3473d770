"""The records of one partition in one Fetch response: filtered and decoded while they are iterated.

These are skipped: records before the position (the data begin with the whole batch that contains it), an incomplete
batch at the end, control batches, and with `read_committed` the records of aborted transactions (KIP-98). The response
lists aborted transactions as (producer id, first offset); a producer is in an aborted transaction from that offset to
its next ABORT marker. The data end at the last stable offset, so no transaction in them is open.

Each batch is decompressed and decoded when the iteration reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from odradek.client.errors import CorruptRecordsError
from odradek.client.record import ConsumerRecord, TopicPartition
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.messages.fetch import AbortedTransaction
from odradek.protocol.records.aborted_filter import AbortedFilter
from odradek.protocol.records.batch_header import (
    CONTROL_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    crc_is_valid,
    read_batch_header,
)
from odradek.protocol.records.message_set import iter_messages, magic_of, read_message_header
from odradek.protocol.records.record_iterator import Record, RecordColumns, iter_columns
from odradek.protocol.records.record_runs import Shapes

_SPECIAL = CONTROL_BIT | TRANSACTIONAL_BIT


class CompletedFetch:
    """The records of `data` from offset `start` on; `records` iterates over them.

    `next_offset` is the offset of the next fetch, `last_epoch` the leader epoch of the record before it (-1 in formats
    without epochs). If a batch is corrupt, the constructor raises CorruptRecordsError for the first batch, and the
    iteration for a later one, after the records before it.
    """

    __slots__ = (
        "_aborted",
        "_batches",
        "_check_crcs",
        "_data",
        "_shapes",
        "last_epoch",
        "next_offset",
        "partition",
        "records",
    )

    def __init__(
        self,
        partition: TopicPartition,
        data: memoryview,
        start: int,
        *,
        check_crcs: bool,
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> None:
        """`aborted` is None with `read_uncommitted`."""
        self.partition = partition
        self.next_offset = start
        self.last_epoch = -1
        self._data = data
        self._check_crcs = check_crcs
        self._aborted = AbortedFilter([(one.producer_id, one.first_offset) for one in aborted]) if aborted else None
        self._shapes: Shapes = {}
        self._batches: list[tuple[int, BatchHeader | None]] = []  # None: a message of magic 0 or 1
        self._find_batches()
        self.records = chain.from_iterable(self._read(start))

    @property
    def size(self) -> int:
        """The number of fetched bytes."""
        return len(self._data)

    def _find_batches(self) -> None:
        """Find the complete batches, up to the first corrupt one; the next fetch begins with that one and raises."""
        data = self._data
        position, end = 0, len(data)
        while end - position > MAGIC_POSITION:
            offset, length = OFFSET_AND_LENGTH.unpack_from(data, position)
            if position + LOG_OVERHEAD + length > end:
                return
            header = None
            try:
                if magic_of(data, position) >= MAGIC:
                    header = read_batch_header(data, position)
                else:
                    read_message_header(data, position)
            except RemoteProtocolError as error:
                if not self._batches:
                    raise self._corrupt_error(offset, str(error)) from error
                return
            self._batches.append((position, header))
            self.next_offset = max(self.next_offset, offset + 1 if header is None else header.next_offset)
            self.last_epoch = -1 if header is None else header.partition_leader_epoch
            position += LOG_OVERHEAD + length

    def _read(self, start: int) -> Iterator[Iterator[ConsumerRecord]]:
        """Yield iterators that make each record when it is taken."""
        place = [repeat(field) for field in self.partition]
        for position, header in self._batches:
            try:
                rest = [repeat(field) for field in self._common_fields(position, header)]
                for columns in self._decode(position, header):
                    records: Iterator[ConsumerRecord] = map(ConsumerRecord, *place, *columns, *rest)
                    if _lowest(columns.offsets, start) < start:
                        records = filter(lambda record: record.offset >= start, records)
                    yield records
            except RemoteProtocolError as error:
                raise self._corrupt_error(OFFSET_AND_LENGTH.unpack_from(self._data, position)[0], str(error)) from error

    def _common_fields(self, position: int, header: BatchHeader | None) -> tuple[TimestampType | None, int]:
        """The last fields of a ConsumerRecord, which are the same for all records of a batch."""
        if header is not None:
            return header.timestamp_type, header.partition_leader_epoch
        message = read_message_header(self._data, position)
        return (message.timestamp_type if message.magic else None), -1

    def _decode(self, position: int, header: BatchHeader | None) -> Iterator[RecordColumns]:
        data = self._data
        if header is None:
            _, length = OFFSET_AND_LENGTH.unpack_from(data, position)
            messages = iter_messages(data[position : position + LOG_OVERHEAD + length])
            return map(_one_record, messages)
        if self._check_crcs and not crc_is_valid(data, position, header):
            raise RemoteProtocolError("the checksum is wrong")
        if header.attributes & _SPECIAL and self._is_skipped(position, header):
            return iter(())
        return iter_columns(data, position, header, shapes=self._shapes)

    def _is_skipped(self, position: int, header: BatchHeader) -> bool:
        """Whether a control or transactional batch is skipped as a whole."""
        return header.is_control if self._aborted is None else self._aborted.skips(self._data, position, header)

    def _corrupt_error(self, offset: int, cause: str) -> CorruptRecordsError:
        topic, partition = self.partition
        cure = "Seek past it, and check the log with `odradek verify` at the broker"
        return CorruptRecordsError(offset, cause, cure, topic=topic, partition=partition)


def _lowest(offsets: Sequence[int], default: int) -> int:
    return offsets[0] if isinstance(offsets, range) else min(offsets, default=default)


def _one_record(record: Record) -> RecordColumns:
    return RecordColumns([record.offset], [record.timestamp], [record.key], [record.value], [tuple(record.headers)])
