"""Closing the connections of a broker that stops, so that their clients receive the last answers.

A socket that is closed while its client still sends resets the connection. A client that is sending then fails at once,
and does not read the answers that it has already received: a producer sends acknowledged batches again. After the
restart the broker knows only the last batch of each producer (its snapshot is Kafka's), and refuses the others as out
of order. So the broker ends its side of the stream first, discards what arrives, and closes when the client has.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from odradek.broker.server.transport import Transport

RECENT_SECONDS: Final = 0.05
"""A client that was answered longer ago has read the answer."""
QUIET_SECONDS: Final = 0.05
"""A client that has not closed its side, and sends nothing for so long, reads or has ended."""
_DISCARDED_AT_ONCE: Final = 64 * 1024


class Closing:
    """The sockets that wait for their clients; none before `finish`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float]) -> None:
        self._loop = loop
        self._monotonic = monotonic
        self._has_begun = False
        self._sockets: set[socket.socket] = set()
        self._changed = asyncio.Event()  # a socket was read or closed

    async def finish(
        self, answer: Callable[[], Awaitable[None]], close_rest: Callable[[], Awaitable[None]], seconds: float
    ) -> None:
        """Await `answer`, then `close_rest`, which call `close` with transports; then close all sockets.

        Before that, waits `seconds` at most until the clients have closed their sides or are quiet. The sockets are
        closed also if this is cancelled. `close` gives time to clients that were answered a moment ago, from now on.
        """
        self._has_begun = True
        try:
            try:
                await answer()
            finally:
                await close_rest()
        finally:
            await self._finish(seconds)

    def close(self, transport: Transport, answered_at: float) -> None:
        """Close a transport whose answers the kernel has taken, the last one at `answered_at`."""
        waiting = None
        if self._has_begun and self._monotonic() - answered_at < RECENT_SECONDS:
            waiting = transport.end_sending()
        if waiting is None:
            transport.close()
        else:
            self._sockets.add(waiting)
            self._loop.add_reader(waiting, self._discard, waiting)

    async def _finish(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._sockets:
                    self._changed.clear()
                    async with asyncio.timeout(QUIET_SECONDS):  # Python 3.11's wait_for may swallow the outer timeout
                        await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            for each in tuple(self._sockets):
                self._end(each)

    def _discard(self, waiting: socket.socket) -> None:
        self._changed.set()
        try:
            if waiting.recv(_DISCARDED_AT_ONCE):
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # the client has reset the connection
        self._end(waiting)

    def _end(self, waiting: socket.socket) -> None:
        self._sockets.remove(waiting)
        self._loop.remove_reader(waiting)
        waiting.close()
