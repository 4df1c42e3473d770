"""The messages between the broker and the process that compacts.

```
broker                                worker
  CleaningJob ───────────────────────►  collects the last offset of every key in the dirty part
  ◄─────────────────────── CleanedGroup  wrote one group of segments as `.cleaned` files, synced
  NextGroup ─────────────────────────►  (once the broker has swapped them in)
  ◄─────────────────────── CleanedGroup  ...
  ◄──────────────────────── CleaningDone
```
Instead of any of its answers the worker may send `CleaningFailed`. On the pipe a message is a frame:
```
length of what follows, uint32 big-endian | MessagePack
```
"""

from __future__ import annotations

import struct
from typing import IO, TypeVar

import msgspec

from odradek.broker.storage.index.transaction_index import AbortedTransaction


class SegmentToClean(msgspec.Struct, frozen=True):
    """A segment: sizes in bytes, and the modification time of its log."""

    base_offset: int
    size: int
    offset_index_size: int
    time_index_size: int
    modified_ms: int


class CleaningJob(msgspec.Struct, frozen=True, tag=True):
    """One log. `segments` are all up to the first uncleanable offset.

    `last_batches` has by producer id the last offset of its last batch of data (-1: none) and its epoch. A log that
    `is_overdue` is compacted without pauses.
    """

    directory: str
    segments: list[SegmentToClean]
    first_dirty_offset: int
    first_uncleanable_offset: int
    aborted: list[AbortedTransaction]
    last_batches: dict[int, tuple[int, int]]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    buffer_bytes: int
    load_factor: float
    bytes_per_second: float
    is_overdue: bool


class NextGroup(msgspec.Struct, frozen=True, tag=True):
    """The last group was swapped in."""


class CleanedGroup(msgspec.Struct, frozen=True, tag=True):
    """The sizes by suffix of the `.cleaned` files at `base_offset`, which replace the segments at `replaced`."""

    base_offset: int
    replaced: list[int]
    sizes: dict[str, int]


class CleaningDone(msgspec.Struct, tag=True):
    """The report: everything below `end_offset` is clean. Bytes, records and seconds of the two passes."""

    end_offset: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    invalid_records: int = 0
    indexed_bytes: int = 0
    indexed_records: int = 0
    indexing_seconds: float = 0.0
    seconds: float = 0.0
    buffer_utilization: float = 0.0


class CleaningFailed(msgspec.Struct, frozen=True, tag=True):
    """The log cannot be cleaned; `disk_error` is the errno of a disk error, else 0."""

    reason: str
    disk_error: int = 0


Answer = CleanedGroup | CleaningDone | CleaningFailed
"""A message of the worker."""


_LENGTH = struct.Struct(">I")
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_MESSAGES: msgspec.msgpack.Decoder[CleaningJob | NextGroup] = msgspec.msgpack.Decoder(CleaningJob | NextGroup)

T = TypeVar("T")


def send(pipe: IO[bytes], message: CleaningJob | NextGroup | Answer) -> None:
    """Write a message. Raises `BrokenPipeError` if the other side has ended."""
    data = msgspec.msgpack.encode(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive_answer(pipe: IO[bytes]) -> Answer | None:
    """The next message of the worker; None at the end of the pipe."""
    return _receive(pipe, _ANSWERS)


def receive_message(pipe: IO[bytes]) -> CleaningJob | NextGroup | None:
    """The next message of the broker; None at the end of the pipe."""
    return _receive(pipe, _MESSAGES)


def _receive(pipe: IO[bytes], decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return decoder.decode(data) if len(data) == length else None
