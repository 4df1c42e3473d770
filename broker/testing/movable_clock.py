"""A clock whose time goes on as the machine's, and which a test moves forward.

```
await clock.advance(hours=2)
  time stands still; living members of groups, and idle connections, get two hours more
  while there is a deadline within the two hours:
      it is the time of the first; its calls are made; wait until what they started is done
  it is two hours later; each periodic task runs once more
  time goes on
```

| what is due | in a move |
|---|---|
| deadlines of the broker: transactions, retries | at their time, in order |
| deadlines of clients that were set before: silent members, delayed requests | the same |
| deadlines of clients that are set meanwhile | count from its end: the client that must act lives in real time |
| periodic work: retention, compaction, expiry | at its interval, at most `MOST_RUNS` times, and at the end |

After each step `advance` waits until the periodic work that the step began has paused again, and until the disk threads
have done what they were given, so that the next step finds their effects. Nothing else of the broker is waited for: a
client gets its answer as soon as it reads it.

The wall clock moves with the monotonic one. `boot_time` does not move: leases in a remote store are of the real world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from odradek.broker.clock import SystemClock
from odradek.broker.testing import unfrozen_time
from odradek.broker.testing.deadlines import Deadline, Deadlines
from odradek.broker.waiting import ClockFollower, WaitingClock

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

MOST_RUNS: Final = 100
"""How often periodic work runs in one move: 30 days have 43,200 minutes, and no run but the last matters much."""
_TURNS: Final = 6
"""Turns of the event loop after which what a timer has started is done, or waits: a delayed request takes four."""
_CHAIN: Final = 3
"""Pieces of disk work in a row that one deadline starts: append, flush, rename."""
PATIENCE_SECONDS: Final = 60.0
"""The longest real time that one step may take: after it, something in the broker waits for what never comes."""


class _Pause(NamedTuple):
    began: float
    timer: Deadline
    task: asyncio.Task[Any]


class MovableClock(WaitingClock):
    """A `odradek.broker.clock.Clock` of brokers on one event loop. `time_ms` and `monotonic` may be read in any thread.

    A clock outlives its loop: a broker that starts again on another one takes it with it, and timers of a closed loop
    are forgotten.
    """

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._machine = SystemClock()
        self._offset = 0.0  # seconds that it is ahead of the machine's
        self._moved = 0.0  # seconds that it was moved
        self._held: float | None = None  # the time, while it stands still
        self._wall_start = unfrozen_time.time_ms() / 1000 - unfrozen_time.monotonic()
        self._end = 0.0  # of the move in progress
        self._grid: tuple[float, float] | None = None  # begin and interval of periodic work in the move in progress
        self._here: Deadlines | None = None
        self._moving = asyncio.Lock()
        self._pauses: dict[asyncio.Future[None], _Pause] = {}
        self._working: set[asyncio.Task[Any]] = set()  # periodic work between two pauses
        self._paused: asyncio.Future[None] | None = None  # done when `_working` becomes empty
        self._followers: dict[ClockFollower, None] = {}

    # ------------------------------------------------------------------------------------------------------- the clock

    def time_ms(self) -> int:
        return int((self._wall_start + self.monotonic()) * 1000)

    def monotonic(self) -> float:
        held = self._held
        return unfrozen_time.monotonic() + self._offset if held is None else held

    def boot_time(self) -> float:
        return self._machine.boot_time()

    def timers(self) -> MovableTimers:
        return MovableTimers(self.deadlines(), self.monotonic)

    def client_timers(self) -> MovableTimers:
        return MovableTimers(self.deadlines(), self._client_time)

    async def sleep(self, seconds: float) -> None:
        deadlines = self.deadlines()
        awake: asyncio.Future[None] = deadlines.loop.create_future()
        timer = deadlines.add(self.monotonic() + seconds, _set_done, (awake,))
        try:
            await awake
        finally:
            timer.cancel()

    async def pause(self, seconds: float) -> None:
        deadlines = self.deadlines()
        task = asyncio.current_task()
        assert task is not None
        self._stopped_working(task)
        due: asyncio.Future[None] = deadlines.loop.create_future()
        timer = deadlines.add(self._next_run(seconds), self._work, (due, task))
        self._pauses[due] = _Pause(self.monotonic(), timer, task)
        try:
            await due
        finally:
            timer.cancel()
            self._pauses.pop(due, None)

    def attach(self, follower: ClockFollower) -> None:
        self.deadlines()  # forgets the followers of an earlier loop
        follower.begin()
        self._followers[follower] = None

    def detach(self, follower: ClockFollower) -> None:
        self._followers.pop(follower, None)

    def deadlines(self) -> Deadlines:
        """Return the deadlines of the running event loop. Raises RuntimeError if another loop uses the clock."""
        loop, here = asyncio.get_running_loop(), self._here
        if here is None or here.loop.is_closed():
            here = self._here = Deadlines(loop, self.monotonic)
            self._moving = asyncio.Lock()
            for left in (self._pauses, self._working, self._followers):  # by a broker that was killed with its loop
                left.clear()
        if here.loop is not loop:
            raise RuntimeError("this MovableClock belongs to brokers of another event loop; give each loop its own")
        return here

    # ------------------------------------------------------------------------------------------------------ moving it

    @property
    def was_moved(self) -> bool:
        """Whether it was moved since it was created, or since `reset`."""
        return self._moved > 0

    def reset(self) -> None:
        """Set it back to the machine's time. Raises RuntimeError while a broker uses it, whose time never goes back."""
        if self._here is not None and not self._here.loop.is_closed():
            raise RuntimeError("a broker uses this clock: stop it first")
        self._moved = self._offset = 0.0

    async def advance(self, delta: timedelta | None = None, /, **arguments: float) -> None:
        """Move the clock forward by a `timedelta`, or by its arguments (`hours=2`), and do what is due until then.

        Returns when that is done. Raises TypeError for a number without a unit, ValueError if the time is negative;
        TimeoutError if something that was due takes too long in real time: then what was due before it is done, and the
        clock goes on from there.
        """
        seconds = _seconds(delta, arguments)
        deadlines = self.deadlines()
        async with self._moving:
            for follower in tuple(self._followers):
                follower.before_move(seconds)
            begin = self._held = self.monotonic()
            self._end = begin + seconds
            self._moved += seconds
            deadlines.hold()
            try:
                self._grid = begin, seconds / MOST_RUNS
                await self._do_until(self._end)
                self._grid = None
                self._move_to(self._end)
                self._run_periodic_work()
                await self.settled()
                await self._do_until(self._end)
            finally:
                self._grid = None
                self._offset = self.monotonic() - unfrozen_time.monotonic()
                self._held = None
                deadlines.release()

    async def settled(self) -> None:
        """Return when the periodic work in progress has paused, and disk threads have done what they were given.

        Raises TimeoutError if that takes too long.
        """
        for _ in range(_CHAIN):
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            busy = [follower for follower in self._followers if follower.is_busy]
            if not self._working and not busy:
                return
            await self._wait_for(busy)

    async def _wait_for(self, busy: list[ClockFollower]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                for follower in busy:
                    await follower.settled()
                await self._all_paused()
        except TimeoutError:
            names = ", ".join(sorted(task.get_name() for task in self._working)) or "disk threads"
            raise TimeoutError(f"still at work after {self._patience:g} s: {names}") from None

    async def _do_until(self, end: float) -> None:
        """Do what is due at `end` or before, in order."""
        deadlines = self.deadlines()
        while (when := deadlines.first()) is not None and when <= end:
            self._move_to(when)
            deadlines.fire(when)
            await self.settled()

    def _move_to(self, when: float) -> None:
        assert self._held is not None
        seconds = when - self._held
        if seconds > 0:
            self._held = when
            for follower in tuple(self._followers):
                follower.moved(seconds)

    def _client_time(self) -> float:
        return self.monotonic() if self._held is None else self._end

    # --------------------------------------------------------------------------------------------------- periodic work

    def _next_run(self, seconds: float) -> float:
        """Return when periodic work of this interval is due next.

        In a long move that is the next point of a grid, which all such work shares, so that a point is one step.
        """
        due = self.monotonic() + seconds
        if self._grid is None or seconds >= self._grid[1]:
            return due
        begin, interval = self._grid
        return begin + (int((due - begin) / interval) + 1) * interval

    def _run_periodic_work(self) -> None:
        """Run all periodic work that pauses, in the order of its deadlines, except what has just run."""
        now = self.monotonic()
        for due, pause in sorted(self._pauses.items(), key=lambda item: item[1].timer):
            if pause.began < now:
                pause.timer.cancel()
                self._work(due, pause.task)

    def _work(self, due: asyncio.Future[None], task: asyncio.Task[Any]) -> None:
        if not due.done():
            due.set_result(None)
            self._working.add(task)
            task.add_done_callback(self._stopped_working)

    def _stopped_working(self, task: asyncio.Task[Any]) -> None:
        task.remove_done_callback(self._stopped_working)
        self._working.discard(task)
        if not self._working and self._paused is not None and not self._paused.done():
            self._paused.set_result(None)

    async def _all_paused(self) -> None:
        while self._working:
            self._paused = self.deadlines().loop.create_future()
            await self._paused


class MovableTimers:
    """The timers of a `MovableClock`; `time` returns the time from which their deadlines count."""

    __slots__ = ("_deadlines", "time")

    def __init__(self, deadlines: Deadlines, time: Callable[[], float]) -> None:
        self._deadlines = deadlines
        self.time = time

    def call_at(self, when: float, callback: Callable[..., object], /, *args: Any) -> Deadline:
        return self._deadlines.add(when, callback, args)

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: Any) -> Deadline:
        return self._deadlines.add(self.time() + delay, callback, args)


def _seconds(delta: object, arguments: dict[str, float]) -> float:
    if delta is not None and arguments:
        raise TypeError("give a timedelta, or the arguments of one, not both")
    if delta is None:
        delta = _timedelta(arguments)
    if not isinstance(delta, timedelta):
        number = delta if isinstance(delta, int | float) else 5
        raise TypeError(
            f"advance takes a timedelta or its arguments, such as advance(seconds={number}), and not {delta!r}"
        )
    if delta < timedelta():
        raise ValueError("time does not run backwards: a clock can only be moved forward")
    return delta.total_seconds()


def _timedelta(arguments: dict[str, float]) -> timedelta:
    if not arguments:
        raise TypeError("say how far: advance(seconds=5), advance(hours=2) or advance(timedelta(days=1))")
    try:
        return timedelta(**arguments)
    except TypeError as error:
        names = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise TypeError(f"advance({names}): {error}; write numbers, such as advance(hours=2)") from None
    except (OverflowError, ValueError) as error:  # ValueError: NaN
        raise ValueError(f"a clock cannot be moved that far: {error}") from None


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
