"""A partition in the memory of a scripted broker.

It makes the checks of a leader for idempotent producers (sequence, epoch, the last five batches), so it contains the
same batches as a real log. Like Kafka's, it accepts any first sequence of a producer that is new to it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import AbortedTransaction
from odradek.protocol.records.batch_header import MAX_SEQUENCE, BatchHeader, assign_offsets, batch_headers, crc_is_valid
from odradek.protocol.records.record_iterator import Record, iter_records


class Log:
    def __init__(self, topic: str, partition: int, leader: int) -> None:
        self.topic = topic
        self.partition = partition
        self.leader = leader
        self.leader_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.max_message_bytes = 1 << 30
        self.data = bytearray()
        self.aborted: list[AbortedTransaction] = []
        self.appended = asyncio.Event()  # set at the next append, and replaced
        # By producer id: epoch, first and last sequence, base offset of its last batches.
        self._producers: dict[int, deque[tuple[int, int, int, int]]] = defaultdict(lambda: deque(maxlen=5))

    def append(self, records: bytes | bytearray) -> tuple[ErrorCode, int]:
        """Append a batch as a leader does; return the error and the base offset."""
        data = bytearray(records)
        [(position, header)] = batch_headers(data)
        if not crc_is_valid(data, position, header):
            return ErrorCode.CORRUPT_MESSAGE, -1
        if header.size > self.max_message_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.has_producer_id:
            error, duplicate_of = self._check_producer(header)
            if error or duplicate_of >= 0:
                return error, duplicate_of
        base_offset = self.end_offset
        assign_offsets(data, position, base_offset, self.leader_epoch)
        self.add(data)
        return ErrorCode.NONE, base_offset

    def add(self, batch: bytes | bytearray) -> None:
        """Append a batch without any check."""
        for _, header in batch_headers(batch):
            self.end_offset = header.next_offset
        self.data += batch
        appended, self.appended = self.appended, asyncio.Event()
        appended.set()

    def _check_producer(self, header: BatchHeader) -> tuple[ErrorCode, int]:
        batches = self._producers[header.producer_id]
        this = (header.producer_epoch, header.base_sequence, header.last_sequence)
        for *known, base_offset in batches:
            if tuple(known) == this:
                return ErrorCode.NONE, base_offset
        if batches:
            epoch, _, last_sequence, _ = batches[-1]
            if header.producer_epoch < epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            expected = (last_sequence + 1) & MAX_SEQUENCE if header.producer_epoch == epoch else 0
            if header.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        batches.append((*this, self.end_offset))
        return ErrorCode.NONE, -1

    def forget_all_but_the_last_batch(self) -> None:
        """Keep of each producer only what a snapshot of Kafka contains, as after a crash."""
        for batches in self._producers.values():
            while len(batches) > 1:
                batches.popleft()

    def forget_producers(self) -> None:
        """Drop the state of all producers, as when they have expired."""
        self._producers.clear()

    def records(self) -> list[Record]:
        return [
            record
            for position, header in batch_headers(self.data)
            for record in iter_records(self.data, position, header)
        ]

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records()]

    def headers(self) -> list[BatchHeader]:
        return [header for _, header in batch_headers(self.data)]

    def truncate(self, offset: int) -> None:
        """Remove the batches from this offset on, which is the start of a batch or the end of the log."""
        for position, header in batch_headers(self.data):
            if header.base_offset >= offset:
                del self.data[position:]
                break
        self.end_offset = offset

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and its end offset; -1 and -1 without any."""
        known = -1
        for header in self.headers():
            if header.partition_leader_epoch > epoch:
                return (known, header.base_offset) if known >= 0 else (-1, -1)
            known = header.partition_leader_epoch
        return (known, self.end_offset) if known >= 0 else (-1, -1)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that contains `offset`, at least one."""
        found = bytearray()
        for position, header in batch_headers(self.data):
            if header.last_offset >= offset:
                if found and len(found) + header.size > max_bytes:
                    break
                found += self.data[position : position + header.size]
        return bytes(found)
