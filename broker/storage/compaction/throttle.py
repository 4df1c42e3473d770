"""Keeping disk work under so many bytes a second, by waiting now and then."""

from __future__ import annotations

from threading import Event

from odradek.broker.clock import Clock

_CHECK_SECONDS = 0.3  # Kafka's cleaner looks at its rate that often


class Throttle:
    """The work of one thread. Bytes are counted over at least 0.3 s, and then waited for as long as they came early."""

    def __init__(self, bytes_per_second: float, clock: Clock) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._started = clock.monotonic()
        self._spent = 0
        self._never = Event()

    def spend(self, count: int) -> None:
        """Note that `count` bytes were read or written; returns when the next may be."""
        self._spent += count
        passed = self._clock.monotonic() - self._started
        if passed >= _CHECK_SECONDS:
            early = self._spent / self._bytes_per_second - passed
            if early > 0:
                self._never.wait(early)
            self._started = self._clock.monotonic()
            self._spent = 0
