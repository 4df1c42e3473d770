"""Compaction gives way to the requests of the broker: while there are any it works for a moment, and rests longer.

```
                 ┌ work ┐                ┌ work ┐
broker is busy   0.5 ms │ rest 1.5 ms    0.5 ms │ rest 1.5 ms ...     a quarter of the time
broker is idle   work, work, work ...                                  all of it
```
A low priority alone is not enough. A processor that compaction holds is not one that an arriving request finds free,
and Linux lets even the lowest priority finish its slice of 3 ms when whoever woke up has just had a turn. A moment is
shorter than a request, so nobody waits for longer than that, and most of the time both processors are as they were.

The broker is busy if its event loop got a processor more than `_IDLE_TURNS` times in the last `_LOOK_SECONDS`: an idle
one does so once a second, a request makes it do so once or twice. What the work has cost is paid back by resting, a
sync that took 10 ms by 30 ms, at most `_LONGEST_REST_SECONDS`. So compaction is never slower than a quarter of what the
machine would let it do. Differs from Kafka, whose cleaner knows only `log.cleaner.io.max.bytes.per.second`
(`throttle`), because there the cleaner's threads share the requests' processors at the same priority.
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
    """The work of one thread. `turns` counts how often the broker got a processor, `wait` waits for seconds."""

    def __init__(self, clock: Clock, turns: Callable[[], int], wait: Callable[[float], object] | None = None) -> None:
        self._clock = clock
        self._turns = turns
        self._wait = Event().wait if wait is None else wait
        self._is_broker_busy = True
        self._turns_before = turns()
        self._looked = self._began = clock.monotonic()

    def step(self) -> None:
        """Call it between two small pieces of work; returns when the next may be done."""
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


def at_once() -> None:
    """In the place of `Pace.step`: do not rest."""


def turns_of(process_id: int) -> int:
    """How often the main thread of a process got a processor so far; 0, always, where the system does not tell.

    That is the third number of Linux's /proc/PID/schedstat.
    """
    try:
        return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[2])
    except (OSError, IndexError):
        return 0
