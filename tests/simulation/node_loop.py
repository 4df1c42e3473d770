"""The event loop of one simulated process: the calls of asyncio that the broker and its clients use, in virtual time.

| state | calls that become ready |
|---|---|
| running | run in turns |
| paused | wait, as in a process that was stopped by a signal; timers become due meanwhile |
| dead | are dropped: nothing that the process was about to do happens |

Descriptors are numbers of simulated sockets. A reader is called as long as its socket has something to read.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tests.simulation.world import World


class Readable(Protocol):
    """A simulated socket."""

    def has_data(self) -> bool:
        """Return whether a read would return at once."""
        ...


class Call:
    """A callback that is due now or later: asyncio's Handle and TimerHandle."""

    __slots__ = ("_arguments", "_callback", "_context", "_when", "is_cancelled", "loop")

    def __init__(
        self,
        loop: NodeLoop,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: contextvars.Context | None,
        when: float,
    ) -> None:
        self.loop = loop
        self.is_cancelled = False
        self._callback: Callable[..., object] | None = callback
        self._arguments = arguments
        self._context = contextvars.copy_context() if context is None else context
        self._when = when

    def cancel(self) -> None:
        self.is_cancelled = True
        self._callback = None
        self._arguments = ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self._when

    def run(self) -> None:
        callback = self._callback
        if callback is None:
            return
        try:
            self._context.run(callback, *self._arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio, which passes it to the handler of the loop
            self.loop.call_exception_handler({"message": f"error in {callback}", "exception": error})


class NodeLoop(asyncio.AbstractEventLoop):
    """One process. `on_error` receives what asyncio's exception handler does."""

    def __init__(self, world: World, name: str, on_error: Callable[[dict[str, Any]], None]) -> None:
        self.name = name
        self.is_dead = False
        self.pipes: list[Any] = []  # of its connections, for what the process sends
        self._world = world
        self._on_error = on_error
        self._ready: deque[Call] = deque()
        self._dropped: list[Call] = []  # kept, so that no coroutine is closed, and runs its cleanup, at some later time
        self._is_queued = False  # for a turn
        self._paused = False
        self._behind = 0.0  # seconds for which the machine slept: its monotonic clock stood still
        self._readers: dict[int, Callable[[], object]] = {}
        self._sockets: dict[int, Readable] = {}
        self._polled: set[int] = set()

    def __repr__(self) -> str:
        return f"<NodeLoop {self.name}>"

    # ------------------------------------------------------------------------------------------------------- the world

    def turn(self) -> None:
        """Run what is ready now; what becomes ready meanwhile waits for the next turn."""
        self._is_queued = False
        if self._paused or self.is_dead:
            return
        ready = self._ready
        events._set_running_loop(self)  # noqa: SLF001
        try:
            for _ in range(len(ready)):
                if self.is_dead:  # since one of these calls
                    return
                ready.popleft().run()
        finally:
            events._set_running_loop(None)  # noqa: SLF001

    def make_ready(self, call: Call) -> None:
        """Run a call in the next turn."""
        if self.is_dead:
            self._dropped.append(call)
            return
        self._ready.append(call)
        self._queue()

    def _queue(self) -> None:
        if not self._is_queued and not self._paused:
            self._is_queued = True
            self._world.wake(self)

    @property
    def is_paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if self._ready:
                self._queue()

    def sleep_until_now(self, since: float) -> None:
        """Let the monotonic clock omit the time since `since`: the machine slept, and timers are due later."""
        self._behind += self._world.now - since

    def die(self) -> None:
        """End the process in the middle of what it does."""
        self.is_dead = True

    # -------------------------------------------------------------------------------------------------------- asyncio

    def time(self) -> float:
        return self._world.now - self._behind

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Call:
        call = Call(self, callback, args, context, 0.0)
        self.make_ready(call)
        return call

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Call:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Call:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Call:
        call = Call(self, callback, args, context, when)
        self._world.schedule(when + self._behind, call)
        return call

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._on_error(context)

    def _timer_handle_cancelled(self, handle: object) -> None:
        """asyncio calls it for handles of its own class, which are not used here."""

    # -------------------------------------------------------------------------------------------------------- sockets

    def attach(self, descriptor: int, socket: Readable) -> None:
        """Make a simulated socket known under its descriptor."""
        self._sockets[descriptor] = socket

    def detach(self, descriptor: int) -> None:
        """Forget a closed socket."""
        self._sockets.pop(descriptor, None)
        self._readers.pop(descriptor, None)

    def add_reader(self, fd: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        assert not args
        self._readers[fd] = callback
        self.poll(fd)

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        return self._readers.pop(fd, None) is not None

    def poll(self, descriptor: int) -> None:
        """Call the reader of a socket, if it has one and has something to read."""
        socket = self._sockets.get(descriptor)
        if descriptor not in self._polled and descriptor in self._readers and socket is not None and socket.has_data():
            self._polled.add(descriptor)
            self.call_soon(self._readable, descriptor)

    def _readable(self, descriptor: int) -> None:
        self._polled.discard(descriptor)
        reader, socket = self._readers.get(descriptor), self._sockets.get(descriptor)
        if reader is not None and socket is not None and socket.has_data():
            reader()
            self.poll(descriptor)
