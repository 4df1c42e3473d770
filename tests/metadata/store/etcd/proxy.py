"""A proxy between a store and a member of etcd, in the test's event loop, which loses what it is told to lose.

Lost bytes cannot be left out of a connection of HTTP/2. So `heal` ends the connections that have lost some.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

_CHUNK = 1 << 16


class Proxy:
    """Listens on a free port of loopback: `async with Proxy(port of the member) as proxy`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.loses_requests = False
        self.loses_answers = False
        self.lost_requests = asyncio.Event()
        self.lost_answers = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def endpoint(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def lose_requests(self) -> None:
        self.loses_requests = True
        self.lost_requests.clear()

    def lose_answers(self) -> None:
        self.loses_answers = True
        self.lost_answers.clear()

    def cut(self) -> None:
        """Lose everything in both directions; connections stay open, and new ones are accepted."""
        self.lose_requests()
        self.lose_answers()

    def heal(self) -> None:
        self.loses_requests = self.loses_answers = False
        self._abort()

    def _abort(self) -> None:
        for writer in self._connections:
            writer.transport.abort()
        self._connections.clear()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._connections.add(writer)
        with suppress(OSError):
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._connections.add(other_writer)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pump(reader, other_writer, is_request=True))
                    group.create_task(self._pump(other_reader, writer, is_request=False))
            except* OSError:
                pass
            finally:
                other_writer.transport.abort()
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool) -> None:
        while data := await reader.read(_CHUNK):
            if self.loses_requests if is_request else self.loses_answers:
                (self.lost_requests if is_request else self.lost_answers).set()
                continue
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side has closed the connection")
