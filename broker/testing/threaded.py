"""A broker on its own thread, for tests and programs without an event loop, or whose clients block it.

```python
with ThreadedBroker() as broker:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
```
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from odradek.broker.broker import Broker
from odradek.broker.clock import Clock
from odradek.broker.startup.embedded_config import Properties
from odradek.broker.startup.machine import Machine
from odradek.broker.storage.disk.files import Files
from odradek.broker.testing.loop_thread import LoopThread
from odradek.broker.testing.movable_clock import MovableClock

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

P = ParamSpec("P")
T = TypeVar("T")


class ThreadedBroker:
    """A broker with the properties of `Broker`, and its methods, which block until they are done.

    Each start has a thread and an event loop of its own. All methods may be called on any thread except the broker's,
    where they raise RuntimeError instead of waiting for themselves. Calls that start or end the broker wait for each
    other. Clocks that a test freezes (freezegun, time-machine) do not stop it.
    """

    def __init__(
        self,
        properties: Properties | None = None,
        *,
        clock: Clock | None = None,
        new_files: Callable[[], Files] | None = None,
    ) -> None:
        """`clock`: a `MovableClock` by default, which `BlockingClock` moves from the test's thread.

        `new_files`: the files of a log directory, in place of the machine's. Raises `ConfigError`.
        """
        self.broker = Broker(
            properties,
            clock=clock or MovableClock(),
            machine=None if new_files is None else Machine(new_files=new_files),
        )
        self.bootstrap = ""
        self.port = 0
        self._turn = threading.RLock()
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def clock(self) -> Clock:
        return self.broker.clock

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the running broker; each start has another one. Raises RuntimeError if it is stopped."""
        return self._running().loop

    @property
    def is_running(self) -> bool:
        return self.broker.is_running

    def start(self) -> None:
        """Start, and return when clients are served; on the same port and with the same data as before a stop.

        Raises what `Broker.start` raises.
        """
        self._check_thread()
        with self._turn:
            if self._thread is not None:
                raise RuntimeError("the broker is running")
            self._thread = thread = LoopThread("broker")
            try:
                thread.run(self.broker.start())
            except BaseException:
                thread.close()
                self._thread = None
                raise
            self.bootstrap, self.port = self.broker.bootstrap, self.broker.port

    def stop(self) -> None:
        """Stop as `Broker.stop` does; the data stay for the next start. Does nothing if the broker does not run."""
        self._end(self.broker.stop)

    def kill(self) -> None:
        """End as `Broker.kill` does: as if `kill -9` killed the process. Does nothing if the broker does not run."""
        self._end(self.broker.kill)

    def restart(self) -> None:
        """Stop, and start again. Raises as `start`."""
        self._check_thread()
        with self._turn:
            self.stop()
            self.start()

    def close(self) -> None:
        """Stop for the last time, and remove the temporary directory, if it has one. May be repeated."""
        self._check_thread()
        with self._turn:
            if self._thread is None:
                self._thread = LoopThread("broker")  # to remove the directory
            self._end(self.broker.close)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's event loop, and return its result or raise its exception.

        Raises RuntimeError if the broker is stopped, or stops before the coroutine has ended.
        """
        try:
            thread = self._running()
        except RuntimeError:
            coroutine.close()
            raise
        return thread.run(coroutine)

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on the broker's event loop, and return its result or raise its exception; see `run`."""
        return self.run(_called(function, *args, **kwargs))

    def _end(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._check_thread()
        with self._turn:
            if self._thread is None:
                return
            try:
                self._thread.run(end())
            finally:
                self._thread.close()
                self._thread = None

    def _check_thread(self) -> None:
        """Raise RuntimeError on the broker's own thread, before a wait for another thread that may wait for it."""
        thread = self._thread
        if thread is not None:
            thread.check_caller()

    def _running(self) -> LoopThread:
        thread = self._thread
        if thread is None:
            raise RuntimeError("the broker is stopped: start it first")
        return thread


async def _called(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return function(*args, **kwargs)
