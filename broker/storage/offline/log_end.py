"""The end of a segment whose last bytes may be torn: a crash, a copy or a broken disk leaves part of a batch there.

```
batch | batch | damage | batch | batch | part of a batch
                                       ^ the end
```
The walk begins at the last index entry that is the position of a batch. Entries may point into the torn part, or behind
it: the walk then begins at an earlier one, in growing steps, because zeros may have replaced many batches.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.index.offset_index import OffsetIndex
from odradek.broker.storage.log_file import LogFile
from odradek.broker.storage.offline.batch_search import find_next_batch
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET
from odradek.protocol.records.batch_header import LENGTH_POSITION, LOG_OVERHEAD, MAGIC, MAGIC_POSITION

_POSITION: Final = struct.Struct(">i")
_POSITION_AT: Final = 4
_LENGTH: Final = struct.Struct(">i")
_WITHOUT_INDEX: Final = 8192  # bytes that one read walks over: no index is opened for them
_ZEROS_READ: Final = 1 << 20


class LogEnd(NamedTuple):
    """The bytes up to the last whole batch, and the offset behind it."""

    position: int
    next_offset: int


def find_end(log: LogFile, offsets: OffsetIndex, needed_offset: int | None) -> LogEnd:
    """The end of `log`, whose size is that of the file; `offsets` is its index, which may be missing or wrong.

    Behind damage, the next batch is searched for. If the end of the log is known to be `needed_offset`, damage at
    higher offsets is not: there the broker may be writing.
    """
    if log.size > _WITHOUT_INDEX and offsets.exists:
        with suppress(CorruptIndexError):
            slot, step = offsets.floor_slot(log.size - 1, _POSITION, _POSITION_AT), 1
            while slot >= 0:
                entry = offsets.entry(slot)
                if _is_batch_of(log, entry.position, entry.offset):
                    before = offsets.entry(slot - 1).offset + 1 if slot else log.base_offset
                    return _walk(log, entry.position, before, needed_offset)
                slot, step = slot - step, step * 2
    return _walk(log, 0, log.base_offset, needed_offset)


def is_room(log: LogFile, position: int) -> bool:
    """Whether only zeros follow from `position` on: the broker has preallocated the file.

    A few zeros are rather the beginning of a base offset.
    """
    if log.size - position < LOG_OVERHEAD:
        return False
    with log.descriptors.pinned(log.path) as number:
        for start in range(position, log.size, _ZEROS_READ):
            length = min(_ZEROS_READ, log.size - start)
            if log.descriptors.files.pread(number, length, start).strip(b"\0"):
                return False
    return True


def flaw_at(log: LogFile, position: int) -> str:
    """Why there is no whole batch at `position`, which is not the end of the file."""
    try:
        log.batch_at(position)
    except CorruptBatchError as error:
        with log.descriptors.pinned(log.path) as number:
            head = log.descriptors.files.pread(number, MAGIC_POSITION + 1, position)
        if len(head) <= MAGIC_POSITION or (head[-1] <= MAGIC and _LENGTH.unpack_from(head, LENGTH_POSITION)[0] > 0):
            return "the file ends inside a batch"
        return error.reason
    return "the batch does not follow the one before it"


def _is_batch_of(log: LogFile, position: int, last_offset: int) -> bool:
    """Whether the batch of an index entry is whole. An old entry may have the last offset of a later batch."""
    try:
        batch = log.batch_at(position)
    except CorruptBatchError:
        return False
    return batch is not None and log.base_offset <= batch.base_offset <= last_offset


def _walk(log: LogFile, position: int, next_offset: int, needed_offset: int | None) -> LogEnd:
    end = position
    with log.descriptors.pinned(log.path) as number:
        read = partial(log.descriptors.files.pread, number)
        while True:
            try:
                for batch in log.batches(position):
                    end = batch.position + batch.size
                    next_offset = max(next_offset, batch.last_offset + 1)
                return LogEnd(end, next_offset)
            except CorruptBatchError as error:
                if needed_offset is not None and next_offset >= needed_offset:
                    return LogEnd(end, next_offset)
                limit = log.base_offset + MAX_RELATIVE_OFFSET + 1
                found = find_next_batch(read, error.position + 1, log.size, next_offset, limit)
                if found is None:
                    return LogEnd(end, next_offset)
                position = found
