"""A clock that a test sets, in place of the system's."""

from __future__ import annotations


class ManualClock:
    """A `odradek.broker.clock.Clock` that changes only when the test moves it.

    Starts at 2023-11-14T22:13:20Z. `advance` moves all clocks; `set_time_ms` moves the wall clock alone, as NTP or an
    administrator would. The machine never sleeps, so `boot_time` is `monotonic`.
    """

    def __init__(self, time_ms: int = 1_700_000_000_000, monotonic: float = 1_000.0) -> None:
        self._time_ms = time_ms
        self._monotonic = monotonic

    def time_ms(self) -> int:
        return self._time_ms

    def monotonic(self) -> float:
        return self._monotonic

    def boot_time(self) -> float:
        return self._monotonic

    def advance(self, milliseconds: int) -> None:
        """Move all clocks forward by `milliseconds`, which is not negative."""
        if milliseconds < 0:
            raise ValueError("time does not run backwards; use set_time_ms for the wall clock")
        self._time_ms += milliseconds
        self._monotonic += milliseconds / 1000

    def set_time_ms(self, time_ms: int) -> None:
        """Set the wall clock alone."""
        self._time_ms = time_ms
