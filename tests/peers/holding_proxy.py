"""A proxy between clients and a broker that holds one request back, as a slow network does.

```
client ──► HoldingProxy ──► broker           hold(key): the next request of this API waits here
   │            ║                            the client times out, and sends it again over another connection
   └────────────╨─────────► broker           release(): it reaches the broker, and its response is returned
```
The broker must advertise the proxy's port. The requests after a held one wait with it if they come over the same
connection. The broker sees a held connection as open, even after the client has closed its side.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from odradek.protocol import header
from tests.tcp_server import tcp_server

_TIMEOUT = 60.0
_SIZE = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")  # API key, version, correlation id


class Held:
    """A request that is held back, from `arrived` to `release`."""

    def __init__(self, api_key: int, at_most: int) -> None:
        self.api_key = api_key
        self.at_most = at_most
        self.version = -1
        self.released = asyncio.Event()
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._arrived = asyncio.Event()

    def arrive(self, version: int) -> None:
        self.version = version
        self._arrived.set()

    async def arrived(self) -> None:
        """Return when the proxy has the request. Raises TimeoutError."""
        async with asyncio.timeout(_TIMEOUT):
            await self._arrived.wait()

    async def release(self) -> Any:
        """Send the request to the broker, and return the decoded response. Raises TimeoutError."""
        await self.arrived()
        self.released.set()
        async with asyncio.timeout(_TIMEOUT):
            _, response = header.decode_response(self.api_key, self.version, await self.answer)
        return response


class HoldingProxy:
    """`async with HoldingProxy(port, broker_port).listening() as proxy: held = proxy.hold(26)`."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self._broker_port = broker_port
        self._waiting: Held | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[HoldingProxy]:
        """Serve clients, and end all connections when the block is left."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        try:
            async with tcp_server(connected, self.port):
                yield self
        finally:  # no client can connect again
            while self._connections:
                ending = list(self._connections)
                for task in ending:
                    task.cancel()
                await asyncio.wait(ending)

    def hold(self, api_key: int, *, at_most: int = 32767) -> Held:
        """Hold back the next request of this API, in a version that is not above `at_most`."""
        self._waiting = Held(api_key, at_most)
        return self._waiting

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except BaseException:
            writer.close()
            raise
        held: dict[int, Held] = {}
        answers = asyncio.create_task(_pass_answers(broker_reader, writer, held))
        try:
            await self._pass_requests(reader, broker_writer, held)
        except (asyncio.IncompleteReadError, ConnectionError):
            await asyncio.gather(*(each.answer for each in held.values()), return_exceptions=True)
        finally:
            answers.cancel()
            for each in (writer, broker_writer):
                each.close()  # before any wait, which may be cancelled
            await asyncio.gather(answers, writer.wait_closed(), broker_writer.wait_closed(), return_exceptions=True)

    async def _pass_requests(
        self, reader: asyncio.StreamReader, broker: asyncio.StreamWriter, held: dict[int, Held]
    ) -> None:
        while True:
            frame = await _read_frame(reader)
            api_key, version, correlation_id = _HEADER.unpack_from(frame)
            waiting = self._waiting
            if waiting is not None and waiting.api_key == api_key and version <= waiting.at_most:
                self._waiting = None
                held[correlation_id] = waiting
                waiting.arrive(version)
                await waiting.released.wait()
            broker.write(_SIZE.pack(len(frame)) + frame)
            await broker.drain()


async def _pass_answers(broker: asyncio.StreamReader, writer: asyncio.StreamWriter, held: dict[int, Held]) -> None:
    """Pass responses on until the broker closes; those to held requests go to the test as well."""
    try:
        while True:
            frame = await _read_frame(broker)
            (correlation_id,) = _SIZE.unpack_from(frame)
            if correlation_id in held:
                held.pop(correlation_id).answer.set_result(frame)
            if not writer.is_closing():
                writer.write(_SIZE.pack(len(frame)) + frame)
                await asyncio.gather(writer.drain(), return_exceptions=True)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    return await reader.readexactly(size)
