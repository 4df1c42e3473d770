"""The rules of compaction for one batch: keep it, keep some records, keep the header alone, or remove it.

| record                                                                | is kept                                     |
|-----------------------------------------------------------------------|---------------------------------------------|
| of an aborted transaction                                             | no                                          |
| behind the offset up to which keys were collected                     | yes                                         |
| without a key                                                         | no: no later record could replace it        |
| with a later record of its key                                        | no                                          |
| a tombstone (key, no value), the last of its key                      | until the delete horizon of its batch       |
| any other                                                             | yes                                         |
| the marker of a transaction whose records are all removed             | until the delete horizon of its batch       |
| any other control record                                              | yes                                         |

The delete horizon is set when compaction first meets a tombstone as the last of its key, or such a marker:
`delete.retention.ms` later, so that every reader that is not further behind sees the deletion (KIP-534).

A batch without records is removed, unless it is the last one of a known producer, whose sequence it carries, or the
last one that this round reads, whose offset it keeps. Compaction does not change what a batch keeps: offsets, base
offset, sequences, leader epoch, codec. The rules are those of Kafka's `Cleaner`.

Messages of magic 0 and 1 have no delete horizon; their tombstones are removed once their segment is
`delete.retention.ms` older than the last one that was cleaned before. Differs from Kafka: a compressed set of them is
kept whole while one message in it must stay, because the old formats are only read here.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.storage.compaction.cleaned_transactions import CleanedTransactions
from odradek.broker.storage.compaction.dirty_offsets import KEYLESS, LIVE, SUPERSEDED, TOMBSTONE, DirtyOffsets
from odradek.broker.storage.compaction.key_offsets import KeyOffsets
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_iterator import records_section
from odradek.protocol.records.record_scan import ScannedRecord, empty_batch, rebuild_batch, scan_records
from odradek.protocol.varint import INT64_MAX

NO_OFFSET = -1


class LastBatch(NamedTuple):
    """A producer's last batch of data: its last offset, -1 if there is none, and the producer's epoch."""

    last_offset: int
    epoch: int


class CleanedBatch(NamedTuple):
    """The result for a batch: its bytes or None; of the records `read`, how many were `kept` or `invalid` (no key)."""

    data: memoryview | bytearray | None
    kept: int
    read: int
    invalid: int = 0


class BatchCleaning:
    """The rules, with the data of one log and one round that they need."""

    def __init__(
        self,
        keys: KeyOffsets,
        dirty: DirtyOffsets,
        transactions: CleanedTransactions,
        last_batches: dict[int, LastBatch],
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys = keys
        self._dirty = dirty
        self.transactions = transactions
        self._last_batches = last_batches
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, INT64_MAX)  # a batch has 64 bits for it

    def clean(self, data: memoryview, header: BatchHeader) -> CleanedBatch:
        """Clean a batch of magic 2; `data` is all of it, and the result may refer to `data`."""
        is_discardable = self.transactions.is_discardable(data, header)
        horizon_ms = header.delete_horizon_ms
        has_passed = horizon_ms is not None and horizon_ms <= self._now_ms
        if is_discardable and (has_passed or not header.is_control):
            return self._without_records(header)
        if not header.records_count:
            return self._without_records(header)
        if header.is_control:
            if not is_discardable or horizon_ms is not None:
                return CleanedBatch(data, header.records_count, header.records_count)
            records = records_section(data, 0, header)
            marker = list(scan_records(records, header.records_count))
            rebuilt = rebuild_batch(header, records, marker, self._horizon_ms)
            return CleanedBatch(rebuilt, len(marker), len(marker))
        return self._clean_records(data, header, drops_tombstones=has_passed)

    def _clean_records(self, data: memoryview, header: BatchHeader, *, drops_tombstones: bool) -> CleanedBatch:
        count = header.records_count
        states = self._states(header)
        if states is not None and not any(states):
            return CleanedBatch(data, count, count)
        if states is not None and states.count(SUPERSEDED) == len(states):
            return self._without_records(header)
        records = records_section(data, 0, header)
        kept: list[ScannedRecord] = []
        has_tombstones = False
        invalid = 0
        for record in scan_records(records, count):
            state = self._state(header.base_offset, record) if states is None else states[record.offset_delta]
            if state == LIVE:
                kept.append(record)
            elif state == TOMBSTONE:
                if not drops_tombstones:
                    kept.append(record)
                    has_tombstones = True
            elif state == KEYLESS:
                invalid += 1
        if not kept:
            return self._without_records(header)._replace(invalid=invalid)
        horizon_ms = self._horizon_ms if has_tombstones and not header.has_delete_horizon else None
        if len(kept) == count and horizon_ms is None:
            return CleanedBatch(data, count, count, invalid)
        return CleanedBatch(rebuild_batch(header, records, kept, horizon_ms), len(kept), count, invalid)

    def _states(self, header: BatchHeader) -> bytearray | None:
        """The states of a batch that the first pass has read whole, else None."""
        if header.last_offset > self._keys.latest_offset:
            return None
        return self._dirty.states(header.base_offset, header.last_offset)

    def _state(self, base_offset: int, record: ScannedRecord) -> int:
        """The state of a record in another batch; behind the first pass, a record counts as the last of its key."""
        offset = base_offset + record.offset_delta
        if offset <= self._keys.latest_offset:
            if record.key is None:
                return KEYLESS
            if offset < self._keys.get(record.key):
                return SUPERSEDED
        return LIVE if record.has_value else TOMBSTONE

    def _without_records(self, header: BatchHeader) -> CleanedBatch:
        is_needed = header.next_offset == self._end_offset or self._is_last_of_producer(header)
        return CleanedBatch(empty_batch(header) if is_needed else None, 0, header.records_count)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_batches.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset != NO_OFFSET:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def clean_messages(self, data: memoryview, *, drops_tombstones: bool) -> CleanedBatch:
        """Clean one message of magic 0 or 1, or a compressed set of them."""
        records = list(iter_messages(data))
        invalid = sum(1 for record in records if record.key is None)
        for record in records:
            if record.offset > self._keys.latest_offset:
                break
            is_dropped_tombstone = drops_tombstones and record.value is None
            if record.key is not None and record.offset >= self._keys.get(record.key) and not is_dropped_tombstone:
                break
        else:
            return CleanedBatch(None, 0, len(records), invalid)
        return CleanedBatch(data, len(records), len(records), invalid)
