"""The listening sockets of an HTTP server: one for each address of its host name.

While no descriptor is left, asyncio's own server logs a traceback for each attempt to accept a connection, a hundred a
second, and uvloop's server closes the connections that it cannot accept. Here, as in `listener`, accepting pauses, one
log line reports it, and clients wait in the backlog.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from odradek.broker.server.accepting import BACK_OFF_SECONDS, accept_next
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_BACKLOG = 100
_ACCEPTS_A_TURN = 4
"""Connections that one socket accepts in a turn of the event loop: few, because a new one may close an older one."""


class HttpSockets:
    """Accepts connections from `start` to `close`, and calls `accepted` with each."""

    def __init__(self, accepted: Callable[[socket.socket], None]) -> None:
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._listening: list[socket.socket] = []
        self._paused: asyncio.TimerHandle | None = None
        self._pause_is_logged = False

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen, and return the addresses. Port 0 takes any free port at each address. Raises OSError."""
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
        """Stop accepting. May be called again."""
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
                waiting = accept_next(listening)
            except OSError as error:
                self._pause(error)
                return
            if waiting is None:
                return
            if self._pause_is_logged:
                self._pause_is_logged = False
                _LOG.info("accepting resumed", listener="metrics.port")
            connected, _ = waiting
            connected.setblocking(False)
            self._accepted(connected)

    def _pause(self, error: OSError) -> None:
        for listening in self._listening:
            self._loop.remove_reader(listening)
        if self._paused is None:
            self._paused = self._loop.call_later(BACK_OFF_SECONDS, self._accept_on_all)
        if not self._pause_is_logged:
            self._pause_is_logged = True
            _LOG.warning("accepting paused", listener="metrics.port", reason=error)
