"""The listening sockets of an HTTP server: one for each address that its host name has.

asyncio's own server logs a traceback for each attempt to accept a connection while no descriptor is left, a hundred a
second, and uvloop's closes what it cannot accept. Here, as in `listener`, clients wait in the backlog, accepting pauses
for a second, and one line says so.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable

from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_ACCEPTS_A_TURN = 32
_BACKLOG = 100
_BACK_OFF_SECONDS = 1.0
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class HttpSockets:
    """Accepts connections and gives each to `accepted`, from `start` to `close`."""

    def __init__(self, accepted: Callable[[socket.socket], None]) -> None:
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._listening: list[socket.socket] = []
        self._paused: asyncio.TimerHandle | None = None
        self._told_of_pause = False

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen, and return the addresses. With port 0, it is any free one at each. Raises OSError."""
        infos = await self._loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(infos):
                listening = socket.socket(family, socket.SOCK_STREAM)
                self._listening.append(listening)
                listening.setblocking(False)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind(address)
                listening.listen(_BACKLOG)
        except OSError:
            self.close()
            raise
        self._accept_on_all()
        return [listening.getsockname()[:2] for listening in self._listening]

    def close(self) -> None:
        """Accept no more. Harmless when that is done."""
        if self._paused is not None:
            self._paused.cancel()
            self._paused = None
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        self._listening = []

    def _accept_on_all(self) -> None:
        self._paused = None
        for listening in self._listening:
            self._loop.add_reader(listening, self._acceptable, listening)

    def _acceptable(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            try:
                connected, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(error)
                    return
                continue  # of the one connection
            if self._told_of_pause:
                self._told_of_pause = False
                _LOG.info("accepting goes on", listener="metrics.port")
            connected.setblocking(False)
            self._accepted(connected)

    def _pause(self, error: OSError) -> None:
        for listening in self._listening:
            self._loop.remove_reader(listening)
        if self._paused is None:
            self._paused = self._loop.call_later(_BACK_OFF_SECONDS, self._accept_on_all)
        if not self._told_of_pause:
            self._told_of_pause = True
            _LOG.warning("accepting paused", listener="metrics.port", reason=error)
