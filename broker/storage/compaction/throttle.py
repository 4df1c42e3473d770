"""The limit of compaction's bytes a second (log.cleaner.io.max.bytes.per.second)."""

from __future__ import annotations

from threading import Event

from odradek.broker.clock import Clock

_CHECK_SECONDS = 0.3  # as often as Kafka's cleaner checks its rate


class Throttle:
    """The limit for one thread. It counts bytes for at least 0.3 s, then waits as long as they came too early."""

    def __init__(self, bytes_per_second: float, clock: Clock) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._started = clock.monotonic()
        self._spent = 0
        self._never = Event()

    def spend(self, count: int) -> None:
        """Count bytes that were read or written; return when the next may follow."""
        self._spent += count
        passed = self._clock.monotonic() - self._started
        if passed >= _CHECK_SECONDS:
            early = self._spent / self._bytes_per_second - passed
            if early > 0:
                self._never.wait(early)
            self._started = self._clock.monotonic()
            self._spent = 0
