"""A socket and OpenSSL's state of its connection, with two buffers in memory between them.

OpenSSL could use the socket itself, as Python's `SSLSocket` does. But one read of OpenSSL goes on until it has a byte
for us, and some messages have none: a peer that sends nothing but key updates keeps it reading for as long as they
arrive, 1.7 s for those that fit into the kernel's buffer. So what OpenSSL may see of a stream is moved to it first,
a few records at a time. It also saves calls: OpenSSL asks the kernel for a record's header, then for its content.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

LEAST_FILL: Final = 17 * 1024
"""The most received bytes that OpenSSL is given at once: a whole record, and a little more. As key updates they take
15 ms."""
MOST_FILL: Final = 4 * LEAST_FILL
"""The same for a peer whose last bytes were data: each time costs 15 µs, and a MiB is 17 of them, not 62."""


class TlsStream:
    """A server's side of a connection. `connected` becomes non-blocking, and belongs to this object.

    Its calls raise OSErrors of sockets and of OpenSSL. It must not be used by two threads at once.
    """

    __slots__ = ("incoming", "outgoing", "socket", "tls", "unsent")

    def __init__(self, connected: socket.socket, context: ssl.SSLContext) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.incoming = ssl.MemoryBIO()
        """Received, and not yet read by OpenSSL."""
        self.outgoing = ssl.MemoryBIO()
        """Made by OpenSSL, and not yet taken by `flush`."""
        self.unsent = b""
        """Taken from `outgoing`, and not yet by the kernel."""
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def receive(self, most: int) -> int:
        """Move what has arrived to OpenSSL, and return how many bytes that is; 0 at the end of the stream.

        Raises BlockingIOError if nothing has arrived.
        """
        data = self.socket.recv(most)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return len(data)

    def flush(self) -> bool:
        """Send what OpenSSL has made; return whether the kernel has taken all of it."""
        made = self.outgoing.read() if self.outgoing.pending else b""
        data = self.unsent + made if self.unsent else made
        if not data:
            return True
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        self.unsent = data[sent:]
        return sent == len(data)

    def shake_hands(self) -> None:
        """Go on with the handshake with what has arrived.

        Raises ssl.SSLWantReadError and ssl.SSLWantWriteError if it must wait for bytes or for room. When it returns,
        the handshake is done; its last bytes may be unsent.
        """
        if not self.flush():
            raise ssl.SSLWantWriteError
        try:
            self.receive(LEAST_FILL)
        except BlockingIOError:
            pass
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            if not self.flush():
                raise ssl.SSLWantWriteError from None
            raise
        except ssl.SSLError:
            self.flush()  # the alert
            raise
        self.flush()
