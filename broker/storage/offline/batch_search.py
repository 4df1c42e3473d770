"""The search for the next batch behind damage, where neither a length nor an index says where it begins.

A candidate has magic 2, offsets of its segment, a length that fits, and a valid checksum, so bytes inside a record are
hardly ever taken for a batch. Messages of magic 0 and 1 are not found.

The search reads every byte once. Candidates are read again for their checksums: the sum of their lengths is bounded,
because a hostile file may consist of heads with wrong checksums.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from odradek.protocol.checksum import crc32c
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CRC_START,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    MIN_BATCH_LENGTH,
)

Read = Callable[[int, int], bytes]
"""Read at most a length of bytes, the first argument, at a position of the file, the second; fewer at its end."""

_HEAD: Final = struct.Struct(">qiibIhi")  # base offset … last offset delta
_OFFSET: Final = struct.Struct(">q")
_CHUNK: Final = 1 << 20
MOST_CHECKED: Final = 256 << 20  # bytes of candidates: more than the largest batch that a broker accepts by default


def find_next_batch(read: Read, start: int, end: int, low: int, high: int) -> int | None:
    """The position of the first sound batch in [start, end) of a file, with offsets in [low, high), or None."""
    prefix = _common_prefix(_OFFSET.pack(low), _OFFSET.pack(max(high - 1, low)))
    head = re.compile(re.escape(prefix) + b".{%d}" % (MAGIC_POSITION - len(prefix)) + bytes([MAGIC]), re.DOTALL)
    left = MOST_CHECKED
    position = start
    while position + BATCH_HEADER_SIZE <= end:
        data = read(min(_CHUNK, end - position), position)
        if len(data) < BATCH_HEADER_SIZE:
            return None  # the file is shorter than it was
        found = head.search(data) if data.strip(b"\0") else None
        while found is not None and found.start() + BATCH_HEADER_SIZE <= len(data):
            at = found.start()
            size = _size_of(data, at, end - position - at, low, high)
            if size:
                left -= size
                if left < 0:
                    return None
                batch = data[at : at + size] if at + size <= len(data) else read(size, position + at)
                if len(batch) == size and crc32c(memoryview(batch)[CRC_START:]) == _HEAD.unpack_from(batch)[4]:
                    return position + at
            found = head.search(data, at + 1)
        position += len(data) - BATCH_HEADER_SIZE + 1
    return None


def _common_prefix(first: bytes, second: bytes) -> bytes:
    length = next((at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), len(first))
    return first[:length]


def _size_of(data: bytes, at: int, room: int, low: int, high: int) -> int:
    """The bytes of the batch whose head is at `at`; 0 if it cannot be one of the segment."""
    base_offset, length, _, _, _, _, delta = _HEAD.unpack_from(data, at)
    is_possible = length >= MIN_BATCH_LENGTH and length + LOG_OVERHEAD <= room and delta >= 0
    return length + LOG_OVERHEAD if is_possible and low <= base_offset and base_offset + delta < high else 0
