"""An event loop on a thread of its own, and calls to it from other threads.

```
caller's thread ── run(coroutine) ──► loop: task ──► result or exception ──► caller
                └─ close ───────────► loop: all tasks are cancelled, then the thread ends
```

A call on the loop's own thread would wait for itself, and raises RuntimeError instead.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from odradek.broker.testing.broker_loop import BrokerLoop

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

T = TypeVar("T")

_ENDED = "the broker was stopped before the call had ended"


class LoopThread:
    """The thread runs from the constructor to `close`. All methods may be called on any other thread."""

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner(loop_factory=BrokerLoop)
        self.loop = self._runner.get_loop()
        self._lock = threading.Lock()  # no call is scheduled behind the end of the loop
        self._is_closed = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and return its result or raise its exception.

        Raises RuntimeError on the loop's own thread, and if the thread ends before the coroutine does.
        """
        try:
            self.check_caller()
            future = self._submit(coroutine)
        except BaseException:
            coroutine.close()
            raise
        try:
            error = future.exception()
        except concurrent.futures.CancelledError:
            if self._is_closed:
                raise RuntimeError(_ENDED) from None
            raise
        finally:
            future.cancel()  # if the caller was interrupted
        if error is None:
            return future.result()
        try:
            raise error  # not by `future.result()`, whose frames would be in the traceback of a failed test
        finally:
            del error  # its traceback refers to this frame

    async def run_here(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, from this loop or another one, and return its result; cancelled with it."""
        if asyncio.get_running_loop() is self.loop:
            return await coroutine
        return await asyncio.wrap_future(self._submit(coroutine))

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._is_closed:
                raise RuntimeError(_ENDED)
            return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def close(self) -> None:
        """Cancel all tasks of the loop, and return when the thread has ended. May be repeated."""
        self.check_caller()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def check_caller(self) -> None:
        """Raise RuntimeError if the caller runs on this thread."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a blocking call on the thread of its own event loop would wait for itself: await the coroutines of"
                " `ThreadedBroker.broker` there"
            )

    def _main(self) -> None:
        with self._runner:
            self.loop.run_forever()
