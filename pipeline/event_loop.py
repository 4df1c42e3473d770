"""The event loop of code that blocks: it runs only while that code waits, and leaves no thread behind.

A task reads and writes through the client, which is asyncio's. What `run` costs counts, for it is called for every
request: `asyncio.Runner.run` would make the process's handler of SIGINT another one each time, which takes as long as
to send the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class EventLoop:
    """An event loop for one thread; `close` ends what is left of it."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()

    def run(self, work: Awaitable[T]) -> T:
        """Let the event loop run until `work` is done, and return or raise what comes of it."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self._runner.close()
