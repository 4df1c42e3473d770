"""A proxy between clients and a broker that disturbs connections at random, by a seed.

```
client ──► UnreliableProxy ──► broker      each request frame meets a fault with the probability `rate`
```
| fault | the request | the answer |
|---|---|---|
| LOSE | is lost, and the connection is cut | |
| CUT | is passed on, and the client's side is cut | is lost |
| DROP | is passed on | is lost; the connection stays, and later answers are passed |
| DELAY | waits, and all behind it; it is passed on even if the client has closed the connection meanwhile | is passed |
| HALF_CLOSE | is passed on, and the broker sees the end of the stream | is passed |

A new connection may wait, too, so that a later one overtakes it. The broker must advertise the proxy's port.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from random import Random

from tests.tcp_server import tcp_server

_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">4xi")  # of a request; its API key and version are before
_LONGEST_DELAY = 0.6  # longer than the clients' request_timeout_ms

_LOST = (asyncio.IncompleteReadError, OSError)


class Fault(Enum):
    """The faults of the table above."""

    LOSE = "lose"
    CUT = "cut"
    DROP = "drop"
    DELAY = "delay"
    HALF_CLOSE = "half-close"


class UnreliableProxy:
    """Passes connections on to `broker_port`. `faults` counts the faults by their kind."""

    def __init__(self, port: int, broker_port: int, random: Random) -> None:
        self.rate = 0.0
        self.faults = dict.fromkeys(Fault, 0)
        self._port = port
        self._broker_port = broker_port
        self._random = random
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[UnreliableProxy]:
        """Serve clients until the end of the block, and their connections until each has ended."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        async with tcp_server(connected, self._port):
            yield self
            await self.drain()

    async def drain(self) -> None:
        """Wait until every request of closed clients has reached the broker or is lost; all clients must be closed."""
        while self._connections:
            await asyncio.wait(set(self._connections))

    def _fault(self) -> Fault | None:
        if self._random.random() >= self.rate:
            return None
        fault = self._random.choice(list(Fault))
        self.faults[fault] += 1
        return fault

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0, _LONGEST_DELAY))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dropped: set[int] = set()
        if self._fault() is Fault.DELAY:
            await self._pause()
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:
            await _close(writer)
            return
        answers = asyncio.create_task(self._pass_answers(from_broker, writer, dropped))
        try:
            await self._pass_requests(reader, to_broker, writer, dropped)
        finally:
            # The broker answers what it has received, and closes then.
            with suppress(OSError):
                to_broker.write_eof()
            await answers
            await _close(to_broker)

    async def _pass_requests(
        self,
        reader: asyncio.StreamReader,
        to_broker: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
        dropped: set[int],
    ) -> None:
        with suppress(*_LOST):
            while True:
                frame = await _read_frame(reader)
                fault = self._fault()
                if fault is Fault.LOSE:
                    break
                if fault is Fault.DELAY:
                    await self._pause()
                if fault is Fault.DROP:
                    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
                    dropped.add(correlation_id)
                if fault is Fault.CUT:
                    writer.transport.abort()
                to_broker.write(_SIZE.pack(len(frame)) + frame)
                await to_broker.drain()
                if fault in (Fault.CUT, Fault.HALF_CLOSE):
                    break

    async def _pass_answers(
        self, from_broker: asyncio.StreamReader, writer: asyncio.StreamWriter, dropped: set[int]
    ) -> None:
        with suppress(*_LOST):
            while True:
                frame = await _read_frame(from_broker)
                (correlation_id,) = _SIZE.unpack_from(frame)
                if correlation_id not in dropped and not writer.is_closing():
                    writer.write(_SIZE.pack(len(frame)) + frame)
        await _close(writer)


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    return await reader.readexactly(size)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
