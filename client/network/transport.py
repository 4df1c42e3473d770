"""The transports of connections: the seam `Network`, and the errors of connecting.

`TcpNetwork` is the real network, and the only one that uses sockets; tests use a simulated one.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

from odradek.client.config import Address
from odradek.client.errors import BrokerUnreachableError


class Network(Protocol):
    """The factory of transports."""

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        """Connect, and call `protocol.connection_made`. Raises OSError."""
        ...


class TcpNetwork:
    """The network of the operating system."""

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, address.host, address.port)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cast("asyncio.WriteTransport", transport)


async def connect(
    network: Network, address: Address, protocol: asyncio.BufferedProtocol, name: str, seconds: float
) -> None:
    """Connect in so many seconds; `name` is the broker's name in errors. Raises BrokerUnreachableError."""
    try:
        async with asyncio.timeout(seconds):
            await network.connect(address, protocol)
    except TimeoutError:
        cause = f"no response within {seconds * 1000:.0f} ms"
        raise BrokerUnreachableError("connect", cause, _reachable(address), broker=name) from None
    except OSError as error:
        unreachable = BrokerUnreachableError("connect", describe(error), _reachable(address), broker=name)
        unreachable.is_unknown_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
        raise unreachable from error


def describe(error: Exception) -> str:
    """The words for an error of the operating system."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved ({error.strerror})"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _reachable(address: Address) -> str:
    return f"Is a broker listening there, and can {address.host} be reached from this machine?"
