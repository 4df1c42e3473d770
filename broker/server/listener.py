"""A listener of the broker: one listening socket, which accepts connections while there is room for them.

| trouble | reaction |
|---|---|
| the limit of connections is reached (`Connections`) | accepting pauses until one closes; clients wait in the backlog |
| no descriptors are left (EMFILE and the like) | accepting pauses for half a second, or until one closes |
| connections are made faster than their limit | accepting pauses for the throttle time |
| one address has too many connections | its new connection is closed at once |
| one address makes connections faster than its quota | its new connection is closed after the throttle time |
| the client left before it was accepted | none |

A listener with TLS passes an accepted socket to `tls_handshakes`, which opens the connection: see `_open`.

One line is logged when accepting pauses, and one when it has continued for a second. At the limit, accepting pauses
again after each connection that replaces another, and without descriptors after each attempt; these are not logged.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.context import Address, ConnectionContext
from odradek.broker.server.accepting import ACCEPTS_A_TURN, BACK_OFF_SECONDS, accept_next
from odradek.broker.server.connections import Connections
from odradek.broker.server.transport import PlaintextTransport
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.waiting import Timer

if TYPE_CHECKING:
    from odradek.broker.security.tls.listener_tls import ListenerTls
    from odradek.broker.server.tls_handshakes import TlsHandshakes

_LOG = StructuredLogger(__name__)

SETTLING_SECONDS = 1.0
LOCAL_CONGESTION_CONTROL = b"reno"
"""Of connections with a client of the same address; each Linux has it."""
MOST_THROTTLED = 64
"""Connections that a listener keeps open and does not serve, because their address makes them too fast."""


class Listener:
    """A listener of the broker; `bind`, `start` and `stop` once each, `listen` between the first two."""

    def __init__(
        self, endpoint: Endpoint, connections: Connections, metrics: Metrics, tls: ListenerTls | None = None
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._connections = connections
        self._metrics = metrics.listener(endpoint.name)
        self._loop = connections.loop
        self._handshakes: TlsHandshakes | None = None
        if tls is not None:
            from odradek.broker.server.tls_handshakes import TlsHandshakes  # a broker without TLS needs no certificates

            self._handshakes = TlsHandshakes(connections, tls)
        self._socket: socket.socket | None = None
        self._bound: Address = (endpoint.host, endpoint.port)
        self._accepting = False
        self._pause_is_logged = False
        self._settling: asyncio.TimerHandle | None = None
        self._back_off: asyncio.TimerHandle | None = None
        self._pace: Timer | None = None  # the end of a pause because connections are made too fast
        self._throttled: dict[socket.socket, Timer] = {}  # accepted, but never served

    @property
    def address(self) -> Address:
        """The address of the listening socket; if the port is 0 in `listeners`, with the one that the system chose."""
        return self._bound

    @property
    def port(self) -> int:
        return self.address[1]

    @property
    def is_bound(self) -> bool:
        return self._socket is not None

    async def bind(self) -> None:
        """Bind the address; connections are refused until `start`. Raises OSError, which names the endpoint."""
        self._socket = await _bound_socket(self._endpoint, self._connections.config)
        host, port = self._socket.getsockname()[:2]
        self._bound = host, port

    def listen(self) -> None:
        """Let connections wait for `start`, after `bind`. May be repeated. Raises OSError, which names the endpoint."""
        assert self._socket is not None
        try:
            self._socket.listen(self._connections.config.socket_listen_backlog_size)
        except OSError as error:  # another process bound the same address, and listened first
            raise _cannot_listen(self._endpoint, error) from error

    def start(self) -> None:
        """Listen and accept connections, after `bind`. Raises OSError, which names the endpoint."""
        self.listen()
        self._connections.on_room.append(self._resume)
        self._accept(on=True)

    def stop(self) -> None:
        """Stop accepting; open connections stay."""
        if self._socket is None:
            return
        self._accept(on=False)
        if self._resume in self._connections.on_room:
            self._connections.on_room.remove(self._resume)
        for timer in (self._back_off, self._settling, self._pace):
            if timer is not None:
                timer.cancel()
        if self._handshakes is not None:
            self._handshakes.close()
        self._socket.close()
        self._socket = None
        for accepted, closing in self._throttled.items():
            closing.cancel()
            accepted.close()
        self._throttled.clear()

    def _acceptable(self) -> None:
        assert self._socket is not None
        for _ in range(ACCEPTS_A_TURN):
            reached = self._connections.limits.reached(self.name)
            if reached is not None:
                self._accept(on=False)
                self._log_pause(reached)
                return
            try:
                waiting = accept_next(self._socket)
            except OSError as error:
                self._pause(error)
                return
            if waiting is None:
                return
            self._open(*waiting)
            if not self._accepting:
                return

    def _open(self, accepted: socket.socket, peer: Any) -> None:
        peer_address = _address(peer)
        limits, now = self._connections.limits, self._connections.clock.monotonic()
        throttle_ms = limits.address_rates.record(peer_address[0], now) if limits.address_rates else 0
        if throttle_ms:
            self._metrics.refused += 1
            _LOG.debug("connection refused", listener=self.name, peer=peer_address, reason="connection_creation_rate")
            self._close_later(accepted, throttle_ms)
            return
        if not limits.allows(peer_address[0]):
            self._metrics.refused += 1
            _LOG.warning("connection refused", listener=self.name, peer=peer_address, reason="max.connections.per.ip")
            accepted.close()
            return
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects that a waiting client vanished
            local_address = _address(accepted.getsockname())
            if local_address[0] == peer_address[0]:
                _stop_pacing(accepted)
        except OSError:  # the client has disconnected already
            accepted.close()
            return
        context = ConnectionContext(self.name, local_address, peer_address)
        if self._handshakes is None:
            self._connections.open(PlaintextTransport(accepted), context)
        else:
            self._handshakes.begin(accepted, context)
        pause_ms = limits.record_creation(self.name, now)
        if pause_ms:
            self._accept(on=False)
            self._log_pause("max.connection.creation.rate")
            self._pace = self._connections.timers.call_later(pause_ms / 1000, self._end_pace)

    def _end_pace(self) -> None:
        self._pace = None
        self._resume()

    def _close_later(self, accepted: socket.socket, throttle_ms: int) -> None:
        """Close a connection that is not served after its throttle time; at once if many wait for that already."""
        if len(self._throttled) >= MOST_THROTTLED:
            accepted.close()
            return

        def close() -> None:
            accepted.close()
            del self._throttled[accepted]

        self._throttled[accepted] = self._connections.timers.call_later(throttle_ms / 1000, close)

    def _pause(self, error: OSError) -> None:
        self._accept(on=False)
        self._log_pause(error)
        self._back_off = self._loop.call_later(BACK_OFF_SECONDS, self._resume)

    def _log_pause(self, reason: object) -> None:
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if not self._pause_is_logged:
            self._pause_is_logged = True
            _LOG.warning("accepting paused", listener=self.name, reason=reason, connections=len(self._connections))

    def _log_resumption(self) -> None:
        self._settling = None
        self._pause_is_logged = False
        _LOG.info("accepting resumed", listener=self.name, connections=len(self._connections))

    def _resume(self) -> None:
        if self._socket is None or self._accepting or self._pace is not None:
            return
        if self._connections.limits.reached(self.name) is not None:
            return
        if self._back_off is not None:
            self._back_off.cancel()
            self._back_off = None
        if self._pause_is_logged:
            self._settling = self._loop.call_later(SETTLING_SECONDS, self._log_resumption)
        self._accept(on=True)

    def _accept(self, *, on: bool) -> None:
        if self._socket is not None and on is not self._accepting:
            self._accepting = on
            if on:
                self._loop.add_reader(self._socket.fileno(), self._acceptable)
            else:
                self._loop.remove_reader(self._socket.fileno())


async def _bound_socket(endpoint: Endpoint, config: BrokerConfig) -> socket.socket:
    family, address = await _resolve(endpoint)
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # With no host, IPv4 clients are served by the same socket.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1 if endpoint.host else 0)
        # Accepted sockets inherit the sizes, which must be set before the connection is made to shape its window.
        if config.socket_receive_buffer_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        if config.socket_send_buffer_bytes >= 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise _cannot_listen(endpoint, error) from error
    return listening


def _stop_pacing(connected: socket.socket) -> None:
    """Let the kernel send to a client on this machine as fast as it reads, where BBR is the default of the system.

    BBR measures a bottleneck that loopback does not have, and paces with timers: a Fetch of 1 MiB costs 275 µs of
    processor time with it, 220 without.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with suppress(OSError):  # the system may allow others only
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, LOCAL_CONGESTION_CONTROL)


def _cannot_listen(endpoint: Endpoint, error: OSError) -> OSError:
    return OSError(error.errno, f"cannot listen on {endpoint} (listeners): {error.strerror}")


async def _resolve(endpoint: Endpoint) -> tuple[int, Any]:
    """Resolve the endpoint; for a name with several addresses, to the first IPv4 one, as Java does."""
    if not endpoint.host:
        dual_stack = socket.has_dualstack_ipv6()
        return (socket.AF_INET6, ("::", endpoint.port)) if dual_stack else (socket.AF_INET, ("", endpoint.port))
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise _cannot_listen(endpoint, error) from error
    found.sort(key=lambda info: info[0] != socket.AF_INET)
    return found[0][0], found[0][4]


def _address(of: Any) -> Address:
    """Return host and port of a socket's address; an IPv4 client of an IPv6 socket keeps its IPv4 address."""
    host, port = of[:2]
    return host.removeprefix("::ffff:"), port
