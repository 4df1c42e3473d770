"""What was found wrong in indexes and offsets: collected while files are dumped, told when all are done.

Kafka keeps each kind in a map by absolute path and prints the maps one after another, so that all findings of a kind
stand together: mismatches of offset indexes, then of time indexes the wrong timestamps, those out of order and the
offsets that are not there, then records whose offsets do not follow each other. Source: Kafka `DumpLogSegments`,
`TimeIndexDumpErrors`.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.inspection.dump.errors import Complaint

Pairs = list[tuple[int, int]]


class Complaints:
    """Findings by absolute path. A mismatch of one offset is kept once, the last; so are pairs of offsets in a log."""

    def __init__(self) -> None:
        self._mismatches: dict[str, dict[int, int]] = {}
        self._wrong_timestamps: dict[str, Pairs] = {}
        self._unordered_timestamps: dict[str, Pairs] = {}
        self._missing_offsets: dict[str, Pairs] = {}
        self._gaps: dict[str, dict[int, int]] = {}

    def mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """An entry of an offset index leads to a batch that ends elsewhere."""
        self._mismatches.setdefault(path, {})[index_offset] = log_offset

    def wrong_timestamp(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        """The batch of a time index entry has another maximum."""
        self._wrong_timestamps.setdefault(path, []).append((index_timestamp, log_timestamp))

    def unordered_timestamp(self, path: str, index_timestamp: int, previous_timestamp: int) -> None:
        """A time index entry is not above the one before it."""
        self._unordered_timestamps.setdefault(path, []).append((index_timestamp, previous_timestamp))

    def missing_offset(self, path: str, index_offset: int, log_offset: int) -> None:
        """No batch ends at the offset of a time index entry; the next ends at `log_offset`, -1 if there is none."""
        self._missing_offsets.setdefault(path, []).append((index_offset, log_offset))

    def gap(self, path: str, offset: int, next_offset: int) -> None:
        """A record does not follow the one before it. That is no fault in a compacted log."""
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
