"""Frames in a stream of bytes, and the flow control of a connection.

```
frame     length (uint32, big-endian; at most MAX_FRAME_BYTES), then as many bytes
```

What is sent within one turn of the event loop is one write. `drained` waits while the kernel takes no more bytes, so
that the memory of a connection has a bound: those that may send much wait for it. A subclass that cannot work on more
frames stops them with `pause`. A peer that breaks these rules, or those of the subclass, loses its connection.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from odradek.broker.metadata.store.shared.messages import MalformedMessageError
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.plural import pluralize

_LOG = StructuredLogger(__name__)

MAX_FRAME_BYTES: Final = 64 << 20
"""Far above any frame: ranges are sent in pages, and etcd, the other store, allows transactions of 1.5 MiB."""

_LENGTH_BYTES: Final = 4
_UNSENT_BYTES: Final = 256 << 10
"""With more than this, `drained` does not wait for the end of the turn to write."""
_WRITE_BUFFER_BYTES: Final = 1 << 20


class FramedConnection(asyncio.Protocol):
    """One end of a connection. Subclasses implement `frame_received` and `connection_ended`."""

    def __init__(self) -> None:
        self.is_open = False
        self.ended = asyncio.Event()
        self.writes = 0
        self.bytes_received = 0
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._paused = False
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._writable = asyncio.Event()
        self._writable.set()

    def frame_received(self, frame: bytearray) -> None:
        """Raises `MalformedMessageError`."""
        raise NotImplementedError

    def connection_ended(self) -> None:
        """Called once, when the connection is closed or lost."""
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        """Send a frame at the end of this turn of the event loop; does nothing if the connection has ended.

        Raises `ValueError` if the message is too long for a frame.
        """
        if len(message) > MAX_FRAME_BYTES:
            raise ValueError(f"a message of {len(message)} bytes exceeds the most of a frame, {MAX_FRAME_BYTES}")
        if not self.is_open:
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._write)
        self._unsent += (len(message).to_bytes(_LENGTH_BYTES), message)
        self._unsent_bytes += _LENGTH_BYTES + len(message)

    @property
    def unsent_bytes(self) -> int:
        """The bytes that wait for the peer in this process."""
        return self._unsent_bytes + self._transport.get_write_buffer_size()

    async def drained(self) -> None:
        """Wait while the peer does not receive what was sent."""
        if self._unsent_bytes > _UNSENT_BYTES:
            self._write()
            await asyncio.sleep(0)
        await self._writable.wait()

    def pause(self) -> None:
        """Deliver no more frames until `resume`, and receive none."""
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if self.is_open:
                self._transport.resume_reading()
                asyncio.get_running_loop().call_soon(self._deliver)

    def close(self) -> None:
        """Close the connection when everything is sent; `ended` is set then."""
        if self.is_open:
            self._write()
            self.is_open = False
            self._transport.close()

    def abort(self) -> None:
        """Close the connection now; what is not sent is lost."""
        self.is_open = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self.bytes_received += len(data)
        self._received += data
        self._deliver()

    def eof_received(self) -> None:
        """End the connection, although the peer might still receive: its process has ended, or is about to."""
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - every end is the same here
        self.is_open = False
        self._writable.set()
        self.connection_ended()
        self.ended.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _deliver(self) -> None:
        received, start = self._received, 0
        try:
            while self.is_open and not self._paused and len(received) - start >= _LENGTH_BYTES:
                begin = start + _LENGTH_BYTES
                end = begin + _length(received[start:begin])
                if end > len(received):
                    break
                start = end
                self.frame_received(received[begin:start])
        except MalformedMessageError as error:
            _LOG.warning("connection to the metadata store closed: it carries something else", error=str(error))
            self.abort()
        del received[:start]

    def _write(self) -> None:
        if self._unsent and self.is_open:
            self.writes += 1
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()
            self._unsent_bytes = 0


def _length(prefix: bytes | bytearray) -> int:
    length = int.from_bytes(prefix)
    if length > MAX_FRAME_BYTES:
        raise MalformedMessageError(f"a frame of {pluralize(length, 'byte')}")
    return length
