"""The start and the end of an Admin: its settings, its connections, and the `Calls` between."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from odradek.client.admin.calls import Calls
from odradek.client.config import AdminConfig, ClientSettings, check_keywords, parse_bootstrap_servers
from odradek.client.errors import ClosedError
from odradek.client.network.cluster import Cluster
from odradek.client.network.transport import Network, TcpNetwork


class AdminLifecycle:
    """Settings and connections of an Admin. Raises ConfigurationError for the settings."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        default_api_timeout_ms: int = 60000,
        network: Network | None = None,
        **client: Unpack[ClientSettings],
    ) -> None:
        check_keywords(type(self), client)
        self._config = AdminConfig(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            default_api_timeout_ms=default_api_timeout_ms,
            **client,
        )
        self._network = network or TcpNetwork(self._config)
        self._started: Calls | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect to the cluster. Does nothing if it is started already. Raises ClientError."""
        if self._started is not None:
            return
        found = Cluster(self._config, self._network)
        try:
            await found.start()
        except BaseException:
            await found.close()
            raise
        self._started = Calls(self._config, found)

    async def close(self) -> None:
        """Disconnect; unfinished calls raise ClosedError."""
        calls, self._started = self._started, None
        if calls is not None:
            await calls.cluster.close()

    @property
    def _calls(self) -> Calls:
        if self._started is None:
            raise ClosedError("administer", "the Admin is not open", "Use it inside `async with`")
        return self._started
