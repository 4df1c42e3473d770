"""The errors that end a dump, and the complaints: disagreements in indexes and offsets, which are printed at the end.

All complaints of a kind are printed together: mismatches of offset indexes; of time indexes the wrong timestamps, those
out of order and the missing offsets; then records whose offsets are not consecutive. Within a kind they have the order
of the files. Source: Kafka `DumpLogSegments`, `TimeIndexDumpErrors`; the order of its files is that of a hash map.
"""

from __future__ import annotations

from collections.abc import Iterator

Pairs = list[tuple[int, int]]


class DumpError(Exception):
    """A file cannot be dumped further; the pieces before equal what Kafka's tool prints before it fails."""


class Complaint(str):
    """A piece of text for standard error; the dump goes on."""

    __slots__ = ()


class Complaints:
    """The complaints by absolute path. Of one offset only the last mismatch is kept, and the last gap behind it."""

    def __init__(self) -> None:
        self._mismatches: dict[str, dict[int, int]] = {}
        self._wrong_timestamps: dict[str, Pairs] = {}
        self._unordered_timestamps: dict[str, Pairs] = {}
        self._missing_offsets: dict[str, Pairs] = {}
        self._gaps: dict[str, dict[int, int]] = {}

    def mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """An entry of an offset index has the position of a batch that ends at another offset."""
        self._mismatches.setdefault(path, {})[index_offset] = log_offset

    def wrong_timestamp(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        """The batch of a time index entry has another largest timestamp."""
        self._wrong_timestamps.setdefault(path, []).append((index_timestamp, log_timestamp))

    def unordered_timestamp(self, path: str, index_timestamp: int, previous_timestamp: int) -> None:
        """A time index entry is not above the one before it."""
        self._unordered_timestamps.setdefault(path, []).append((index_timestamp, previous_timestamp))

    def missing_offset(self, path: str, index_offset: int, log_offset: int) -> None:
        """No batch ends at the offset of a time index entry; the next ends at `log_offset`, -1 if there is none."""
        self._missing_offsets.setdefault(path, []).append((index_offset, log_offset))

    def gap(self, path: str, offset: int, next_offset: int) -> None:
        """A record's offset does not follow the one before. That is normal in a compacted log."""
        self._gaps.setdefault(path, {})[offset] = next_offset

    def lines(self) -> Iterator[Complaint]:
        for path, mismatches in self._mismatches.items():
            yield Complaint(f"Mismatches in :{path}\n")
            for offset, log_offset in sorted(mismatches.items(), reverse=True):
                yield Complaint(f"  Index offset: {offset}, log offset: {log_offset}\n")
        yield from self._time_index_lines()
        for path, gaps in self._gaps.items():
            yield Complaint(f"Non-consecutive offsets in {path}\n")
            for offset, next_offset in sorted(gaps.items()):
                yield Complaint(f"  {offset} is followed by {next_offset}\n")

    def _time_index_lines(self) -> Iterator[Complaint]:
        for path, timestamps in self._wrong_timestamps.items():
            yield Complaint(f"Found timestamp mismatch in :{path}\n")
            for timestamp, log_timestamp in timestamps:
                yield Complaint(f"  Index timestamp: {timestamp}, log timestamp: {log_timestamp}\n")
        for path, timestamps in self._unordered_timestamps.items():
            yield Complaint(f"Found out of order timestamp in :{path}\n")
            for timestamp, previous in timestamps:
                yield Complaint(f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}\n")
        for path, offsets in self._missing_offsets.items():
            yield Complaint(f"The following indexed offsets are not found in :{path}\n")
            for offset, log_offset in offsets:
                yield Complaint(f"Indexed offset: {offset}, found log offset: {log_offset}\n")


class OffsetWatch:
    """Gets every record in order. A log that does not begin with offset 0 has a gap after -1, as in Kafka."""

    __slots__ = ("_complaints", "_last", "_path")

    def __init__(self, path: str, complaints: Complaints) -> None:
        self._path = path
        self._complaints = complaints
        self._last = -1

    def see(self, offset: int) -> None:
        if offset != self._last + 1:
            self._complaints.gap(self._path, self._last, offset)
        self._last = offset
