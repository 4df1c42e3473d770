"""The transport of a connection with TLS: a non-blocking OpenSSL socket of Python's `ssl`, after its handshake.

```
recv_into   records of up to 16 KiB, until the buffer is full or nothing more has arrived; 64 at most
send        one record for each 16 KiB, several in one packet
send_more   kept, and sent in one record with the bytes that follow
send_file   the file is read in pieces, and each encrypted as by send; no descriptor of it reaches the kernel
```

OpenSSL's rules that shape this class:

| rule | here |
|---|---|
| one read returns one record at most | `recv_into` reads until the buffer is full, else a MiB would take 64 turns |
| decrypted bytes wait in OpenSSL, not in the kernel | `has_pending` |
| a record that the kernel did not take must be repeated with the same bytes | `_blocked` keeps it |
| reading may have to send first (a key update) | BlockedBySendingError: wait for room, not for bytes |
| writing may have to read first | only during a renegotiation, which is off: such a peer is closed |
| `unwrap` waits for the peer | `close` does not use it: frames have sizes, so clients detect a missing end |

Errors: BlockingIOError as for every transport, RemoteProtocolError if the peer violates TLS, other OSErrors if the
connection is lost. An error after some bytes is raised by the next call, so that requests before it are executed.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from odradek.broker.server.transport import BlockedBySendingError, Buffer, end_sending, reset
from odradek.protocol.errors import RemoteProtocolError

RECORD: Final = 16 * 1024
"""The most bytes of a record of TLS."""
RECORDS_AT_ONCE: Final = 64
"""The most records that one call of `recv_into` reads: a peer may send records of one byte, and each takes 3 µs."""
PIECE: Final = 8 * RECORD
"""The bytes of a file that are read at once: they stay in the processor's cache until they are encrypted."""
_CORK: Final[int | None] = getattr(socket, "TCP_CORK", None)
"""Linux only. Records that are sent one by one wake the peer one by one: without this, a fetch of 1 MiB takes the
broker 0.70 ms of CPU, not 0.53."""
_MOST_KEPT: Final = 1024
"""The most bytes that `send_more` keeps: the rest of the record is for the bytes that follow."""


class TlsTransport:
    """See the module. `secured` has finished its handshake; it is non-blocking and belongs to this object."""

    __slots__ = ("_blocked", "_end", "_head", "_read", "_socket")

    def __init__(self, secured: ssl.SSLSocket) -> None:
        self._socket = secured
        self._read = cast("Callable[[int, memoryview], int]", secured.read)  # `recv_into` calls it, and is a call more
        self._head = b""  # bytes that `send_more` has taken and OpenSSL has not
        self._blocked = b""  # the record that OpenSSL waits to send; it begins with `_head`
        self._end: Exception | None = None  # raised by the next `recv_into`; EOFError: the end of the stream

    def recv_into(self, room: memoryview) -> int:
        if self._end is not None:
            return self._raise_end(self._end)
        read = self._read
        size = len(room)
        received = 0
        try:
            for _ in range(RECORDS_AT_ONCE):
                count = read(size - received, room[received:] if received else room)
                if not count:
                    self._end = EOFError()
                    break
                received += count
                if received == size:
                    break
        except ssl.SSLWantReadError:
            if not received:
                raise BlockingIOError(errno.EAGAIN, "no whole record has arrived") from None
        except ssl.SSLWantWriteError:
            if not received:
                raise BlockedBySendingError(errno.EAGAIN, "TLS must send first") from None
        except BrokenPipeError:  # OpenSSL answers an end without a farewell by an alert; with 3.6 its failure is raised
            self._end = EOFError()
        except OSError as error:
            self._end = _as_peer_error(error)
            if not received:
                return self._raise_end(self._end)
        return received

    def send(self, data: Buffer) -> int:
        if len(data) <= RECORD and not self._blocked and not self._head:  # nearly all responses
            try:
                return self._socket.send(data)
            except OSError as error:
                self._not_sent(error, data)
                raise _full() from None
        self._cork(1)
        try:
            sent = self._send_records(memoryview(data))
        finally:
            self._cork(0)
        if not sent:
            raise _full()
        return sent

    def send_more(self, data: Buffer) -> int:
        if self._blocked or len(self._head) + len(data) > _MOST_KEPT:
            return self.send(data)
        self._head += bytes(data)
        return len(data)

    def send_file(self, file: int, position: int, count: int) -> int:
        if count <= RECORD:
            return self._send_file(file, position, count)
        self._cork(1)
        try:
            return self._send_file(file, position, count)
        finally:
            self._cork(0)

    def _send_file(self, file: int, position: int, count: int) -> int:
        sent = 0
        while sent < count:
            piece = os.pread(file, min(PIECE - len(self._head), count - sent), position + sent)
            if not piece:
                return sent
            part = self._send_records(memoryview(piece))
            sent += part
            if part < len(piece):
                if not sent:
                    raise _full()
                return sent
        return sent

    def _cork(self, value: int) -> None:
        """Let the kernel make large packets of several records, or send what it has."""
        if _CORK is not None:
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, value)
            except OSError:
                pass  # no TCP socket, or one that the peer has reset: sending reports that

    def _send_records(self, data: memoryview) -> int:
        """Send records until all of `data` is sent or the kernel is full; return the number of bytes of `data`."""
        size = len(data)
        sent = 0
        while sent < size:
            part = self._send_record(data[sent:])
            if part is None:
                break
            sent += part
        return sent

    def _send_record(self, data: memoryview) -> int | None:
        """Send one record of the kept bytes and the start of `data`; return how many bytes of `data` it contains.

        If the kernel is full, return None: the same record is sent first by the next call, for the same data or more.
        """
        head = self._head
        record: Buffer = self._blocked
        if not record:
            record = b"".join((head, data[: RECORD - len(head)])) if head else data[:RECORD]
        try:
            written = self._socket.send(record)
        except OSError as error:
            self._not_sent(error, record)
            return None
        self._blocked = b""
        if written < len(head):  # the peer has asked for small records
            self._head = head[written:]
            return 0
        self._head = b""
        return written - len(head)

    def _not_sent(self, error: OSError, record: Buffer) -> None:
        """Keep a record that the kernel did not take. Raises any other error."""
        if isinstance(error, ssl.SSLWantReadError):
            raise RemoteProtocolError("TLS: the client renegotiates, which is refused") from None
        if not isinstance(error, ssl.SSLWantWriteError):
            raise _as_peer_error(error) from error
        self._blocked = bytes(record)

    def has_pending(self) -> bool:
        return self._end is not None or self._socket.pending() > 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def end_sending(self) -> socket.socket | None:
        return end_sending(self._socket)

    def reset(self) -> None:
        reset(self._socket)

    def _raise_end(self, end: Exception) -> int:
        if isinstance(end, EOFError):
            return 0
        raise end


def _full() -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, "the kernel has no room")


def _as_peer_error(error: OSError) -> Exception:
    """Return the error of a transport for one of OpenSSL."""
    if not isinstance(error, ssl.SSLError):
        return error
    if isinstance(error, (ssl.SSLZeroReturnError, ssl.SSLEOFError, ssl.SSLSyscallError)):
        return ConnectionResetError(errno.ECONNRESET, "the peer has closed the connection")
    reason = (error.reason or "unknown error").lower().replace("_", " ")
    return RemoteProtocolError(f"TLS: {reason}")
