"""The segments of one log, ordered by base offset; only the last one, the active segment, takes appends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from threading import Lock

from odradek.broker.storage.segment import Segment


class _Ordered:
    """The segments at one moment, with values derived from all but the last, which do not change any more.

    They are computed on first use, so that a search costs the same in a log of any length.
    """

    __slots__ = ("_largest_timestamps", "_with_aborted", "base_offsets", "segments")

    def __init__(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self._largest_timestamps: list[int] | None = None
        self._with_aborted: list[Segment] | None = None

    def largest_timestamps(self) -> list[int]:
        """For each segment but the last: the largest timestamp in it and all before it."""
        if self._largest_timestamps is None:
            self._largest_timestamps = list(accumulate(map(_largest_timestamp, self.segments[:-1]), max))
        return self._largest_timestamps

    def with_aborted(self) -> list[Segment]:
        """The segments but the last in which transactions were aborted."""
        if self._with_aborted is None:
            self._with_aborted = [segment for segment in self.segments[:-1] if segment.transaction_index.size]
        return self._with_aborted


class Segments:
    """An ordered registry, not empty once the log is open. Readers see it before or after a change, never between.

    `active` is the last segment; a field, because every append reads it.

    Threads may change the registry concurrently: the appender adds at the end, retention and compaction remove in
    front.
    """

    active: Segment

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._lock = Lock()
        self._take(sorted(segments, key=_base_offset))

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._ordered.segments)

    def __contains__(self, segment: object) -> bool:
        return segment in self._ordered.segments

    def __len__(self) -> int:
        return len(self._ordered.segments)

    @property
    def first(self) -> Segment:
        return self._ordered.segments[0]

    @property
    def base_offsets(self) -> list[int]:
        return self._ordered.base_offsets

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._ordered.segments)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that may hold `offset` and all after it; all segments if `offset` is below the first."""
        segments, index = self.find(offset)
        return segments[index:]

    def find(self, offset: int) -> tuple[list[Segment], int]:
        """All segments, and the index of the first one of `from_offset`; nothing is copied."""
        ordered = self._ordered
        return ordered.segments, max(bisect_right(ordered.base_offsets, offset) - 1, 0)

    def as_new_as(self, timestamp: int, offset: int) -> Iterator[Segment]:
        """The segments with a record of this time (ms) or later, from the one that may hold `offset` on."""
        ordered = self._ordered
        older = bisect_left(ordered.largest_timestamps(), timestamp)
        for index in range(max(older, _place(ordered.base_offsets, offset)), len(ordered.segments)):
            if _largest_timestamp(ordered.segments[index]) >= timestamp:
                yield ordered.segments[index]

    def newest(self, offset: int) -> Segment:
        """The first segment with the largest timestamp, from the one that may hold `offset` on."""
        ordered = self._ordered
        segments, timestamps = ordered.segments, ordered.largest_timestamps()
        if not timestamps or _largest_timestamp(segments[-1]) > timestamps[-1]:
            return segments[-1]
        place, index = _place(ordered.base_offsets, offset), bisect_left(timestamps, timestamps[-1])
        return segments[index] if index >= place else max(segments[place:], key=_largest_timestamp)

    def with_aborted(self, offset: int) -> Iterator[Segment]:
        """The segments with aborted transactions, from the one that may hold `offset` on."""
        ordered = self._ordered
        aborted = ordered.with_aborted()
        begin = ordered.base_offsets[_place(ordered.base_offsets, offset)]
        for index in range(bisect_left(aborted, begin, key=_base_offset), len(aborted)):
            yield aborted[index]
        if ordered.segments[-1].transaction_index.size:
            yield ordered.segments[-1]

    def replace(self, removed: Iterable[Segment] = (), added: Iterable[Segment] = ()) -> None:
        """Remove segments and add others, in one step."""
        gone = set(removed)
        with self._lock:
            stay = [segment for segment in self._ordered.segments if segment not in gone]
            self._take(sorted([*stay, *added], key=_base_offset))

    def _take(self, segments: list[Segment]) -> None:
        self._ordered = _Ordered(segments)
        if segments:
            self.active = segments[-1]


def _place(base_offsets: list[int], offset: int) -> int:
    """The index of the segment that may hold `offset`; 0 if `offset` is below all."""
    return max(bisect_right(base_offsets, offset) - 1, 0)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _largest_timestamp(segment: Segment) -> int:
    return segment.largest_timestamp().timestamp
