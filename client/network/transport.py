"""The transports of connections: the seam `Network`, TCP and TLS, and the errors of connecting.

`TcpNetwork` is the real network, and the only one that uses sockets; tests use a simulated one.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Protocol, cast

from odradek.client.config import Address
from odradek.client.errors import (
    AuthenticationFailedError,
    BrokerUnreachableError,
    ClientError,
    ConnectionLostError,
    TlsError,
)

if TYPE_CHECKING:
    from odradek.client.network.tls import Tls
    from odradek.client.security.settings import SecuritySettings

_IS_IT_TLS = "Is this the port of a TLS listener? Without TLS, security_protocol is PLAINTEXT or SASL_PLAINTEXT"


NO_NAME = "it is not the name of a host"
"""The reason for a name that DNS cannot have: an empty part, one over 63 bytes, a NUL. Python raises ValueErrors."""


class Network(Protocol):
    """The factory of transports."""

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        """Connect, and call `protocol.connection_made`. Raises OSError and ClientError."""
        ...


class TcpNetwork:
    """The network of the operating system, with TLS if the settings have it.

    The certificate of a peer has to be for `server_name`, by default the host that is connected to. Key and trust
    store are read at the first connection, and again when their files have changed.
    """

    def __init__(self, security: SecuritySettings | None = None, server_name: str | None = None) -> None:
        self._server_name = server_name
        self._tls: Tls | None = None
        if security is not None and security.uses_tls:
            from odradek.client.network.tls import Tls  # `ssl` takes 10 ms

            self._tls = Tls(security)

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        loop = asyncio.get_running_loop()
        if self._tls is None:
            transport, _ = await loop.create_connection(lambda: protocol, address.host, address.port)
        else:
            name = self._server_name or address.host
            try:
                transport, _ = await loop.create_connection(
                    lambda: protocol, address.host, address.port, ssl=self._tls.context, server_hostname=name
                )
            except (ssl.SSLEOFError, ConnectionResetError) as error:
                raise ConnectionLostError("connect", "the peer ended the TLS handshake", _IS_IT_TLS) from error
            except ssl.SSLError as error:
                raise await self._tls.handshake_error(error, address, name) from error
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cast("asyncio.WriteTransport", transport)


async def connect(
    network: Network, address: Address, protocol: asyncio.BufferedProtocol, name: str, seconds: float
) -> None:
    """Connect in so many seconds; `name` is the broker's name in errors.

    Raises TransportError, AuthenticationFailedError, and ConfigurationError for a key or trust store.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await network.connect(address, protocol)
    except OSError as error:  # also a TimeoutError, of this limit or of the system's connect
        cause = f"no response within {seconds * 1000:.0f} ms" if limit.expired() else describe(error)
        unreachable = BrokerUnreachableError("connect", cause, _reachable(address), broker=name)
        unreachable.is_unknown_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
        raise unreachable from error
    except (TlsError, AuthenticationFailedError, ConnectionLostError) as error:
        error.broker = name
        raise
    except ValueError as error:
        if isinstance(error, ClientError):
            raise
        cause = f"the name cannot be resolved ({NO_NAME})"
        unreachable = BrokerUnreachableError("connect", cause, _reachable(address), broker=name)
        unreachable.is_unknown_host = True
        raise unreachable from error


def lost_error(error: Exception, tried: str, name: str) -> ClientError | None:
    """The error if a connection was lost by an alert of TLS, such as that of a broker that wants a certificate."""
    if not isinstance(error, ssl.SSLError):
        return None
    from odradek.client.network.tls import alert_error

    found = alert_error(error, tried)
    if found is not None:
        found.broker = name
    return found


def describe(error: Exception) -> str:
    """The words for an error of the operating system."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved ({error.strerror})"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _reachable(address: Address) -> str:
    return f"Is a broker listening there, and can {address.host} be reached from this machine?"
