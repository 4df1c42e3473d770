"""The snapshots of a partition's producers (`.snapshot`), so that a start need not read the log.

```
version i16          1
crc     u32          CRC-32C of everything that follows it
count   i32
  producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32 (of the last batch),
  timestamp i64, coordinator epoch i32, transaction's first offset i64
```

Big-endian; -1 stands for none. The file's name is an offset: the state covers all records below it. A snapshot holds
only the last batch of each producer, so after a clean stop a retry of an earlier batch is not recognised; after a crash
see `partition_producers.complete_batches`. Source: Kafka's `ProducerSnapshot.json`.

A snapshot is written when a segment is rolled (named by the new segment's base offset) and when the log is closed
(named by its end), even if there are no producers: then it is empty. A segment's snapshot is deleted with the segment.
When a log is opened, only the snapshots of its segments stay, and the latest one.
"""

from __future__ import annotations

import logging
import struct
from bisect import insort
from collections.abc import Collection, Iterable
from itertools import islice

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import create_file
from odradek.broker.storage.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from odradek.broker.storage.producers.producer_state import (
    NO_OFFSET,
    AppendedBatch,
    ProducerEntry,
    ProducerState,
    preceding_sequence,
)
from odradek.protocol.checksum import crc32c
from odradek.protocol.plural import pluralize

_LOG = logging.getLogger(__name__)

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_CHUNK = 1000  # rows; they take a millisecond

EMPTY_SIZE = _HEAD.size + _COUNT.size


class CorruptSnapshotError(Exception):
    """The bytes are no snapshot, or a damaged one."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytearray:
    """Encode the state of these producers.

    A million takes a second, so not on the event loop; other threads get their turns meanwhile.
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


class ProducerSnapshots:
    """The snapshots in one partition's directory, by offset."""

    def __init__(self, directory: str, descriptors: DescriptorCache, offsets: Iterable[int] = ()) -> None:
        self._directory = directory
        self._files = descriptors.retrying_files
        self.offsets = sorted(offsets)
        self._unsynced: list[int] = []

    @property
    def latest(self) -> int:
        """The offset of the latest snapshot, or -1."""
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def write(self, state: ProducerState) -> None:
        """Write `state` at its end offset, unless a snapshot covers that already or it is 0; not yet synced."""
        offset = state.end_offset
        if offset <= max(self.latest, 0):
            return
        descriptor = create_file(self._files, self.path(offset))
        try:
            self._files.pwrite(descriptor, encode_snapshot(state.entries.values()), 0)
        finally:
            self._files.close(descriptor)
        insort(self.offsets, offset)
        self._unsynced.append(offset)

    def load_latest(self, state: ProducerState, log_start_offset: int, now_ms: int, expiration_ms: int) -> None:
        """Load the latest sound snapshot, or none from `log_start_offset` on; remove damaged snapshots."""
        while self.offsets:
            offset = self.latest
            try:
                entries = decode_snapshot(self._files.read(self.path(offset)))
            except CorruptSnapshotError as error:
                _LOG.warning("dropping the producer snapshot %s: %s", self.path(offset), error)
                self.remove(offset)
            else:
                for entry in entries:
                    state.record_id(entry.producer_id)
                state.load((e for e in entries if not _is_expired(e, now_ms, expiration_ms)), offset)
                return
        state.load((), log_start_offset)

    def remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        self._files.remove(self.path(offset))

    def remove_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Remove the snapshots outside (log_start_offset, log_end_offset]."""
        for offset in list(self.offsets):
            if not log_start_offset < offset <= log_end_offset:
                self.remove(offset)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Keep only the snapshots at the base offsets of segments, and the latest one."""
        for offset in self.offsets[:-1]:
            if offset not in base_offsets:
                self.remove(offset)
        if base_offsets and self.offsets and self.latest < max(base_offsets) and self.latest not in base_offsets:
            self.remove(self.latest)

    def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot at `offset` to `.deleted`, if there is one, and return its new path."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        self._files.rename(path, path + DELETED_SUFFIX)
        return path + DELETED_SUFFIX

    def flush(self) -> None:
        """Sync the snapshots written since the last flush."""
        unsynced, self._unsynced = self._unsynced, []
        while unsynced:
            try:
                self._sync(unsynced[-1])
            except OSError:
                self._unsynced += unsynced
                raise
            unsynced.pop()

    def _sync(self, offset: int) -> None:
        if offset in self.offsets:
            descriptor = self._files.open(self.path(offset))
            try:
                self._files.fsync(descriptor)
            finally:
                self._files.close(descriptor)


def _is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.transaction_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
