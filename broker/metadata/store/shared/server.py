"""`StoreServer`: serves a metadata store to other processes of the same user, on a Unix socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from odradek.broker.metadata.store.shared.served_connection import ServedConnection
from odradek.broker.metadata.store.shared.socket_file import BACKLOG, ListeningSocket
from odradek.broker.metadata.store.store import MetadataStore

FILE_NAME: Final = "odradek-metadata.sock"


class StoreServer:
    """Serves `store` at `path` from `start` to `close`, in the store's event loop.

    Close it before the store: workers then see a lost connection, and not a store that has failed for ever.
    """

    def __init__(self, store: MetadataStore, path: Path) -> None:
        self._store = store
        self._path = path
        self._connections: dict[ServedConnection, None] = {}
        self._revocations: set[asyncio.Task[None]] = set()
        self._listening: ListeningSocket | None = None
        self._server: asyncio.Server | None = None
        self._closed = False

    async def start(self) -> None:
        """Listen. Raises `StoreFailedError` if another process does, or the file of the socket cannot be made."""
        self._listening = ListeningSocket(self._path)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: ServedConnection(self._store, self._started, self._ended),
            sock=self._listening.socket,
            backlog=BACKLOG,
        )

    async def close(self) -> None:
        """Finish the requests that run, end all connections, and revoke their sessions."""
        if self._closed or self._server is None or self._listening is None:
            return
        self._closed = True
        self._listening.remove_file()
        self._server.close()
        await asyncio.gather(*(connection.finish() for connection in tuple(self._connections)))
        await asyncio.gather(*self._revocations)
        await self._server.wait_closed()

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._connections)

    @property
    def unsent_bytes(self) -> int:
        """The bytes that wait for workers which do not read."""
        return sum(connection.unsent_bytes for connection in self._connections)

    def _started(self, connection: ServedConnection) -> None:
        self._connections[connection] = None
        if self._closed:
            connection.abort()

    def _ended(self, connection: ServedConnection) -> None:
        self._connections.pop(connection, None)
        revoking = asyncio.get_running_loop().create_task(connection.revoke_sessions(), name="revoke sessions")
        self._revocations.add(revoking)
        revoking.add_done_callback(self._revocations.discard)
