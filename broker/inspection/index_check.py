"""The check of every entry of a segment's two indexes against its batches, which pass in their order.

An entry of the offset index must have the position of a batch and its last offset, or, as brokers before Kafka 4 wrote,
the last offset of the same append. An entry of the time index must have an offset of a batch with exactly that largest
timestamp, and no earlier batch may have a larger one, because a search by time would not find it. All four columns
ascend strictly.

Zeros at the end of an index are room for entries to come, as in an active segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from odradek.broker.inspection.problem import Problem, Report
from odradek.protocol.plural import pluralize

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")

BEYOND = 1 << 63
"""A position and offset that no batch has: `awaited` of an index without more entries."""


class _IndexCheck:
    """The entries in order. `awaited` is the second column of the next entry."""

    def __init__(self, path: str, entry: struct.Struct, data: bytes, report: Report) -> None:
        self.awaited = BEYOND
        self.entries = 0
        self._path = path
        self._report = report
        self._entry_size = entry.size
        self._entries = _entries(path, entry, data, report)
        self._first = -1

    def _problem(self, problem: str, offset: int | None = None) -> None:
        self._report(Problem(self._path, problem, (self.entries - 1) * self._entry_size, offset))

    def _step(self, first_base: int, second_base: int) -> None:
        entry = next(self._entries, None)
        previous = self._first, -1 if self.awaited == BEYOND else self.awaited
        if entry is None:
            self.awaited = BEYOND
            return
        self.entries += 1
        self._first, self.awaited = first_base + entry[0], second_base + entry[1]
        if self._first <= previous[0] or self.awaited <= previous[1]:
            self._problem(f"{self._first, self.awaited} after {previous}: what does not ascend cannot be searched")
            self._entries = iter(())
            self.awaited = BEYOND


class OffsetIndexCheck(_IndexCheck):
    """The check of an offset index: `awaited` is the position of the next batch with an entry."""

    def __init__(self, path: str, base_offset: int, data: bytes, report: Report) -> None:
        super().__init__(path, _OFFSET_ENTRY, data, report)
        self._base_offset = base_offset
        self._step(base_offset, 0)

    def check_batch(self, position: int, last_offset: int) -> None:
        """Check the entries for the batch that starts at `position` and ends with `last_offset`."""
        while self.awaited <= position:
            if self.awaited < position:
                self._problem(f"has position {self.awaited}, where no batch starts", self._first)
            elif self._first < last_offset:
                self._problem(f"has position {position}, where a batch ends with {last_offset}", self._first)
            self._step(self._base_offset, 0)

    def finish(self) -> None:
        """Report the entries behind the last batch."""
        while self.awaited != BEYOND:
            self._problem(f"has position {self.awaited}, where no batch starts", self._first)
            self._step(self._base_offset, 0)


class TimeIndexCheck(_IndexCheck):
    """The check of a time index: `awaited` is an offset in the next batch with an entry."""

    def __init__(self, path: str, base_offset: int, data: bytes, report: Report) -> None:
        super().__init__(path, _TIME_ENTRY, data, report)
        self._base_offset = base_offset
        self._step(0, base_offset)

    def check_batch(self, base_offset: int, last_offset: int, max_timestamp: int, largest_timestamp: int) -> None:
        """Check the entries for a batch; `largest_timestamp` is that of all batches up to this one."""
        while self.awaited <= last_offset:
            if self.awaited < base_offset or max_timestamp != self._first:
                found = f"a batch of {base_offset} to {last_offset} has {max_timestamp}"
                self._problem(f"has timestamp {self._first}, {found}", self.awaited)
            elif largest_timestamp > self._first:
                self._problem(f"has timestamp {self._first}, a batch before has {largest_timestamp}", self.awaited)
            self._step(0, self._base_offset)

    def finish(self) -> None:
        """Report the entries behind the last batch."""
        while self.awaited != BEYOND:
            self._problem(f"has timestamp {self._first}, behind the last batch", self.awaited)
            self._step(0, self._base_offset)


def _entries(path: str, entry: struct.Struct, data: bytes, report: Report) -> Iterator[tuple[int, ...]]:
    whole = len(data) // entry.size
    if len(data) % entry.size:
        report(
            Problem(
                path, f"{pluralize(len(data), 'byte is', 'bytes are')} no multiple of {entry.size}", whole * entry.size
            )
        )
    used = -(-len(data.rstrip(b"\0")) // entry.size)  # the last entry may itself end with zeros
    return entry.iter_unpack(data[: min(used, whole) * entry.size])


def next_indexed_position(data: bytes, position: int) -> int | None:
    """The first position above `position` in the offset index in `data`.

    A linear search: it is only needed behind damage.
    """
    size = len(data) // _OFFSET_ENTRY.size * _OFFSET_ENTRY.size
    return next((at for _, at in _OFFSET_ENTRY.iter_unpack(data[:size]) if at > position), None)
