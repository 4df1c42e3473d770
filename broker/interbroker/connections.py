"""The connections to the other brokers, one for each broker and purpose, opened at the first use.

```
fetcher 0 of broker 2 ─┐                                  ┌─ address of broker 2 in the newest image,
                       ├─► connection(2, purpose) ────────┤  at the listener `inter.broker.listener.name`
fetcher 1 of broker 2 ─┘                                  └─ reused until it closes, or that address changes
```

A broker answers in order on a connection, so a fetch that waits for records would delay every other request: each
fetcher has a purpose of its own. Pauses after a failed attempt are the caller's.

Workers of one machine may listen on every interface without an advertised address. They reach each other at the
loopback address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.broker.metadata.image import MetadataImage
from odradek.client.config import Address
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.connections import authenticator_of
from odradek.client.network.transport import Network, TcpNetwork
from odradek.client.security.settings import SecuritySettings
from odradek.protocol.errors import ErrorCode, KafkaError

_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - replaced, not bound
"""The loopback address of the same family, for every address that stands for all interfaces."""


class _Opened(NamedTuple):
    address: Address
    connection: Connection


class BrokerConnections:
    """The connections of one broker to the others. `image` returns the newest image."""

    def __init__(
        self,
        node_id: int,
        listener: str,
        image: Callable[[], MetadataImage],
        *,
        socket_timeout_ms: int,
        host: str = "",
        network: Network | None = None,
        security: SecuritySettings | None = None,
    ) -> None:
        """`listener`: the name of the listener to connect to; `socket_timeout_ms`: replica.socket.timeout.ms.

        `host`: the machine of this broker, if it is a worker. `security`: TLS and SASL of this broker as a client of
        that listener; None for plain text.
        """
        self._node_id = node_id
        self._listener = listener
        self._image = image
        self._host = host
        self._seconds = socket_timeout_ms / 1000
        self._network = network or TcpNetwork(security)
        self._authenticator = None if security is None else authenticator_of(security)
        self._opened: dict[tuple[int, str], _Opened] = {}
        self._is_closed = False

    async def connection(self, node_id: int, purpose: str) -> Connection:
        """Return an open connection to a broker; only one caller at a time may use a purpose.

        Raises `KafkaError` BROKER_NOT_AVAILABLE if the broker is not alive or has no such listener, or after `close`;
        `odradek.client.errors.ClientError` if it cannot be reached, is not trusted or does not accept this broker.
        """
        address = self._address_of(node_id)
        key = (node_id, purpose)
        opened = self._opened.pop(key, None)
        if opened is not None:
            if opened.connection.is_open and opened.address == address:
                self._opened[key] = opened
                return opened.connection
            opened.connection.close()
        connection = await open_connection(
            self._network,
            address,
            f"{address} (broker {node_id})",
            client_id=f"broker-{self._node_id}-{purpose}",
            connect_timeout=self._seconds,
            request_timeout=self._seconds,
            authenticator=self._authenticator,
        )
        if self._is_closed:
            connection.close()
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this broker is stopping")
        self._opened[key] = _Opened(address, connection)
        return connection

    def drop(self, node_id: int, purpose: str) -> None:
        """Close a connection that is not needed any more, if there is one."""
        opened = self._opened.pop((node_id, purpose), None)
        if opened is not None:
            opened.connection.close()

    async def close(self) -> None:
        """Close all connections, and wait until they are closed; requests in flight fail."""
        self._is_closed = True
        opened, self._opened = self._opened, {}
        for _, connection in opened.values():
            connection.close()
        for _, connection in opened.values():
            await connection.wait_closed()

    def _address_of(self, node_id: int) -> Address:
        broker = self._image().brokers.get(node_id)
        if broker is None or self._is_closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not alive")
        for listener in broker.listeners:
            if listener.name == self._listener:
                loopback = _LOOPBACK.get(listener.host) if self._host and broker.host == self._host else None
                return Address(loopback or listener.host, listener.port)
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} has no listener {self._listener}")
