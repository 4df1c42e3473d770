"""`.index`: the offset and the position of every entry.

```
0 offset    int32   relative to the base offset: of the last record of a batch
4 position  int32   where that batch begins in the `.log`
```
An entry is a mismatch if the batch at its position ends at another offset. The first entry followed by zeros is the
last one: a broker that crashed leaves its indexes preallocated. Source: Kafka `OffsetIndex`, `dumpIndex`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from odradek.broker.inspection.dump import record_batch
from odradek.broker.inspection.dump.complaints import Complaints, DumpError
from odradek.broker.inspection.dump.index_file import IndexFile, base_offset_of, beside
from odradek.broker.inspection.dump.java import absolute_path
from odradek.broker.inspection.dump.log_file import Batch, LogFile
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.protocol.plural import pluralize

ENTRY: Final = struct.Struct(">ii")


def dump_offset_index(path: str, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    base_offset_of(path)
    with LogFile(beside(path, ".log")) as log:
        index = IndexFile(path, ENTRY)
        if index.entries == 0:
            yield f"{path} is empty.\n"
        elif options.checks_sanity:
            _check_sanity(index)
            yield f"{path} passed sanity check.\n"
        else:
            yield from _entry_lines(log, index, options, complaints)


def last_offset(log: LogFile, batch: Batch) -> int:
    return record_batch.last_offset(log, batch) if batch.magic >= 2 else batch.offset


def _entry_lines(log: LogFile, index: IndexFile, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    for number in range(index.entries):
        relative_offset, position = index.entry(number)
        if relative_offset == 0 and number > 0:
            return
        offset = index.absolute(relative_offset)
        end = log.slice_end(position, options.max_message_size)
        batch = next(log.batches(position, end), None)
        if batch is None:
            raise DumpError(f"{index.path}: offset {offset} has position {position}, where no batch is")
        log_offset = last_offset(log, batch)
        if log_offset != offset:
            complaints.mismatch(absolute_path(index.path), offset, log_offset)
        if not options.verifies_only:
            yield f"offset: {offset} position: {position}\n"


def _check_sanity(index: IndexFile) -> None:
    if index.entry(index.entries - 1)[0] < 0:
        raise DumpError(f"{index.path} is corrupt: its last offset is below the base offset {index.base_offset}")
    if index.size % ENTRY.size:
        raise DumpError(
            f"{index.path} is corrupt: {pluralize(index.size, 'byte is', 'bytes are')} no multiple of {ENTRY.size}"
        )
