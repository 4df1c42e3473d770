"""Watches the offsets of the records of one log, which should follow each other."""

from __future__ import annotations

from odradek.broker.inspection.dump.complaints import Complaints


class OffsetWatch:
    """Sees every record in order. A log that does not begin with offset 0 begins with a gap after -1, as in Kafka."""

    __slots__ = ("_complaints", "_last", "_path")

    def __init__(self, path: str, complaints: Complaints) -> None:
        self._path = path
        self._complaints = complaints
        self._last = -1

    def see(self, offset: int) -> None:
        if offset != self._last + 1:
            self._complaints.gap(self._path, self._last, offset)
        self._last = offset
