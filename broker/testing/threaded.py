"""A broker on its own thread, for tests and programs without an event loop, or whose clients block it.

```python
with ThreadedBroker() as broker:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
```
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from odradek.broker.broker import Broker


class ThreadedBroker:
    """A broker that runs from `start` to `stop`, which return when it is done. Takes the properties of `Broker`."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.bootstrap = ""
        self.port = 0
        self._properties = dict(properties or {})
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and return when clients are served. Raises what `Broker.start` raises."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        """Stop as `Broker.stop` does. Raises the error that has ended the broker, if any."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised by start or stop
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with Broker(self._properties) as broker:
            self.bootstrap = broker.bootstrap
            self.port = broker.port
            self._started.set()
            await self._stop.wait()
