"""Pauses of compaction for the requests of the broker: it works for a moment, then rests longer.

```
                 ┌ work ┐                ┌ work ┐
broker is busy   0.5 ms │ rest 1.5 ms    0.5 ms │ rest 1.5 ms ...     a quarter of the time
broker is idle   work, work, work ...                                  all of it
```
A low priority alone is not enough. A processor that compaction uses is not free when a request arrives, and Linux lets
even the lowest priority finish its slice of 3 ms if the process that wakes up has just run. The work between two pauses
is shorter than a request, so no request waits longer than that, and most of the time all processors are free.

The broker counts as busy if its event loop was scheduled more than `_IDLE_TURNS` times in the last `_LOOK_SECONDS`: an
idle loop is scheduled once a second, and a request causes one or two more. A rest is proportional to the work before
it, 30 ms after a sync of 10 ms, at most `_LONGEST_REST_SECONDS`. So compaction gets at least a quarter of the time.
Differs from Kafka, whose cleaner has only `log.cleaner.io.max.bytes.per.second` (`throttle`), because its threads share
the processors with the requests at the same priority.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

from odradek.broker.clock import Clock

_WORK_SECONDS = 0.0005
_REST_FOR_WORK = 3.0
_LONGEST_REST_SECONDS = 0.05
_LOOK_SECONDS = 0.1
_IDLE_TURNS = 2


class Pace:
    """The pauses of one thread. `turns` counts how often the broker was scheduled, `wait` waits for seconds."""

    def __init__(self, clock: Clock, turns: Callable[[], int], wait: Callable[[float], object] | None = None) -> None:
        self._clock = clock
        self._turns = turns
        self._wait = Event().wait if wait is None else wait
        self._is_broker_busy = True
        self._turns_before = turns()
        self._looked = self._began = clock.monotonic()

    def step(self) -> None:
        """Pause if necessary; called between two small pieces of work."""
        now = self._clock.monotonic()
        worked = now - self._began
        if worked < _WORK_SECONDS:
            return
        if now - self._looked >= _LOOK_SECONDS:
            self._look(now)
        if self._is_broker_busy:
            self._wait(min(worked * _REST_FOR_WORK, _LONGEST_REST_SECONDS))
        self._began = self._clock.monotonic()

    def _look(self, now: float) -> None:
        turns = self._turns()
        idle_turns = _IDLE_TURNS * (now - self._looked) / _LOOK_SECONDS
        self._is_broker_busy = turns - self._turns_before > idle_turns
        self._turns_before = turns
        self._looked = now


def no_pause() -> None:
    """Replace `Pace.step` for work without pauses."""


def scheduled_turns(process_id: int) -> int:
    """Return how often the main thread of a process was scheduled; always 0 where the system does not count that.

    It is the third number in Linux's /proc/PID/schedstat.
    """
    try:
        return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[2])
    except (OSError, IndexError):
        return 0
