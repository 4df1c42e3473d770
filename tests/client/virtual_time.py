"""An event loop with virtual time: its clock stands still while there is work, and else jumps to the next timer.

Hours pass in microseconds, and all runs have the same order. If there is neither work nor a timer, the test can never
continue: that is an error, where a real loop would hang.
"""

from __future__ import annotations

import asyncio
import functools
import random
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any


class NothingWillHappenError(Exception):
    """The test waits, and no task or timer can end that."""


class _JumpingSelector(selectors.BaseSelector):
    """Selects without waiting, and moves the clock by the requested timeout."""

    def __init__(self) -> None:
        self.now = 0.0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready:
            if timeout is None:
                raise NothingWillHappenError
            self.now += max(timeout, 0)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def simulated(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in virtual time; it may have fixtures. The client's chances are the same in each run."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        random.seed(test.__qualname__)
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
