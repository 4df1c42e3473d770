"""Waiting for a time limit of Kafka: by the running event loop, or by a clock that a test moves.

| wait | for |
|---|---|
| `timers` | deadlines of the broker itself: retries |
| `client_timers` | deadlines of clients: their sessions, rebalances, delayed requests |
| `sleep` | a coroutine that goes on later |
| `pause` | a coroutine that does periodic work, between two runs |
| `attach` | informs a part of the broker when a test moves the clock |

Each takes the broker's clock. With any clock but a `WaitingClock` the event loop's own timers are used, and nothing is
between them and their users. So a test that moves a `WaitingClock` moves all of these waits together.

Limits of the network do not use this module, and stay on the event loop: HTTP, sessions of the metadata store, requests
to other brokers. They concern machines, not records.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from odradek.broker.clock import Clock


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Never make the call. Does nothing if it has been made."""
        ...


class Timers(Protocol):
    """Calls at a later time; an event loop is one. Used on the event loop only."""

    def time(self) -> float:
        """Return the time from which deadlines count, in seconds."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], /, *args: Any) -> Timer:
        """Call `callback(*args)` when it is `when`."""
        ...

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: Any) -> Timer:
        """Call `callback(*args)` in `delay` seconds."""
        ...


class ClockFollower(Protocol):
    """The part of a broker that is informed when a test moves the clock. All methods are called on the event loop."""

    def begin(self) -> None:
        """Begin to record the work in progress, for `is_busy` and `settled`."""
        ...

    def before_move(self, seconds: float) -> None:
        """Postpone by `seconds`, by which the clock is about to move, what does not age: living members of groups."""
        ...

    def moved(self, seconds: float) -> None:
        """Postpone what is measured by the clock, but does not age: the idleness of connections."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether disk work is in progress."""
        ...

    async def settled(self) -> None:
        """Wait until the disk work that is in progress has ended."""
        ...


class WaitingClock(ABC):
    """A clock that has timers of its own. Its methods are called on the running event loop."""

    @abstractmethod
    def timers(self) -> Timers:
        """Return the timers for deadlines of the broker."""

    @abstractmethod
    def client_timers(self) -> Timers:
        """Return the timers for deadlines until which a client must do something.

        Clients live in real time. What is set while a test moves the clock counts from the end of that move.
        """

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Return when periodic work is due again. A move of the clock waits for the work until the next pause."""

    @abstractmethod
    def attach(self, follower: ClockFollower) -> None:
        """Inform the follower of moves."""

    @abstractmethod
    def detach(self, follower: ClockFollower) -> None:
        """Inform the follower no more."""


def timers(clock: Clock) -> Timers:
    """Return the timers for deadlines of the broker."""
    return clock.timers() if isinstance(clock, WaitingClock) else asyncio.get_running_loop()


def client_timers(clock: Clock) -> Timers:
    """Return the timers for deadlines until which a client must do something."""
    return clock.client_timers() if isinstance(clock, WaitingClock) else asyncio.get_running_loop()


def sleep(clock: Clock, seconds: float) -> Awaitable[None]:
    """Wait for `seconds`."""
    return clock.sleep(seconds) if isinstance(clock, WaitingClock) else asyncio.sleep(seconds)


def pause(clock: Clock, seconds: float) -> Awaitable[None]:
    """Wait for `seconds` between two runs of periodic work."""
    return clock.pause(seconds) if isinstance(clock, WaitingClock) else asyncio.sleep(seconds)


def attach(clock: Clock, follower: ClockFollower) -> Callable[[], None]:
    """Inform the follower when a test moves the clock. Returns the function that ends it."""
    if not isinstance(clock, WaitingClock):
        return _nothing
    clock.attach(follower)
    return lambda: clock.detach(follower)


def _nothing() -> None:
    """Do nothing: nobody moves this clock."""
