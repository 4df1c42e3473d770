"""The segments of one log, in order of their base offsets; the last one is active, the only one that takes appends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from threading import Lock

from broker.storage.segment import Segment


class Segments:
    """An ordered registry, not empty once the log is open. Readers beside a writer see it before or after a change.

    `active` is the last segment; a field, because every append asks for it.

    Threads may change it side by side: the appender adds at the end, retention and compaction remove at the front.
    """

    active: Segment

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._lock = Lock()
        self._take(sorted(segments, key=_base_offset))

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._ordered[1])

    def __contains__(self, segment: object) -> bool:
        return segment in self._ordered[1]

    def __len__(self) -> int:
        return len(self._ordered[1])

    @property
    def first(self) -> Segment:
        return self._ordered[1][0]

    @property
    def base_offsets(self) -> list[int]:
        return self._ordered[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._ordered[1])

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that may hold `offset` and all after it; all of them if `offset` is below the first."""
        segments, index = self.find(offset)
        return segments[index:]

    def find(self, offset: int) -> tuple[list[Segment], int]:
        """All segments, and the index of the one that `from_offset` begins with; nothing is copied."""
        base_offsets, segments = self._ordered
        return segments, max(bisect_right(base_offsets, offset) - 1, 0)

    def replace(self, removed: Iterable[Segment] = (), added: Iterable[Segment] = ()) -> None:
        """Take segments out and others in, in one step."""
        gone = set(removed)
        with self._lock:
            self._take(sorted([*(s for s in self._ordered[1] if s not in gone), *added], key=_base_offset))

    def _take(self, segments: list[Segment]) -> None:
        self._ordered = ([segment.base_offset for segment in segments], segments)
        if segments:
            self.active = segments[-1]


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
