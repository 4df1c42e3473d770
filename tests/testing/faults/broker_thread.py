"""A broker on a thread of its own, as `BlockingFaults` needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from odradek.broker.broker import Broker

T = TypeVar("T")


class BrokerOnThread:
    """`with BrokerOnThread() as thread`: `start` and `stop` as often as wanted, on the same directory if given."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        self._properties = properties or {}
        self._executor = ThreadPoolExecutor(1)
        self._loop = asyncio.new_event_loop()
        self._runs = False

    def __enter__(self) -> Self:
        self._executor.submit(self._loop.run_forever)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runs:
            self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._executor.shutdown()
        self._loop.close()

    def start(self) -> None:
        """Start a new broker on the same properties."""
        self.broker = Broker(self._properties)
        asyncio.run_coroutine_threadsafe(self.broker.start(), self._loop).result()
        self._runs = True

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.broker.stop(), self._loop).result()
        self._runs = False

    def call(self, function: Callable[[], T], /) -> T:
        if not self._runs:
            raise RuntimeError("the broker is stopped")

        async def called() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()
