"""The transport of a connection with TLS: a `TlsStream`, after its handshake.

```
recv_into   records of up to 16 KiB, until the buffer is full or nothing more has arrived; 64 at most
send        records of 16 KiB, four at once
send_more   kept, and sent in one record with the bytes that follow
send_file   the file is read in pieces, and each encrypted as by send; no descriptor of it reaches the kernel
```

What shapes this class:

| rule | here |
|---|---|
| one read of OpenSSL returns one record at most | `recv_into` reads until the buffer is full |
| received bytes wait in memory, not in the kernel | `has_pending` |
| some messages have no byte for us, such as key updates | they end `recv_into` after 17 KiB of the stream, 68 at most |
| what is encrypted cannot be taken back | a piece counts as sent when the kernel has all of it, `_owed` until then |
| reading may have to send (an answer to a key update) | BlockedBySendingError: wait for room, not for bytes |
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

from odradek.broker.server.tls_stream import LEAST_FILL, MOST_FILL, TlsStream
from odradek.broker.server.transport import BlockedBySendingError, Buffer, end_sending, reset
from odradek.protocol.errors import RemoteProtocolError

RECORD: Final = 16 * 1024
"""The most bytes of a record of TLS."""
RECORDS_AT_ONCE: Final = 64
"""The most records that one call of `recv_into` reads: a peer may send records of one byte, and each takes 3 µs."""
PIECE: Final = 4 * RECORD
"""The bytes that are encrypted before they are sent, and read of a file at once: they stay in the processor's cache.
Also the most encrypted bytes that a connection keeps while the kernel is full."""
_MOST_KEPT: Final = 1024
"""The most bytes that `send_more` keeps: the rest of the record is for the bytes that follow."""


class TlsTransport:
    """See the module. The handshake of `stream` is done; the stream belongs to this object."""

    __slots__ = ("_end", "_fill", "_head", "_is_cut_short", "_owed", "_read", "_stream", "_write")

    def __init__(self, stream: TlsStream) -> None:
        self._stream = stream
        self._read = cast("Callable[[int, memoryview], int]", stream.tls.read)
        self._write = stream.tls.write
        self._fill = LEAST_FILL
        self._head = b""  # bytes that `send_more` has taken and OpenSSL has not
        self._owed = 0  # bytes of the last call that are encrypted, unsent in part, and not reported as sent
        self._is_cut_short = False  # the last `recv_into` did not look whether more has arrived
        self._end: Exception | None = None  # raised by the next `recv_into`; EOFError: the end of the stream

    def recv_into(self, room: memoryview) -> int:
        if self._end is not None:
            return self._nothing()
        stream = self._stream
        if stream.unsent and (not self._owed or len(stream.unsent) > 2 * PIECE):
            self._answer()
        incoming, pending = stream.incoming, stream.tls.pending
        asked = arrived = filled = received = 0
        self._is_cut_short = False
        try:
            for _ in range(RECORDS_AT_ONCE):
                if not incoming.pending and not pending():
                    if received and arrived < asked:
                        break  # nothing more has arrived; without a byte, a reset may be behind (see `Connection`)
                    if filled >= LEAST_FILL and received * 2 < filled:
                        self._is_cut_short = True  # most of it was not for us
                        break
                    asked = self._fill if received * 2 >= filled else LEAST_FILL
                    arrived = stream.receive(asked)
                    filled += arrived
                received += self._read_record(room[received:] if received else room)
                if received == len(room) or self._end is not None:
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            self._end = _as_peer_error(error)
        if filled:
            self._fill = MOST_FILL if received * 2 >= filled else LEAST_FILL
        if stream.outgoing.pending:
            self._answer(may_wait=received > 0)
        return received or self._nothing()

    def _nothing(self) -> int:
        """Report why there are no bytes: the end, which is 0 or an error, or nothing has arrived."""
        if self._end is None:
            raise BlockingIOError(errno.EAGAIN, "no whole record has arrived")
        if isinstance(self._end, EOFError):
            return 0
        raise self._end

    def _read_record(self, room: memoryview) -> int:
        """Read what there is of a record for us, possibly nothing; at the end of the stream, set `_end`."""
        try:
            count = self._read(len(room), room)
        except ssl.SSLWantReadError:  # a part of a record, or a message of TLS itself
            return 0
        except ssl.SSLEOFError:  # an end without a farewell
            count = 0
        if not count:
            self._end = EOFError()
        return count

    def _answer(self, *, may_wait: bool = False) -> None:
        """Send what OpenSSL has made by itself, such as its answer to a key update, or an alert."""
        try:
            is_sent = self._stream.flush()
        except OSError:
            return  # the connection is lost: receiving or the next response finds that
        if not is_sent and not may_wait:
            raise BlockedBySendingError(errno.EAGAIN, "TLS must send first")

    def send(self, data: Buffer) -> int:
        size = len(data)
        sent = self._send_owed()
        if not sent and size <= PIECE and not self._head:  # nearly all responses
            if self._send_piece(data):
                return size
            raise _full()
        view = memoryview(data)
        while sent < size:
            piece = view[sent : sent + PIECE - len(self._head)]
            if not self._send_piece(piece):
                break
            sent += len(piece)
        if not sent:
            raise _full()
        return sent

    def send_more(self, data: Buffer) -> int:
        if self._owed or len(self._head) + len(data) > _MOST_KEPT:
            return self.send(data)
        self._head += bytes(data)
        return len(data)

    def send_file(self, file: int, position: int, count: int) -> int:
        sent = self._send_owed()
        while sent < count:
            piece = os.pread(file, min(PIECE - len(self._head), count - sent), position + sent)
            if not piece:
                break
            if not self._send_piece(piece):
                if not sent:
                    raise _full()
                break
            sent += len(piece)
        return sent

    def _send_owed(self) -> int:
        """Send what is encrypted; return how many of the bytes that a call begins with are sent by that.

        Raises BlockingIOError if the kernel has no room for all of it.
        """
        if self._stream.unsent and not self._stream.flush():
            raise _full()
        owed, self._owed = self._owed, 0
        return owed

    def _send_piece(self, piece: Buffer) -> bool:
        """Encrypt the kept bytes and `piece`, and send them; return whether the kernel has taken all of it."""
        stream = self._stream
        if self._head:
            plain: Buffer = b"".join((self._head, piece))
            self._head = b""
        else:
            plain = piece
        try:
            self._write(plain)
        except ssl.SSLWantReadError:
            raise RemoteProtocolError("TLS: the client renegotiates, which is refused") from None
        except ssl.SSLError as error:
            raise _as_peer_error(error) from error
        if stream.flush():
            return True
        self._owed = len(piece)
        return False

    def has_pending(self) -> bool:
        stream = self._stream
        return (
            self._end is not None
            or self._is_cut_short
            or stream.incoming.pending > 0
            or stream.tls.pending() > 0
            or (not self._owed and len(stream.unsent) > 0)
        )

    def fileno(self) -> int:
        return self._stream.socket.fileno()

    def close(self) -> None:
        self._stream.socket.close()

    def end_sending(self) -> socket.socket | None:
        return end_sending(self._stream.socket)

    def reset(self) -> None:
        reset(self._stream.socket)


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
