"""The transport of one connection: the seam between bytes and sockets, behind which TLS stands (`tls_transport`).

`Connection` and `Outbox` use these calls and no socket. All are non-blocking: they raise BlockingIOError if nothing can
be done now, and other OSErrors if the connection is lost. A TLS transport decrypts in `recv_into`, encrypts in `send`,
reads the file and encrypts in `send_file`, and its `has_pending` is true if it holds decrypted bytes, for which the
descriptor does not become readable again. Only the plaintext transport passes the descriptor of a file to the kernel.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview

# The kernel waits for the next bytes instead of sending a small packet (Linux only; two packets elsewhere).
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which closing resets the connection: it lingers for 0 seconds."""


class BlockedBySendingError(BlockingIOError):
    """TLS cannot receive before it has sent: the descriptor must become writable, readable it may be already."""


class Transport(Protocol):
    """The calls that a connection needs; see the module."""

    @property
    def recv_into(self) -> Callable[[memoryview], int]:
        """Receive the available bytes; returns 0 at the end of the stream. Raises also BlockedBySendingError."""
        ...

    @property
    def send(self) -> Callable[[Buffer], int]:
        """Send as much as the kernel takes, and return the number of bytes.

        After BlockingIOError, or with fewer bytes than were passed, the next call begins with the bytes that follow.
        """
        ...

    def send_more(self, data: Buffer) -> int:
        """Send bytes that others will follow at once."""
        ...

    def send_file(self, file: int, position: int, count: int) -> int:
        """Send up to `count` bytes of a file from `position`; returns 0 at the end of the file."""
        ...

    def has_pending(self) -> bool:
        """Return whether `recv_into` has bytes although the descriptor is not readable."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...

    def end_sending(self) -> socket.socket | None:
        """End this side of the stream and return the socket, to discard what arrives; None: just close."""
        ...

    def reset(self) -> None:
        """Close, discarding what the peer has not received yet: it sees a reset, as of a process that was killed."""
        ...


class PlaintextTransport:
    """A plain TCP socket. `recv_into` and `send` are the socket's methods, so that the seam costs nothing."""

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

    def end_sending(self) -> socket.socket | None:
        return end_sending(self._socket)

    def reset(self) -> None:
        reset(self._socket)


def end_sending(connected: socket.socket) -> socket.socket | None:
    """End this side of the stream and return the socket; None if the peer has ended the connection already."""
    try:
        connected.shutdown(socket.SHUT_WR)  # with TLS, what is received afterwards is not decrypted
    except OSError:
        return None
    return connected


def reset(connected: socket.socket) -> None:
    """Close a socket so that the peer sees a reset."""
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    except OSError:
        pass  # the peer has reset it already
    connected.close()
