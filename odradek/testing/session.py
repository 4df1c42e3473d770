"""The cluster of a test session: started with the first test that wants it, and isolated from test to test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from odradek.testing.aio import AsyncKafka
from odradek.testing.cluster import Cluster
from odradek.testing.kafka import Kafka
from odradek.testing.loop_thread import LoopThread
from odradek.testing.other_cluster import OtherCluster
from odradek.testing.own_broker import OwnBroker
from odradek.testing.properties import Properties


class Session:
    """A cluster with its handle `kafka`, until `close`. For one thread, which may not run an event loop."""

    def __init__(self, cluster: Cluster, properties: Properties) -> None:
        self.properties = dict(properties)
        self._cluster = cluster
        self._loop = LoopThread("kafka of the tests")
        self.kafka = Kafka(AsyncKafka(cluster, self._loop))

    @classmethod
    def open(cls, properties: Properties, bootstrap: str | None) -> Session:
        """Start a broker with these properties, or use the cluster at `bootstrap`. Raises as `OwnBroker`."""
        return cls(OwnBroker(properties) if bootstrap is None else OtherCluster(bootstrap), properties)

    @contextmanager
    def isolate(self) -> Iterator[Kafka]:
        """Run one test: afterwards the state is that of the beginning of the first one."""
        aio = self.kafka.aio
        self._loop.run(self._begin())
        try:
            yield self.kafka
        finally:
            self._loop.run(self._end())
            self._loop.run(aio.clients.close())

    def close(self) -> None:
        """Remove what the session has left, and stop the broker if it is ours."""
        try:
            self._loop.run(self._end_session())
        finally:
            self._loop.close()
            self._cluster.close()

    async def _begin(self) -> None:
        await self._cluster.begin_test(await self.kafka.aio.clients.admin())

    async def _end(self) -> None:
        await self._cluster.end_test(await self.kafka.aio.clients.admin())

    async def _end_session(self) -> None:
        clients = self.kafka.aio.clients
        await self._cluster.end_session(await clients.admin())
        await clients.close()
