"""The clients of one test: the bundled producer, admin client and consumers, started at their first use.

They are closed at the end of the test, so that a restart or a restore of the broker finds none of them at work.
"""

from __future__ import annotations

import asyncio
from typing import Any

from odradek.client.admin.admin import Admin
from odradek.client.config import ClientSettings
from odradek.client.consumer.consumer import Consumer
from odradek.client.producer.producer import Producer
from odradek.testing.request_log import OWN_CLIENT_ID

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

TIMEOUT_MS = 10_000
"""How long a call tries again before it fails: tests wait for it."""
SETTINGS = ClientSettings(
    client_id=OWN_CLIENT_ID,
    request_timeout_ms=TIMEOUT_MS,
    retry_backoff_ms=5,  # the broker is on this machine, and a test waits
    retry_backoff_max_ms=100,
    reconnect_backoff_ms=5,
    reconnect_backoff_max_ms=100,
)


class Clients:
    """One producer and one admin client, until `close`; then new ones. For one event loop."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._started: dict[type, Any] = {}
        self._starting = asyncio.Lock()

    async def producer(self) -> Producer[bytes, bytes]:
        """Return the producer, which sends each record at once. Raises ClientError."""
        producer: Producer[bytes, bytes] = await self._client(
            Producer, linger_ms=0, delivery_timeout_ms=TIMEOUT_MS, max_block_ms=TIMEOUT_MS
        )
        return producer

    async def admin(self) -> Admin:
        """Return the admin client. Raises ClientError."""
        admin: Admin = await self._client(Admin, default_api_timeout_ms=TIMEOUT_MS)
        return admin

    def consumer(self) -> Consumer:
        """Return a new consumer for `async with`, which reads committed records from the beginning."""
        return Consumer(
            self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            default_api_timeout_ms=TIMEOUT_MS,
            **SETTINGS,
        )

    async def close(self) -> None:
        """Disconnect."""
        async with self._starting:
            started, self._started = self._started, {}
            for client in started.values():
                await client.close()

    async def _client(self, kind: type, **settings: Any) -> Any:
        async with self._starting:
            if kind not in self._started:
                client = kind(self.bootstrap, **settings, **SETTINGS)
                await client.start()
                self._started[kind] = client
            return self._started[kind]
