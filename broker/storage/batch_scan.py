"""Walks over the batches of a segment file without reading their records.

Every format begins alike, so one walk reads batches of magic 2 and the message sets of magic 0 and 1 in old segments
(there each entry is one message, or one wrapper around compressed messages, and has its *last* offset in front):

```
          magic 2                               magic 1                        magic 0
 0 i64    base offset                           last offset                    last offset
 8 i32    length of what follows                same                           same
12        leader epoch i32                      crc i32                        crc i32
16 i8     magic                                 same                           same
17        crc u32, attributes i16               attributes i8, timestamp i64   attributes i8
23 i32    last offset delta
35 i64    max timestamp
```

Small batches are read many at a time; of large ones only the heads: a walk over a gigabyte of 16 KiB batches reads 4
MB.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    crc_is_valid,
    read_batch_header,
)
from odradek.protocol.records.message_set import (
    MIN_LENGTHS,
    TIMESTAMP_POSITION,
    message_crc_is_valid,
    read_message_header,
)

_HEAD = struct.Struct(">qiib4xhiqq")  # to the max timestamp of magic 2; the other formats use the first four fields
_SHORT_HEAD = struct.Struct(">qi4xb6xi")  # base offset, length, magic and last offset delta
_OLD_TIMESTAMP = struct.Struct(">q")

_WINDOW = 8192  # two index intervals: most look-ups end in the first read
_CHUNK = 1 << 20
_FEW = 8  # heads, each of which takes 0.4 µs


class CorruptBatchError(Exception):
    """The bytes at `position` of the file are no batch, or only a part of one."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at position {position}: {reason}")
        self.position = position
        self.reason = reason


class StoredBatch(NamedTuple):
    """A batch in a segment file. `leader_epoch` is -1 before magic 2; both offsets are inclusive."""

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int


Head = tuple[StoredBatch, bytes, int]
"""A batch, and a buffer with the place where its first bytes are."""


def scan_batches(descriptors: DescriptorCache, path: str, start: int, end: int) -> Iterator[StoredBatch]:
    """Yield the batches of [start, end), positions in the file; both must be boundaries of batches.

    Raises `CorruptBatchError` where there is no batch, or where `end` cuts one off.
    """
    for batch, _, _ in scan_heads(descriptors, path, start, end):
        yield batch


def find_batch(
    descriptors: DescriptorCache, path: str, start: int, end: int, offset: int
) -> tuple[int, int, int] | None:
    """Position, size and base offset of the first batch in [start, end) whose last offset is at least `offset`.

    Raises as `scan_batches`, which finds the same more slowly: this is most of the cost of a Fetch that is not at the
    tail.
    """
    unpack, pread = _SHORT_HEAD.unpack_from, descriptors.files.pread
    position, wanted = start, _WINDOW
    descriptor = descriptors.pin(path)
    try:
        while position + BATCH_HEADER_SIZE <= end:
            window = pread(descriptor.number, min(wanted, end - position), position)
            at, last_head = 0, len(window) - BATCH_HEADER_SIZE
            while at <= last_head:
                base_offset, length, magic, delta = unpack(window, at)
                size = length + LOG_OVERHEAD
                if magic != MAGIC or length < MIN_LENGTHS[MAGIC] or delta < 0 or position + at + size > end:
                    break
                if base_offset + delta >= offset:
                    return position + at, size, base_offset
                at += size
            position += at
            if at <= last_head or not at:
                break  # an old message, no batch at all, or the end of the file
            wanted = BATCH_HEADER_SIZE if at >= _WINDOW else _WINDOW  # of large batches only the heads
    finally:
        descriptors.unpin(descriptor)
    for batch in scan_batches(descriptors, path, position, end):
        if batch.last_offset >= offset:
            return batch.position, batch.size, batch.base_offset
    return None


def find_cut_off_batch(data: bytes) -> tuple[int, int, int] | None:
    """The batch that the end of `data` cuts off: its first possible offset, position and size.

    `data` begins with a batch. Returns None if no batch is cut off, if too little of its head is there, if it has an
    old format, or if more than a few batches precede it: a search of the index is as fast then.
    """
    unpack, end = _SHORT_HEAD.unpack_from, len(data) - _SHORT_HEAD.size
    at = next_offset = 0
    for _ in range(_FEW):
        if at > end:
            break
        base_offset, length, magic, delta = unpack(data, at)
        if magic != MAGIC or length < MIN_LENGTHS[MAGIC] or delta < 0 or base_offset < next_offset:
            break
        size = length + LOG_OVERHEAD
        if at + size > len(data):
            return (next_offset, at, size) if at else None
        at += size
        next_offset = base_offset + delta + 1
    return None


def scan_headers(
    descriptors: DescriptorCache, path: str, start: int, end: int
) -> Iterator[tuple[StoredBatch, BatchHeader]]:
    """Yield the batches of magic 2 in [start, end) with their headers; raises as `scan_batches`."""
    for batch, buffer, at in scan_heads(descriptors, path, start, end):
        if batch.magic == 2:
            yield batch, read_batch_header(buffer, at)


def scan_heads(
    descriptors: DescriptorCache, path: str, start: int, end: int, large_head: int = BATCH_HEADER_SIZE
) -> Iterator[Head]:
    """Yield the batches of [start, end) with their first bytes; raises as `scan_batches`.

    The buffer has at least 61 bytes of a batch (zeros behind a short old message). Of a batch that follows a large one
    it has `large_head`, at least 61, or the whole batch.
    """
    position = start
    window, window_start = b"", start
    size = 0
    while position < end:
        at = position - window_start
        if at + BATCH_HEADER_SIZE > len(window):
            length = large_head if size >= _WINDOW else _WINDOW
            window, window_start, at = _read(descriptors, path, position, min(length, end - position)), position, 0
            if len(window) < BATCH_HEADER_SIZE:
                window += bytes(BATCH_HEADER_SIZE)
        batch = _parse_head(path, window, at, position)
        size = batch.size
        if position + size > end:
            raise CorruptBatchError(
                path, position, f"a batch of {pluralize(size, 'byte')} where {end - position} remain"
            )
        yield batch, window, at
        position += size


def read_whole_batches(
    descriptors: DescriptorCache, path: str, start: int, end: int
) -> Iterator[tuple[StoredBatch, memoryview]]:
    """Yield the batches of [start, end) with all their bytes, which are valid until the next step.

    Raises `CorruptBatchError` where there is no batch, where `end` cuts one off, and for a wrong checksum.
    """
    position = start
    chunk, chunk_start = memoryview(b""), start
    while position < end:
        at = position - chunk_start
        if at + _HEAD.size > len(chunk):
            chunk, chunk_start, at = _read_chunk(descriptors, path, position, min(_CHUNK, end - position)), position, 0
        head = chunk if at + _HEAD.size <= len(chunk) else bytes(chunk[at:]) + bytes(_HEAD.size)
        batch = _parse_head(path, head, at if head is chunk else 0, position)
        size = batch.size
        if position + size > end:
            raise CorruptBatchError(
                path, position, f"a batch of {pluralize(size, 'byte')} where {end - position} remain"
            )
        if at + size > len(chunk):
            length = min(max(_CHUNK, size), end - position)
            chunk, chunk_start, at = _read_chunk(descriptors, path, position, length), position, 0
        data = chunk[at : at + size]
        if not _checksum_is_valid(batch, data):
            raise CorruptBatchError(path, position, "the checksum is wrong")
        yield batch, data
        position += size


def _parse_head(path: str, buffer: bytes | memoryview, at: int, position: int) -> StoredBatch:
    """The batch whose first bytes are at `at` of the buffer, and at `position` of the file."""
    offset, length, epoch, magic, _, delta, _, max_timestamp = _HEAD.unpack_from(buffer, at)
    if not 0 <= magic <= 2:
        raise CorruptBatchError(path, position, f"magic {magic} is unknown")
    if length < MIN_LENGTHS[magic] or offset < 0:
        raise CorruptBatchError(path, position, f"offset {offset} and length {length} cannot be of a batch")
    if magic == 2:
        if delta < 0:
            raise CorruptBatchError(path, position, f"last offset delta {delta} is negative")
        return StoredBatch(position, length + LOG_OVERHEAD, magic, offset, offset + delta, max_timestamp, epoch)
    if magic == 1:
        (max_timestamp,) = _OLD_TIMESTAMP.unpack_from(buffer, at + TIMESTAMP_POSITION)
    else:
        max_timestamp = NO_TIMESTAMP
    return StoredBatch(position, length + LOG_OVERHEAD, magic, offset, offset, max_timestamp, -1)


def _checksum_is_valid(batch: StoredBatch, data: memoryview) -> bool:
    if batch.magic == 2:
        return crc_is_valid(data, 0, read_batch_header(data))
    return message_crc_is_valid(data, 0, read_message_header(data))


def _read(descriptors: DescriptorCache, path: str, position: int, length: int) -> bytes:
    descriptor = descriptors.pin(path)
    try:
        data = descriptors.files.pread(descriptor.number, length, position)
    finally:
        descriptors.unpin(descriptor)
    if len(data) != length:
        raise CorruptBatchError(path, position, f"the file ends where {pluralize(length, 'byte')} should follow")
    return data


def _read_chunk(descriptors: DescriptorCache, path: str, position: int, length: int) -> memoryview:
    return memoryview(_read(descriptors, path, position, length))
