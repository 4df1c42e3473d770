"""The check that the offsets of the records of one log are consecutive."""

from __future__ import annotations

from odradek.broker.inspection.dump.complaints import Complaints


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
