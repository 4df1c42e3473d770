"""The ports of a broker that is stopped and will start again, kept by sockets that are bound and do not listen.

A port that the system chose is one of those that it also gives to connections. While no socket is bound to it, another
process may get it; even a client that tries to connect to it may, and is then connected to itself. Connections to a
bound socket that does not listen are refused, as to a broker that is down.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from odradek.broker.request.context import Address


class ReservedPorts:
    """Keeps the ports between `reserve` and `release`, which may be repeated. `addresses` are numeric."""

    def __init__(self) -> None:
        self.addresses: Sequence[Address] = ()
        self._sockets: list[socket.socket] = []

    def reserve(self) -> None:
        """Keep the ports of `addresses`, as well as possible."""
        self.release()
        for host, port in self.addresses:
            kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
            self._sockets.append(kept)
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                kept.bind((host, port))
            except OSError:
                continue  # another process was faster; the next start reports it

    def release(self) -> None:
        """Make the ports free."""
        for kept in self._sockets:
            kept.close()
        self._sockets.clear()
