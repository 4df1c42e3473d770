"""How the bytes of one connection get to and from the kernel: the seam behind which TLS can stand.

`Connection` and `Outbox` know these calls and no socket. All are non-blocking: they raise BlockingIOError when
nothing can be done now, and other OSErrors when the connection is lost. A TLS transport decrypts in `recv_into`,
encrypts in `send`, reads the file and encrypts in `send_file`, and has `has_pending` say that it holds decrypted
bytes of which no readiness will tell.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview

# The kernel waits for what follows instead of sending a small packet of its own (Linux only; elsewhere two packets).
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class Transport(Protocol):
    """See the module."""

    recv_into: Callable[[memoryview], int]
    """Receive what is there; 0 at the end of the stream."""
    send: Callable[[Buffer], int]
    """Send what the kernel takes and return how much that was."""

    def send_more(self, data: Buffer) -> int:
        """`send`, where more will follow at once."""
        ...

    def send_file(self, file: int, position: int, count: int) -> int:
        """Send up to `count` bytes of a file from `position`; 0 when the file has ended there."""
        ...

    def has_pending(self) -> bool:
        """Whether `recv_into` has bytes that the descriptor's readiness does not tell of."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class PlaintextTransport:
    """A TCP socket as it is. `recv_into` and `send` are the socket's own, so that the seam costs nothing."""

    __slots__ = ("_socket", "recv_into", "send")

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self.recv_into: Callable[[memoryview], int] = connected.recv_into
        self.send: Callable[[Buffer], int] = connected.send

    def send_more(self, data: Buffer) -> int:
        return self._socket.send(data, _MSG_MORE)

    def send_file(self, file: int, position: int, count: int) -> int:
        return os.sendfile(self._socket.fileno(), file, position, count)

    def has_pending(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
