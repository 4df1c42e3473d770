"""The handshakes of one TLS listener: from an accepted socket to a `Connection` with a `TlsTransport`.

```
            ┌─ no byte for the limit ──────────► closed
 accepted ──┤
            └─ readable ─► first byte ─┬─ not TLS ──────────► closed, one line
                                       └─ queue ─► step ─┬─ needs bytes or room ─► waits, then the queue again
                                                         ├─ failed ──────────────► alert, one line, drained, closed
                                                         ├─ other error ─────────► closed, one line
                                                         └─ done ─► principal ───► Connections.open
```

A step is one call of OpenSSL, on one of a few threads, with what has arrived, 17 KiB at most (`TlsStream`). If a client
cuts its message into records of one byte, it takes 10 ms. Other steps take 0.1 ms with an ECDSA key of ours, and 0.7 ms
with an RSA key. The steps wait in their order. A client that stalls
holds no place in that order, only its socket. That counts as a connection of its address and, whatever the listener
demands, as one that is not authenticated (`Connections`), and is closed after `LIMIT_SECONDS`. Memory: the objects of
OpenSSL exist from the first byte on. While a thread uses a socket, it is not closed but shut down: its descriptor must
not become that of another.

A socket that is closed while received bytes are unread, or before more arrive, resets its connection. A client of TLS
1.3 has often sent its first requests before it is refused, and would see that reset in place of the alert. So the
broker ends only its own direction after the alert, and discards what the client sends until the client closes: up to
`MOST_DRAINED` bytes, and no longer than the limit of the handshake.

Lines that clients can cause are limited (`limited_log`): one in ten seconds for each reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from odradek.broker.request.context import ConnectionContext
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.security.tls.mapping_rules import UnmappedNameError
from odradek.broker.server.connections import Connections
from odradek.broker.server.tls_stream import TlsStream
from odradek.broker.server.tls_transport import TlsTransport
from odradek.broker.structured_logging import StructuredLogger

_LOG: Final = StructuredLogger(__name__)

LIMIT_SECONDS: Final = 10.0
"""The longest time from accepting a connection to the end of its handshake."""
THREADS: Final = 2
"""The threads for the steps of a listener's handshakes."""
STARTS_A_TURN: Final = 4
"""The steps that start in one turn of the event loop: the first of a client makes OpenSSL's objects, in 50 µs."""
MOST_DRAINED: Final = 256 * 1024
"""The most bytes of a refused client that are discarded, so that it may read the alert."""
_DRAINED_AT_ONCE: Final = 16 * 1024
_DISCONNECTED: Final = "the client has disconnected"
_HANDSHAKE: Final = 0x16  # the first byte of a TLS connection: a record of this type


class TlsHandshakes:
    """The unfinished handshakes of one listener. Used on the event loop only; `close` ends all of them."""

    def __init__(self, connections: Connections, tls: ListenerTls) -> None:
        self.tls = tls
        self.connections = connections
        self._loop = connections.loop
        self._open: dict[_Handshake, None] = {}
        self._queue: deque[_Handshake] = deque()
        self._is_scheduled = False
        self._threads = ThreadPoolExecutor(THREADS, "tls-handshake")  # has no thread before the first step

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, accepted: socket.socket, context: ConnectionContext) -> None:
        """Start the handshake of an accepted socket, which belongs to this object from now on."""
        handshake = _Handshake(self, accepted, context, self._loop)
        self._open[handshake] = None
        self.connections.reserve(context, handshake.close)

    def close(self) -> None:
        """Close all connections whose handshakes are not finished."""
        for handshake in tuple(self._open):
            handshake.close("the listener stops")
        self._threads.shutdown(wait=False)

    def run(self, step: Callable[[], None]) -> asyncio.Future[None]:
        """Run a step in a thread."""
        return self._loop.run_in_executor(self._threads, step)

    def enqueue(self, handshake: _Handshake) -> None:
        """Let a handshake take its next step when those before it had theirs."""
        self._queue.append(handshake)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def remove(self, handshake: _Handshake) -> None:
        """Forget a handshake that is finished or closed."""
        self._open.pop(handshake, None)

    def _run(self) -> None:
        for _ in range(min(STARTS_A_TURN, len(self._queue))):
            handshake = self._queue.popleft()
            try:
                handshake.step()
            except Exception as error:  # noqa: BLE001 - the other handshakes go on
                handshake.break_off(error)
        self._is_scheduled = bool(self._queue)
        if self._is_scheduled:
            self._loop.call_soon(self._run)

    def warn(self, context: ConnectionContext, kind: str, reason: str) -> None:
        """Log why a connection ended before it began."""
        self.connections.handshake_failed(context, reason)
        self.connections.limited_log.warning(
            kind, "TLS handshake failed", listener=context.listener_name, peer=context.peer_address, reason=reason
        )


class _Handshake:
    """One handshake. `_secured` exists from the first byte on, `_refused` after an alert, until the client closes."""

    __slots__ = (
        "_accepted",
        "_context",
        "_drained",
        "_fd",
        "_group",
        "_loop",
        "_refused",
        "_secured",
        "_step",
        "_timer",
        "_unwatch",
    )

    def __init__(
        self,
        group: TlsHandshakes,
        accepted: socket.socket,
        context: ConnectionContext,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        accepted.setblocking(False)
        self._group = group
        self._accepted: socket.socket | None = accepted
        self._secured: TlsStream | None = None
        self._refused: socket.socket | None = None
        self._step: asyncio.Future[None] | None = None  # under way in a thread
        self._drained = 0  # bytes of a refused client
        self._context = context
        self._fd = accepted.fileno()
        self._loop = loop
        self._timer = loop.call_later(LIMIT_SECONDS, self._late)
        self._unwatch: Callable[[int], object] = loop.remove_reader
        self._wait(for_room=False)

    def close(self, reason: str) -> None:
        """Close the connection; for a handshake that is not finished."""
        if self._end():
            self._group.connections.release(self._context)
            _LOG.debug("connection closed", peer=self._context.peer_address, reason=reason)

    def break_off(self, error: Exception) -> None:
        """Close the connection after an error that is not the client's, such as a thread that cannot start."""
        self._fail("unexpected", f"{type(error).__name__}: {error}")

    def step(self) -> None:
        """Continue the handshake; called by the queue."""
        if self._accepted is None and self._secured is None:
            return  # closed while it was waiting
        try:
            if self._secured is None and not self._secure():
                return
        except OSError:
            self.close(_DISCONNECTED)
            return
        assert self._secured is not None
        self._step = self._group.run(self._secured.shake_hands)
        self._step.add_done_callback(self._stepped)

    def _stepped(self, step: asyncio.Future[None]) -> None:
        """Continue after a step; called on the event loop."""
        self._step = None
        if self._secured is None:  # closed meanwhile
            if not step.cancelled():
                step.exception()
            return
        try:
            step.result()
        except ssl.SSLWantReadError:
            self._wait(for_room=False)
        except ssl.SSLWantWriteError:
            self._wait(for_room=True)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._fail("disconnected", "the client closed the connection during the handshake")
        except ssl.SSLError as error:
            self._group.warn(self._context, error.reason or "unknown", _explained(error))
            self._refuse()
        except OSError:
            self.close(_DISCONNECTED)
        except Exception as error:  # noqa: BLE001 - it must not wait for the limit
            self.break_off(error)
        else:
            self._finish(self._secured)

    def _secure(self) -> bool:
        """Make the TLS socket if the client speaks TLS; otherwise close. Raises OSError."""
        accepted = self._accepted
        assert accepted is not None
        first = accepted.recv(1, socket.MSG_PEEK)
        if not first:
            self.close(_DISCONNECTED)  # a port scan, or a check whether the port is open
            return False
        if first[0] != _HANDSHAKE:
            self._fail("plaintext", "the client does not speak TLS: its security.protocol must be SSL or SASL_SSL")
            return False
        context = self._group.tls.context
        try:
            self._secured = TlsStream(accepted, context)
        except ssl.SSLError:  # its bytes are still there
            self.close(_DISCONNECTED)
            return False
        self._accepted = None
        return True

    def _refuse(self) -> None:
        """End our direction, after OpenSSL has sent its alert, and wait for the client to close."""
        assert self._secured is not None
        refused = self._secured.socket
        self._secured, self._refused = None, refused
        try:
            refused.shutdown(socket.SHUT_WR)
        except OSError:
            self.close(_DISCONNECTED)
            return
        self._loop.add_reader(self._fd, self._drain)
        self._unwatch = self._loop.remove_reader

    def _drain(self) -> None:
        """Discard what a refused client has sent; close at its end."""
        assert self._refused is not None
        try:
            count = len(self._refused.recv(_DRAINED_AT_ONCE))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        self._drained += count
        if not count or self._drained > MOST_DRAINED:
            self.close("refused")

    def _finish(self, secured: TlsStream) -> None:
        try:
            certificate, is_resumed = secured.tls.getpeercert(binary_form=True), bool(secured.tls.session_reused)
            self._context.principal = self._group.tls.principal(certificate, is_resumed=is_resumed)
        except (UnmappedNameError, ValueError) as error:
            self._fail("principal", str(error))
            return
        self._secured = None  # it belongs to the connection now
        self._end()
        self._group.connections.open(TlsTransport(secured), self._context, is_reserved=True)

    def _wait(self, *, for_room: bool) -> None:
        loop = self._loop
        if for_room:
            loop.add_writer(self._fd, self._ready)
            self._unwatch = loop.remove_writer
        else:
            loop.add_reader(self._fd, self._ready)
            self._unwatch = loop.remove_reader

    def _ready(self) -> None:
        self._unwatch(self._fd)
        self._group.enqueue(self)

    def _late(self) -> None:
        if self._refused is not None:
            self.close("refused")
            return
        self._fail("late", f"the handshake took longer than {LIMIT_SECONDS:.0f} s")

    def _fail(self, kind: str, reason: str) -> None:
        self._group.warn(self._context, kind, reason)
        self.close(reason)

    def _end(self) -> bool:
        """Stop waiting and close what this object still owns; return False if that has happened before."""
        self._timer.cancel()
        self._unwatch(self._fd)
        self._group.remove(self)
        owned = self._accepted or self._refused if self._secured is None else self._secured.socket
        self._secured = self._accepted = self._refused = None
        if owned is None:
            return False
        if self._step is None:
            owned.close()
        else:
            with contextlib.suppress(OSError):  # the client has disconnected
                owned.shutdown(socket.SHUT_RDWR)  # so that the step ends
            self._step.add_done_callback(lambda _: owned.close())
        return True


def _explained(error: ssl.SSLError) -> str:
    """Return a sentence for what went wrong: most of it is a setting of the client."""
    reason = (error.reason or "unknown error").lower().replace("_", " ")
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not valid: {error.verify_message}"
    alert = reason.partition("alert ")[2]
    if alert:
        return f"the client refuses the connection: {alert}"
    return reason
