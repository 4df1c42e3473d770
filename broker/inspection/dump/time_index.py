"""`.timeindex`: the timestamp and the offset of every entry.

```
0 timestamp  int64   ms: the largest up to that offset
8 offset     int32   relative to the base offset: of the last record of a batch
```
The batch is searched from the position that the `.index` has, and must end at that offset and have that largest
timestamp; timestamps must ascend. The first entry followed by zeros is the last one. Source: Kafka `TimeIndex`,
`dumpTimeIndex`.

For each entry Kafka lists all batches to the end of the log, which takes minutes for a large one. Here that walk is
done once, since it can only find impossible sizes, and each search ends at its batch.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from odradek.broker.inspection.dump import message, offset_index, record_batch
from odradek.broker.inspection.dump.complaints import Complaints, DumpError
from odradek.broker.inspection.dump.index_file import IndexFile, base_offset_of, beside
from odradek.broker.inspection.dump.java import absolute_path
from odradek.broker.inspection.dump.log_file import LogFile
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import NO_TIMESTAMP

_ENTRY: Final = struct.Struct(">qi")


def dump_time_index(path: str, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    base_offset_of(path)
    with LogFile(beside(path, ".log")) as log:
        offsets = IndexFile(beside(path, ".index"), offset_index.ENTRY)
        index = IndexFile(path, _ENTRY)
        if options.checks_sanity:
            _check_sanity(index)
            yield f"{path} passed sanity check.\n"
        else:
            yield from _entry_lines(_Lookup(log, offsets), index, options, complaints)


def _entry_lines(lookup: _Lookup, index: IndexFile, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    previous = NO_TIMESTAMP
    path = absolute_path(index.path)
    for number in range(index.entries):
        timestamp, relative_offset = index.entry(number)
        if relative_offset == 0 and number > 0:
            return
        offset = index.absolute(relative_offset)
        log_offset, log_timestamp = lookup.batch_with(offset)
        if log_offset != offset:
            complaints.missing_offset(path, offset, log_offset)
        else:
            if log_timestamp != timestamp:
                complaints.wrong_timestamp(path, timestamp, log_timestamp)
            if previous >= timestamp:
                complaints.unordered_timestamp(path, timestamp, previous)
        if not options.verifies_only:
            yield f"timestamp: {timestamp} offset: {offset}\n"
        previous = timestamp


class _Lookup:
    """Finds batches through the offset index.

    It stores the positions of the walk to the end of the log, in 4 bytes a batch.
    """

    def __init__(self, log: LogFile, index: IndexFile) -> None:
        self._log = log
        self._index = index
        self._walked = array("I")

    def batch_with(self, offset: int) -> tuple[int, int]:
        """Return the last offset of the first batch that reaches `offset`, or -1.

        Also returns the largest timestamp of its records if it ends at `offset`, else -1.
        """
        log = self._log
        entry = self._index.lower_bound(offset)
        position = 0 if entry < 0 else self._index.entry(entry)[1]
        end = log.slice_end(position, log.size)
        self._walk(position, end)
        for batch in log.batches(position, end):
            last_offset = offset_index.last_offset(log, batch)
            if last_offset > offset:
                return last_offset, NO_TIMESTAMP
            if last_offset == offset:
                lines = record_batch if batch.magic >= 2 else message
                return offset, max(NO_TIMESTAMP, lines.max_record_timestamp(log, batch))
        return -1, NO_TIMESTAMP

    def _walk(self, position: int, end: int) -> None:
        """Raise DumpError if a walk from `position` finds an impossible size."""
        at = bisect_left(self._walked, position)
        if at == len(self._walked) or self._walked[at] != position:
            self._walked = array("I", (batch.position for batch in self._log.batches(position, end)))


def _check_sanity(index: IndexFile) -> None:
    if index.entries:
        first_timestamp, _ = index.entry(0)
        last_timestamp, relative_offset = index.entry(index.entries - 1)
        if last_timestamp < first_timestamp:
            raise DumpError(f"{index.path} is corrupt: its last timestamp {last_timestamp} is below the first")
        if relative_offset < 0:
            raise DumpError(f"{index.path} is corrupt: its last offset is below the base offset {index.base_offset}")
    if index.size % _ENTRY.size:
        raise DumpError(
            f"{index.path} is corrupt: {pluralize(index.size, 'byte is', 'bytes are')} no multiple of {_ENTRY.size}"
        )
