"""The snapshot of a partition's producers (`.snapshot`), so that a start need not read the log to know them.

```
version i16          1
crc     u32          CRC-32C of everything that follows it
count   i32
  producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32 (of the last batch),
  timestamp i64, coordinator epoch i32, transaction's first offset i64
```

Big-endian; -1 where there is nothing. The file's name is an offset: the state covers all records below it. Only the
last batch of each producer is kept, so a retry of an earlier one is not recognised after a clean stop; after a crash
see `producer_history`. Source: Kafka's `ProducerSnapshot.json`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import islice

from odradek.broker.storage.producers.producer_entry import NO_OFFSET, AppendedBatch, ProducerEntry, preceding_sequence
from odradek.protocol.checksum import crc32c
from odradek.protocol.plural import pluralize

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_CHUNK = 1000  # rows, a millisecond

EMPTY_SIZE = _HEAD.size + _COUNT.size


class CorruptSnapshotError(Exception):
    """The bytes are no snapshot, or damaged."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytearray:
    """Encode the state of these producers.

    Of a million it takes a second: not on the event loop. Threads have their turns all the while.
    """
    data = bytearray(EMPTY_SIZE)
    rest = iter(entries)
    while rows := [_row(entry) for entry in islice(rest, _CHUNK)]:
        data += b"".join(rows)
    _COUNT.pack_into(data, _HEAD.size, (len(data) - EMPTY_SIZE) // _ENTRY.size)
    _HEAD.pack_into(data, 0, _VERSION, crc32c(memoryview(data)[_HEAD.size :]))
    return data


def _row(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_offset,
        0 if last is None else last.last_offset - last.first_offset,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )


def decode_snapshot(data: bytes | bytearray) -> list[ProducerEntry]:
    """The producers of a snapshot, or `CorruptSnapshotError`."""
    if len(data) < EMPTY_SIZE:
        raise CorruptSnapshotError(f"{pluralize(len(data), 'byte is', 'bytes are')} too few")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"version {version} is unknown")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshotError("the checksum is wrong")
    (count,) = _COUNT.unpack_from(body)
    rows = body[_COUNT.size :]
    if len(rows) != count * _ENTRY.size:
        raise CorruptSnapshotError(f"{pluralize(count, 'producer')} in {pluralize(len(rows), 'byte')}")
    return [_entry(*row) for row in _ENTRY.iter_unpack(rows)]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp,
        transaction_first_offset if transaction_first_offset >= 0 else -1,
    )
    if last_offset > NO_OFFSET:
        first_sequence = preceding_sequence(last_sequence, offset_delta)
        first_offset = last_offset - offset_delta
        entry.batches = (AppendedBatch(first_sequence, last_sequence, first_offset, last_offset, timestamp),)
    return entry
