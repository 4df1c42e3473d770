"""The connections of one client: at most one for each broker and purpose, opened at the first use.

A broker responds in order on a connection, so a waiting Fetch would delay every later request. Fetches therefore have a
connection of their own (`Purpose.FETCH`), and so have JoinGroup and the other requests of a member, which wait for all
members (`Purpose.GROUP`). All other requests use `Purpose.REQUESTS`.

After a failed attempt the next one to the same broker waits (`reconnect_backoff_ms`, growing). Callers that need a
connection while an attempt is under way share its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from odradek.client.config import Address, ClientConfig
from odradek.client.errors import ClientError, ClosedError, ConnectionLostError
from odradek.client.network.backoff import Backoff
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.outcome import outcome_of
from odradek.client.network.transport import Network

if TYPE_CHECKING:
    from odradek.client.network.sasl import Authenticator
    from odradek.client.security.settings import SecuritySettings


def authenticator_of(settings: SecuritySettings) -> Authenticator | None:
    """Create the authenticator of a client's connections; None without SASL."""
    if not settings.uses_sasl:
        return None
    from odradek.client.network.sasl import Authenticator

    return Authenticator(settings)


class Purpose(Enum):
    """The purpose of a connection."""

    REQUESTS = "requests"
    FETCH = "fetch"
    GROUP = "group"


class Connections:
    """The connections of one client; `on_change` is called after one has closed or is no longer congested."""

    def __init__(self, config: ClientConfig, network: Network) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._config = config
        self._network = network
        self._open: dict[tuple[int, Purpose], Connection] = {}
        self._attempts: dict[tuple[int, Purpose], asyncio.Task[Connection]] = {}
        self._backoffs: dict[int, Backoff] = {}
        self._failures: dict[int, ClientError] = {}
        self._authenticator = authenticator_of(config)
        self._is_closed = False

    def established(self, node_id: int, purpose: Purpose = Purpose.REQUESTS) -> Connection | None:
        """The open connection to a node, or None."""
        connection = self._open.get((node_id, purpose))
        return connection if connection is not None and connection.is_open else None

    def all_established(self, purpose: Purpose) -> list[Connection]:
        """The open connections for a purpose, the one with the fewest requests in flight first."""
        found = [connection for key, connection in self._open.items() if key[1] is purpose and connection.is_open]
        return sorted(found, key=lambda connection: connection.in_flight)

    def failure(self, node_id: int) -> ClientError | None:
        """The last failure to connect to a node, if there was no success since."""
        return self._failures.get(node_id)

    async def get(self, node_id: int, address: Address, purpose: Purpose = Purpose.REQUESTS) -> Connection:
        """The connection to a node, opened if there is none. Raises TransportError, BrokerError, ClosedError."""
        connection = self.established(node_id, purpose)
        if connection is not None:
            return connection
        self._check_open()
        key = (node_id, purpose)
        attempt = self._attempts.get(key)
        if attempt is None:
            attempt = self._attempts[key] = asyncio.create_task(self._connect(node_id, address, purpose))
            attempt.add_done_callback(lambda done: self._attempt_ended(key, done))
        return await outcome_of(attempt)

    async def open_address(self, address: Address) -> Connection:
        """Open a connection to a bootstrap server, whose node id is unknown. The caller adopts or closes it."""
        self._check_open()
        return await self._open_address(address, str(address))

    def adopt(self, node_id: int, connection: Connection) -> None:
        """Keep a connection of `open_address` as that of a node, which has none yet.

        If the client was closed meanwhile, closes the connection and raises ClosedError.
        """
        if self._is_closed:
            connection.close()
        self._check_open()
        connection.rename(_name(node_id, connection.name))
        self._keep(node_id, Purpose.REQUESTS, connection)

    def drop(self, node_id: int) -> None:
        """Close the connections to a node that was removed or has another address.

        Their requests in flight are lost, not refused: the node may have executed them, and may be back soon.
        """
        for purpose in Purpose:
            connection = self._open.pop((node_id, purpose), None)
            if connection is not None:
                gone = "the broker is no longer in the metadata, or not at this address"
                connection.close(ConnectionLostError("use a connection", gone, broker=connection.name))
        self._backoffs.pop(node_id, None)
        self._failures.pop(node_id, None)

    def close_now(self) -> None:
        """Close all connections, and open none any more."""
        self._is_closed = True
        for attempt in self._attempts.values():
            attempt.cancel()
        for connection in list(self._open.values()):
            connection.close()

    async def close(self) -> None:
        """Close all connections, and wait until they are closed."""
        self.close_now()
        await asyncio.gather(*self._attempts.values(), return_exceptions=True)
        for connection in list(self._open.values()):
            await connection.wait_closed()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("connect", "the client was closed")

    async def _connect(self, node_id: int, address: Address, purpose: Purpose) -> Connection:
        backoff = self._backoffs.get(node_id)
        if backoff is not None:
            await asyncio.sleep(backoff.next())
        try:
            connection = await self._open_address(address, _name(node_id, str(address)))
        except Exception as error:
            if isinstance(error, ClientError):
                self._failures[node_id] = error
            if backoff is None:
                config = self._config
                self._backoffs[node_id] = Backoff(
                    config.reconnect_backoff_ms / 1000, config.reconnect_backoff_max_ms / 1000
                )
            raise
        self._backoffs.pop(node_id, None)
        self._keep(node_id, purpose, connection)
        return connection

    async def _open_address(self, address: Address, name: str) -> Connection:
        config = self._config
        return await open_connection(
            self._network,
            address,
            name,
            client_id=config.client_id,
            connect_timeout=config.connect_timeout_ms / 1000,
            request_timeout=config.request_timeout_ms / 1000,
            authenticator=self._authenticator,
        )

    def _keep(self, node_id: int, purpose: Purpose, connection: Connection) -> None:
        key = (node_id, purpose)

        def forget() -> None:
            if self._open.get(key) is connection:
                del self._open[key]
            self.on_change()

        self._open[key] = connection
        self._failures.pop(node_id, None)
        connection.on_close = forget
        connection.on_resume = self.on_change

    def _attempt_ended(self, key: tuple[int, Purpose], attempt: asyncio.Task[Connection]) -> None:
        del self._attempts[key]
        if not attempt.cancelled():
            attempt.exception()  # marks it as retrieved: the callers that wait raise it


def _name(node_id: int, address: str) -> str:
    return f"{address} (broker {node_id})"
