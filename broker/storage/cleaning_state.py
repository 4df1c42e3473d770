"""Mutual exclusion of the operations on a log's old segments: compaction, retention, truncation, deletion.

| state       | `begin`           | `abort`                     | `pause`                                  |
|-------------|-------------------|-----------------------------|------------------------------------------|
| idle        | True, in progress | nothing                     | paused                                   |
| in progress | False             | the worker is stopped       | as `abort`; paused when the work has ended |
| paused      | False             | nothing                     | paused once more                         |

Compaction uses the segments that exist when it begins, and reads and writes files in the log's directory by name until
it ends. Meanwhile nothing else may remove or truncate old segments, or rename the directory:

| change                                  | what it does                                                          |
|-----------------------------------------|-----------------------------------------------------------------------|
| retention by time, size, log start      | `begin`; skips a log in progress until the next round                  |
| truncation below the active segment     | `pause`, because compaction may take hours                             |
| deletion, close                         | `pause`, permanently                                                   |
| cleanup.policy without `compact`        | `abort`                                                                |
| append, roll, DeleteRecords             | nothing: none of them changes old segments                             |

As in Kafka's `LogCleanerManager`: its states of a partition, `deletableLogs`, `abortCleaning`, `abortAndPauseCleaning`.
Safe for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock


class CleaningState:
    """The state of one log. A thread that called `begin` must call `end`, and must not wait for a `pause` before."""

    __slots__ = ("_ended", "_is_aborted", "_is_in_progress", "_lock", "_pauses", "_stop")  # one for each partition

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_in_progress = False
        self._is_aborted = False
        self._pauses = 0
        self._stop: Callable[[], None] | None = None
        self._ended: Event | None = None  # set at the end of the work in progress, if a `pause` waits

    @property
    def is_in_progress(self) -> bool:
        return self._is_in_progress

    @property
    def is_aborted(self) -> bool:
        """Whether the work in progress must change nothing any more."""
        return self._is_aborted

    def begin(self) -> bool:
        """Begin work on the old segments; return False, without the right to it, if other work runs or it is paused."""
        with self._lock:
            if self._is_in_progress or self._pauses:
                return False
            self._is_in_progress = True
            return True

    def end(self) -> None:
        """End the work in progress."""
        with self._lock:
            self._is_in_progress = self._is_aborted = False
            self._stop = None
            ended, self._ended = self._ended, None
        if ended is not None:
            ended.set()

    def when_aborted(self, stop: Callable[[], None]) -> None:
        """Call `stop` if the work in progress is aborted: now, or later on any thread, but never after its end.

        `stop` must return at once and not use this object.
        """
        with self._lock:
            self._stop = stop
            if self._is_aborted:
                stop()

    def abort(self) -> None:
        """Stop the work in progress, if any; it ends soon afterwards."""
        with self._lock:
            self._abort()

    def pause(self) -> None:
        """Abort the work in progress, wait for its end, and prevent new work until `resume`. Blocks."""
        with self._lock:
            self._pauses += 1
            if not self._is_in_progress:
                return
            self._abort()
            ended = self._ended = self._ended or Event()
        ended.wait()

    def resume(self) -> None:
        """Undo one `pause`."""
        with self._lock:
            self._pauses -= 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause for the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def _abort(self) -> None:
        if self._is_in_progress and not self._is_aborted:
            self._is_aborted = True
            if self._stop is not None:
                self._stop()
