"""Long runs of file operations, shortened: of those in a row with the same cause, 20 are events.

The creation of `__consumer_offsets` alone is 450 operations, which would leave no room in a trace for anything else.
The others are one event, "more", in front of the next event of another kind or cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from odradek.broker.explain.events import FileOperation, TraceEvent

MOST_IN_A_RUN: Final = 20


class FileRuns:
    """Passes events to `record`. Safe for several threads."""

    def __init__(self, record: Callable[[TraceEvent], None]) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._last: FileOperation | None = None  # of the run
        self._count = 0

    def record(self, event: TraceEvent) -> None:
        with self._lock:
            if not isinstance(event, FileOperation):
                self._end()
            elif self._last is None or event.cause != self._last.cause:
                self._end()
                self._begin(event)
            else:
                self._last = event
                self._count += 1
                if self._count > MOST_IN_A_RUN:
                    return
            self._record(event)

    def _begin(self, event: FileOperation) -> None:
        self._last = event
        self._count = 1

    def _end(self) -> None:
        last, left = self._last, self._count - MOST_IN_A_RUN
        self._last = None
        self._count = 0
        if last is not None and left > 0:
            self._record(FileOperation(last.time_ms, last.cause, "more", "", length=left))
